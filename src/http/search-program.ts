import { toAnswer } from '../base/errors.ts';
import { refuseDebugger, STOP_SIGNALS } from '../base/lifecycle.ts';
import { openSearch } from '../store/history/search.ts';
import type { SearchHit } from '../store/rows/product-rows.ts';

/*
 * The program of the process that searches for another one: see search-subprocess.ts. Its argument is the path of the mirror.
 */

export interface SearchRequest {
  readonly text: string;
  readonly limit: number;
}

/** Sends hits, none when the process is ready. */
const answer = (work: () => readonly SearchHit[]) => process.send?.(toAnswer(work));

// A terminal or a service manager sends these to every process. This one ends with its channel to the process that asks,
// which is all that keeps it alive.
for (const name of STOP_SIGNALS) process.on(name, () => {});
refuseDebugger();
answer(() => {
  const search = openSearch(process.argv[2] ?? '');
  process.on('message', ({ text, limit }: SearchRequest) => answer(() => search(text, limit)));
  return [];
});
