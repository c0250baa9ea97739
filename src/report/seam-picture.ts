import type { Evidence, ListEvidence } from '@catchword/catalog/run-types';
import { cellsOf, SEAM_RANK } from './run-picture.ts';
import type { SeamState } from './run-watch.ts';
import { type Colours, count, plural } from './text.ts';

/** The most cells of a picture. */
const WIDTH = 60;

function listLines(c: Colours, list: ListEvidence): string[] {
  const { seams, windows, repairs, overlap, overlapLeast } = list;
  const name = `  ${(list.kind === 'list' ? 'catalog' : 'delta').padEnd(9)}`;
  if (seams === '') return [`${name}one response, exact`];
  const marks: Readonly<Record<string, string>> = { j: c.green('━'), r: c.yellow('╋'), o: c.red('┄') };
  const cells = cellsOf(SEAM_RANK, seams.split('') as SeamState[], Math.ceil(seams.length / WIDTH));
  const picture = cells.replace(/./g, (letter) => marks[letter] ?? letter);
  const number = (state: string): string => count(seams.split(state).length - 1);
  const tally = `${number('j')} joined, ${number('r')} repaired, ${number('o')} open`;
  const read = `${plural(windows, 'window')}${repairs > 0 ? ` and ${plural(repairs, 'repair')}` : ''}`;
  const shared = overlap > 0 ? `, neighbours share ${count(overlap)} products (at least ${count(overlapLeast)})` : '';
  const lines = [`▕${picture}▏`, `${plural(seams.length, 'seam')}: ${tally}`, `${read}${shared}`];
  return lines.map((line, at) => `${at === 0 ? name : ' '.repeat(11)}${line}`);
}

/** Draws the seams of each list that a run read: `━` joined, `╋` repaired, `┄` open. */
export function seamPicture(c: Colours, { requests, deltas, lookups, lists }: Evidence): string {
  const read = [plural(requests, 'request'), plural(deltas, 'delta')];
  if (lookups > 0) read.push(plural(lookups, 'lookup'));
  return [`  evidence ${read.join(', ')}`, ...lists.flatMap((list) => listLines(c, list))].join('\n');
}
