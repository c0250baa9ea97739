import type { Evidence, ListEvidence } from '../../catalog/run.ts';
import type { CommandContext } from './context.ts';
import { colours, count, plural } from './format.ts';

const WIDTH = 60;
/** What a stretch of the list looks like whose worst seam is in this state. */
const MARKS = { j: '━', r: '╋', o: '┄' } as const;

type State = keyof typeof MARKS;

/** As many cells as there are seams, at most 60; each shows the worst of its seams. */
export function cellsOf(seams: string): State[] {
  const cells = Math.min(WIDTH, seams.length);
  return Array.from({ length: cells }, (_, at) => {
    const part = seams.slice(Math.floor((at * seams.length) / cells), Math.floor(((at + 1) * seams.length) / cells));
    return part.includes('o') ? 'o' : part.includes('r') ? 'r' : 'j';
  });
}

function tally(seams: string): string {
  const of = (state: State): number => seams.split(state).length - 1;
  return `${plural(seams.length, 'seam')}: ${count(of('j'))} joined, ${count(of('r'))} repaired, ${count(of('o'))} open`;
}

function listLines(context: CommandContext, { kind, seams, windows, repairs, overlap, overlapLeast }: ListEvidence) {
  const name = kind === 'list' ? 'catalog' : 'delta';
  if (seams === '') return [`  ${name.padEnd(9)}one response, exact`];
  const c = colours(context, context.stdout);
  const paint = { j: c.green, r: c.yellow, o: c.red };
  const picture = cellsOf(seams)
    .map((state) => paint[state](MARKS[state]))
    .join('');
  const read = `${plural(windows, 'window')}${repairs > 0 ? ` and ${plural(repairs, 'repair')}` : ''}`;
  const shared = overlap > 0 ? `, neighbours share ${count(overlap)} products (at least ${count(overlapLeast)})` : '';
  return [`  ${name.padEnd(9)}▕${picture}▏`, `           ${tally(seams)}`, `           ${read}${shared}`];
}

/** A picture of the seams of each list that a run read: `━` joined, `╋` repaired, `┄` open. */
export function seamPicture(context: CommandContext, evidence: Evidence): string {
  const { requests, deltas, lookups, lists } = evidence;
  const read = [
    plural(requests, 'request'),
    plural(deltas, 'delta'),
    ...(lookups > 0 ? [plural(lookups, 'lookup')] : []),
  ];
  return [`  evidence ${read.join(', ')}`, ...lists.flatMap((list) => listLines(context, list))].join('\n');
}
