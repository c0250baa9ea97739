import type { SinkCheck } from '../store/rows/sink-rows.ts';

/** The counts of a comparison, for people: one line. */
export function checkText({ same, differing, missing, extra, repaired, held, notJudged }: SinkCheck): string {
  const found = [`${differing} differ`, `${missing} missing`, `${extra} extra`, `${same} equal`];
  const others = Object.entries({ repaired, 'held back': held, 'not judged (parked or skipped events)': notJudged });
  return [...found, ...others.flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]))].join(', ');
}
