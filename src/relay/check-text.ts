import { remaining, type SinkRow } from '../store/rows/sink-rows.ts';
import type { SinkCheck } from '../store/schema/sink-tables.ts';
import { KINDS } from './kinds/kinds.ts';

/** Why a store of a kind that can be compared cannot be repaired. */
export function unrepairableText(kind: string): string {
  return KINDS[kind]?.unrepairable ?? 'events are only added to it';
}

/** What to do about such a store. */
export function replayText(name: string): string {
  return `To send every product again: npx catchword sink replay ${name} --from beginning`;
}

/** What a comparison of a store with its source found, and what to do, for people; `advice` is empty if they are equal. */
export function checkText({ name, kind }: Pick<SinkRow, 'name' | 'kind'>, check: SinkCheck) {
  const { same, differing, missing, extra, repaired, held, notJudged, error } = check;
  const found = [`${differing} differ`, `${missing} missing`, `${extra} extra`, `${same} equal`];
  const others = Object.entries({ repaired, 'held back': held, 'not judged (parked or skipped events)': notJudged });
  const counts = [...found, ...others.flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`]))].join(', ');
  const command = `npx catchword sink verify ${name}${check.deep ? ' --deep' : ''}`;
  if (check.allows === 'nothing') return { found: error ?? '', advice: '' };
  if (error !== null) return { found: error, advice: `When the cause is gone: ${command}` };
  if (held > 0) {
    const advice = `CATCHWORD_REMOVAL_LIMIT keeps the extra products. To remove them: npx catchword sink verify ${name} --repair --extra`;
    return { found: counts, advice };
  }
  if (remaining(check) === 0) return { found: counts, advice: '' };
  if (check.allows === 'repair') return { found: counts, advice: `To repair it: ${command} --repair` };
  return { found: counts, advice: `It cannot be repaired: ${unrepairableText(kind)}. ${replayText(name)}` };
}
