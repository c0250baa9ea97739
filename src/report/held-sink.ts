import { heldOf, type SinkRow, type ViewForecast } from '../store/rows/sink-rows.ts';
import { count, plural } from './text.ts';

/** How a sink that an unusual run holds goes on: two ways, of which the operator chooses. */
export function approvalText(name: string): string {
  return `To send its changes: npx catchword sink approve ${name}. Once the source is right again, send only what still differs: npx catchword sink approve ${name} --newest`;
}

/** What a view would change in a store. */
export function forecastText({ has, matching, created, updated, removed, failed }: ViewForecast): string {
  const change = `create ${plural(created, 'product')}, update ${count(updated)} and remove ${count(removed)} of the ${count(has)} that the store has`;
  const failing = failed === 0 ? '' : `; an expression fails on ${count(failed)}`;
  return `it would ${change}; ${count(matching)} match${failing}`;
}

/** Why a sink is held, for programs and for people, and what to do; null if it is not. */
export function heldSinkText(row: Pick<SinkRow, 'name' | 'state' | 'held'>) {
  const held = row.state === 'held' ? heldOf(row) : null;
  if (held === null) return null;
  const { name } = row;
  if (held.why === 'run') return { ...held, advice: approvalText(name) };
  const variable = `CATCHWORD_SINK_${name.toUpperCase()}`;
  const advice = `Look: npx catchword sink preview ${name}. To send it: npx catchword sink approve ${name}; or put ${variable}_WHERE and _FIELDS back, and restart`;
  const { isApproved: _isNot, ...view } = held;
  return { ...view, reason: `its view was changed: ${forecastText(held.forecast)}`, advice };
}
