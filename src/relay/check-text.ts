import { remaining } from '../store/rows/sink-rows.ts';
import type { SinkCheck } from '../store/schema/sink-tables.ts';

/** Why no store of a kind can be compared with its source. */
export const INCOMPARABLE: Readonly<Record<string, string>> = {
  webhook: 'catchword cannot read what a receiver has stored',
  s3: 'catchword does not read back the files of a bucket yet',
};
/** How stores of events are compared, which cannot be repaired, because events are only added. */
export const FOLDED = 'each product as its last event says';

/** What a comparison of a store with its source found, and what to do, for people; `advice` is empty if they are equal. */
export function checkText(name: string, check: SinkCheck) {
  const { same, differing, missing, extra, repaired, held, notJudged, error } = check;
  const found = [`${differing} differ`, `${missing} missing`, `${extra} extra`, `${same} equal`];
  const others = Object.entries({ repaired, 'held back': held, 'not judged (parked or skipped events)': notJudged });
  const counts = [...found, ...others.flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]))].join(', ');
  const command = `npx catchword sink verify ${name}${check.deep ? ' --deep' : ''}`;
  if (error !== null) return { found: error, advice: `When the cause is gone: ${command}` };
  if (held > 0) {
    const advice = `CATCHWORD_REMOVAL_LIMIT keeps the extra products. To remove them: npx catchword sink verify ${name} --repair --extra`;
    return { found: counts, advice };
  }
  const replay = `To send every product again: npx catchword sink replay ${name} --from beginning`;
  const advice = check.compared === FOLDED ? replay : `To repair it: ${command} --repair`;
  return { found: counts, advice: remaining(check) === 0 ? '' : advice };
}
