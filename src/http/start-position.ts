import { findPosition, idAt, MISPLACED } from '../store/history/log-position.ts';
import type { Store } from '../store/store.ts';

/*
 * A stream's ids are the ids of its events. A standard EventSource sends the last one back.
 *
 * A position that is not in this log cannot be rejected, because any status but 200 ends an EventSource for good. The
 * stream then starts with `event: reset`.
 */

export type StreamStart = ReturnType<typeof streamStart>;

/**
 * Call inside a read transaction.
 * @param requested a position, or `latest` for changes recorded from now on
 * @param wantsPast whether a reader whose position is not in this log gets the whole log, or only new changes
 * @returns the change after which the events start, the first message, and why the position is not in this log; null if it is
 */
export function streamStart(store: Store, requested: string, wantsPast: boolean) {
  const last = store.changes.lastSeq();
  if (requested === 'latest') {
    // It has data because the npm package `eventsource` keeps no id of a block without data: a reader that was cut off
    // before its first event would resume at the newest change of that later moment.
    return { from: last, block: `event: start\nid: ${idAt(store, last)}\ndata: {"after":${last}}\n\n`, reset: null };
  }
  const found = findPosition(store, requested);
  // A reader that is cut off before its first event resumes where it started.
  if ('seq' in found) return { from: found.seq, block: `id: ${idAt(store, found.seq)}\n\n`, reset: null };
  const { code } = found;
  const from = wantsPast ? 0 : last;
  const data = JSON.stringify({ code, message: MISPLACED[code], after: from, last });
  return { from, block: `event: reset\nid: ${idAt(store, from)}\ndata: ${data}\n\n`, reset: code };
}
