import type { Evidence, ListEvidence } from '../catalog/run-types.ts';
import { type Colours, count, plural } from './text.ts';

const WIDTH = 60;
/** One cell of the picture: joined, repaired, open. */
const MARKS = { j: '━', r: '╋', o: '┄' } as const;

type State = keyof typeof MARKS;

/** At most 60 cells for a list's seams; each shows the worst of its seams. */
export function cellsOf(seams: string): State[] {
  const cells = Math.min(WIDTH, seams.length);
  return Array.from({ length: cells }, (_, at) => {
    const part = seams.slice(Math.floor((at * seams.length) / cells), Math.floor(((at + 1) * seams.length) / cells));
    return part.includes('o') ? 'o' : part.includes('r') ? 'r' : 'j';
  });
}

function listLines(c: Colours, list: ListEvidence): string[] {
  const { seams, windows, repairs, overlap, overlapLeast } = list;
  const name = `  ${(list.kind === 'list' ? 'catalog' : 'delta').padEnd(9)}`;
  if (seams === '') return [`${name}one response, exact`];
  const paint = { j: c.green, r: c.yellow, o: c.red };
  const picture = cellsOf(seams).map((state) => paint[state](MARKS[state]));
  const number = (state: State): string => count(seams.split(state).length - 1);
  const tally = `${number('j')} joined, ${number('r')} repaired, ${number('o')} open`;
  const read = `${plural(windows, 'window')}${repairs > 0 ? ` and ${plural(repairs, 'repair')}` : ''}`;
  const shared = overlap > 0 ? `, neighbours share ${count(overlap)} products (at least ${count(overlapLeast)})` : '';
  const lines = [`▕${picture.join('')}▏`, `${plural(seams.length, 'seam')}: ${tally}`, `${read}${shared}`];
  return lines.map((line, at) => `${at === 0 ? name : ' '.repeat(11)}${line}`);
}

/** Draws the seams of each list that a run read: `━` joined, `╋` repaired, `┄` open. */
export function seamPicture(c: Colours, { requests, deltas, lookups, lists }: Evidence): string {
  const read = [plural(requests, 'request'), plural(deltas, 'delta')];
  if (lookups > 0) read.push(plural(lookups, 'lookup'));
  return [`  evidence ${read.join(', ')}`, ...lists.flatMap((list) => listLines(c, list))].join('\n');
}
