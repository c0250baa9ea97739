import { iso } from '@catchword/base/iso-time';
import * as z from 'zod';
import { KINDS } from '../relay/kinds/kinds.ts';
import { checkJson, type SinkSeen } from '../report/sink-report.ts';
import { count, plural, roughly } from '../report/text.ts';
import { legOf, startOf } from '../store/rows/sink-legs.ts';
import { COUNT, type Row, type Said, schemaOf, TIME, type Tone } from './shown-row.ts';

/** A rate that was measured longer ago counts as 0. */
const RATE_MAX_AGE_MS = 30_000;
/** Gaps that are listed for people, the newest ones. */
const MOST_GAPS = 20;

/** States of sinks, the most urgent first: the tone, the meaning and what to do, and the name for people if it is another one. */
// biome-ignore format: a state is a line.
export const SINK_STATES: Readonly<Record<SinkSeen['state'], readonly [tone: Tone, about: string, todo: string, label?: string]>> = {
  stopped: ['bad', 'It gets nothing, because of its last error: the store answered 410, or rejected 20 events in a row (the first one, if `refused=stop` is set), or another mirror, or another sink of this one, feeds it.', 'Fix the cause, then retry to redeliver parked events, or resume without them; or skip the event at which it stopped. If the store belongs to another mirror, replay, then resume.'],
  held: ['bad', 'Nothing is delivered before you decide: a changed view, the end of a fill, or the next run would remove too much, or the changes of an unusual run come next.', 'Look, then approve.'],
  disabled: ['bad', 'It was too far behind (`CATCHWORD_LOG_CAP`), so the change log no longer waits for it.', 'Resume: it gets the right products again, and the changes that it did not get are listed.'],
  retrying: ['warn', 'The store cannot be reached, or a setting is wrong.', 'Fix what the error names; catchword retries, with growing pauses up to a minute. Resume retries at once.'],
  paused: ['warn', 'An operator paused it. It gets nothing until it is resumed; the change log keeps what it needs.', 'Resume.'],
  live: ['good', 'It gets every change as it is recorded.', ''],
  backfill: ['good', 'It is being filled with the current products; then it gets every change.', '', 'initial load'],
  reconciling: ['good', 'Its view was changed, or only what differs was approved: it gets the products of which its store has something else; then it gets every change.', ''],
  new: ['soft', 'The settings name it, and nothing was delivered yet.', 'Start or restart the daemon (or relay).'],
  'not configured': ['soft', 'The settings no longer name it, so the log no longer waits for it.', 'Configure it again to continue.'],
};

/** What a state means, and what to do, for a page. */
export function meaningOf(state: SinkSeen['state']): string {
  const [, about, todo] = SINK_STATES[state];
  return `${about} ${todo}`.trimEnd().replaceAll('`', '');
}

/** Says how to feed the first store. */
export const NO_SINKS =
  'No store is fed. To feed one, set CATCHWORD_SINK_<NAME>, such as CATCHWORD_SINK_FILE=jsonl:data/changes.jsonl, and restart the daemon.';

/** The page of a sink. */
export function sinkPath(name: string): string {
  return `/sinks/${encodeURIComponent(name)}`;
}

/** What a view would change in a store, in products. */
const FORECAST = z.object({
  has: COUNT,
  matching: COUNT,
  created: COUNT,
  updated: COUNT,
  removed: COUNT,
  failed: COUNT.meta({ description: 'Products on which an expression fails.' }),
  absent: z.array(z.string()).readonly().optional().meta({ description: 'Members that it names, and no product has.' }),
  isMistyped: z.literal(true).optional(),
});
/** Why a sink is held. */
const HELD = z.object({
  why: z.enum(['view', 'fill', 'run']).meta({ description: 'A changed view, the end of a fill, or a run.' }),
  number: COUNT.meta({ description: 'Names what holds it: an approval with it approves only this.' }),
  reason: z.string(),
  advice: z.string().meta({ description: 'What to do.' }),
  where: z.string().nullable().optional().meta({ description: 'The changed view.' }),
  fields: z.string().nullable().optional(),
  forecast: FORECAST.optional(),
  run: COUNT.optional().meta({ description: 'The number of the run.' }),
  removed: COUNT.optional().meta({ description: 'Products that would go.' }),
});
/** The last comparison of a store. */
const VERIFIED = z.object({
  at: TIME,
  cursor: COUNT.meta({ description: 'The change as of which.' }),
  deep: z.boolean().meta({ description: 'Whether everything that the store has of each product was compared.' }),
  compared: z.string().meta({ description: 'What was compared.' }),
  allows: z.enum(['repair', 'comparison', 'nothing']).meta({ description: 'What the store allows.' }),
  same: COUNT,
  differing: COUNT,
  missing: COUNT,
  extra: COUNT,
  repaired: COUNT,
  held: COUNT.meta({ description: 'Extra products that CATCHWORD_REMOVAL_LIMIT keeps.' }),
  not_judged: COUNT.meta({ description: 'Products with parked or skipped events.' }),
  remaining: z.int().meta({ description: 'Products that still differ.' }),
  examples: z
    .array(z.object({ vbid: z.string(), difference: z.string(), differs: z.array(z.string()).readonly() }))
    .readonly(),
  error: z.string().nullable().meta({ description: 'Why the comparison did not end.' }),
  found: z.string().meta({ description: 'What it found, in words.' }),
  advice: z.string().meta({ description: 'What to do; empty: nothing.' }),
});
const GAP = z.object({ after: COUNT, up_to: COUNT, at: TIME.nullable() });

function lagText({ lagRecords, lagSeconds }: SinkSeen): string | null {
  if (lagRecords === null) return null;
  if (lagRecords <= 0) return 'up to date';
  return `${plural(lagRecords, 'change')}${lagSeconds === null ? '' : `, for ${roughly(lagSeconds * 1000)}`}`;
}

/** Where an initial load ends, or a reconciliation; null if neither is under way. */
function loadTo({ row }: SinkSeen): number | null {
  const { to } = legOf(row ?? { legs: [] });
  return row !== undefined && row.cursor < to ? to : null;
}

function loadSaid(of: SinkSeen): Said | null {
  const to = loadTo(of);
  if (to === null) return null;
  const what = of.state === 'reconciling' ? 'only what differs from what its store has' : 'the current products';
  const { cursor, legs } = of.row ?? { cursor: 0, legs: [] };
  const from = startOf({ legs });
  const text = `${what}, up to ${count(cursor)} of ${count(to)}`;
  return { text, share: (cursor - from) / Math.max(1, to - from) };
}

function checkSaid({ row }: SinkSeen): Said | null {
  const check = row === undefined ? null : checkJson(row);
  return check && { text: [check.found, check.advice].filter(Boolean).join('. '), at: check.at };
}

const gapsOf = ({ store, row }: SinkSeen) => (row === undefined ? [] : store.sinks.gaps(row.id));
const parkedOf = ({ store, row }: SinkSeen): number => (row === undefined ? 0 : store.sinks.parkedCount(row.id));
const isCurrent = ({ row, nowMs }: SinkSeen): boolean => nowMs - (row?.ackedAt ?? 0) < RATE_MAX_AGE_MS;
/** Warns about whatever it says. */
const warns = (): Tone => 'warn';

/** A sink, in the order of tables and facts. `value` of a sink that was not fed yet: nothing is known. */
// biome-ignore format: a row is a line.
export const SINK = [
  { key: 'name', label: 'Sink', list: 'column', schema: z.string(), about: 'The name: the end of CATCHWORD_SINK_<NAME>, in lower case.', value: ({ name }) => name, text: ({ name, row }) => ({ text: name, href: row && sinkPath(name) }) },
  { key: 'kind', schema: z.string(), about: 'The kind of its store.', value: ({ kind }) => kind },
  { key: 'state', label: 'State', list: 'column', schema: z.enum(Object.keys(SINK_STATES)), about: 'What it does: see the states of sinks.', value: ({ state }) => state, text: ({ state }) => SINK_STATES[state][3] ?? state, tone: ({ state }) => SINK_STATES[state][0] },
  { key: 'lag_records', label: 'Behind', list: 'column', schema: z.int().nullable(), about: 'Changes that it has not confirmed; null: it was not fed yet.', value: ({ lagRecords }) => lagRecords, text: lagText },
  { key: 'lag_seconds', schema: COUNT.nullable(), about: 'How long the oldest of them has waited; null: not known.', value: ({ lagSeconds }) => lagSeconds },
  { key: 'cursor', label: 'Confirmed up to', list: 'column', schema: COUNT, about: 'The newest change that it has confirmed; 0: none.', value: ({ row }) => row?.cursor ?? 0 },
  { key: 'acked_at', label: 'Confirmed at', schema: TIME.nullable(), about: 'When it last confirmed a change.', value: ({ row }) => iso(row?.ackedAt ?? null), text: ({ row }) => row?.ackedAt ? { at: row.ackedAt } : null },
  { key: 'rate', label: 'Events/s', list: 'column', schema: z.number(), about: 'Events that it confirms a second; 0: nothing for 30 seconds.', value: (of) => (of.row && isCurrent(of) ? of.row.rate : 0), text: (of) => Math.round(of.row && isCurrent(of) ? of.row.rate : 0) },
  { key: 'parked', label: 'Parked', list: 'column', schema: COUNT, about: 'Events that wait for a decision, or for their delivery.', value: parkedOf, text: (of) => { const text = parkedOf(of); return { text, href: text > 0 ? `${sinkPath(of.name)}#parked` : undefined }; } },
  { key: 'address', label: 'Where', list: 'column', schema: z.string(), about: 'Where its store is, without credentials.', value: ({ address }) => address, text: ({ kind, address }) => `${kind} ${address}` },
  { key: 'held', label: 'Held because', schema: HELD.nullable(), about: 'Why it is held, and how it goes on; null: it is not held.', value: ({ held }) => held, text: ({ held }) => held && `${held.reason}. ${held.advice}`, tone: () => 'bad' },
  { key: 'error', label: 'Last error', list: 'long', schema: z.string().nullable(), about: 'The last error of its store or of its settings; null since a delivery succeeded.', value: ({ error }) => error, text: ({ error, row }) => error === null ? null : { text: error, at: row?.errorAt ?? null }, tone: () => 'bad' },
  { key: 'error_at', schema: TIME.nullable(), about: 'When that was.', value: ({ row }) => iso(row?.errorAt ?? null) },
  { key: 'retry_at', label: 'Next try', schema: TIME.nullable(), about: 'When it is tried again.', value: ({ row }) => iso(row?.retryAt ?? null), text: ({ row }) => row?.retryAt ? { at: row.retryAt } : null },
  { key: 'load_to', label: 'Load', list: 'long', schema: COUNT.nullable(), about: 'The last change of an initial load, or of a reconciliation; null: neither is under way.', value: loadTo, text: loadSaid, tone: ({ state }) => (state === 'reconciling' ? 'accent' : 'soft') },
  { key: 'gaps', label: 'Not delivered', list: 'long', schema: z.array(GAP).readonly(), about: 'Superseded changes that it never got: after one, up to another.', value: (of) => gapsOf(of).map(({ after, upTo, at }) => ({ after, up_to: upTo, at: iso(at) })), text: (of) => gapsOf(of).slice(-MOST_GAPS).map(({ after, upTo, at }) => ({ text: `superseded changes after ${count(after)} up to ${count(upTo)}`, at })), tone: warns },
  { key: 'verified', label: 'Compared with its source', schema: VERIFIED.nullable(), about: 'The last comparison of its store with its source; null before the first.', value: ({ row }) => (row === undefined ? null : checkJson(row)), text: checkSaid, tone: ({ row }) => (row !== undefined && checkJson(row)?.advice ? 'warn' : 'good') },
  { key: 'incomparable', schema: z.string().nullable(), about: 'Why its store can never be compared; null: it can be.', value: ({ kind }) => KINDS[kind]?.incomparable ?? null },
  { key: 'where', label: 'Products, where', schema: z.string().nullable(), about: 'Which products it gets: an SQL expression; null: every one.', value: ({ view }) => view.where, text: ({ view }) => view.where ?? 'every product' },
  { key: 'fields', label: 'Fields', schema: z.string().nullable(), about: 'What it gets of them; null: the whole product.', value: ({ view }) => view.fields, text: ({ view }) => view.fields ?? 'the whole product' },
  { key: 'view_failures', label: 'An expression fails', schema: COUNT, about: 'How often an expression of its view failed on a product, since it has this view.', value: ({ row }) => row?.viewFailures ?? 0, text: ({ row }) => row?.viewFailures ? `${count(row.viewFailures)} times, last on ${row.viewFailure}` : null, tone: warns },
  { key: 'view_failure', schema: z.string().nullable(), about: 'The last such product, and the error.', value: ({ row }) => row?.viewFailure ?? null },
  { key: 'delivered', label: 'Delivered', schema: COUNT, about: 'Events that it has confirmed.', value: ({ row }) => row?.delivered ?? 0, text: ({ row }) => plural(row?.delivered ?? 0, 'event') },
  { key: 'size', label: 'Keeps', schema: z.string().nullable(), about: 'How much a store of events has; null: it is another store, did not answer, or was not asked: only `sink list` asks.', value: ({ size }) => size?.text ?? null, text: ({ size }) => (size && size.limit === null ? `every event (${size.text} now); to limit it, add ${size.option}` : null), tone: warns },
  { key: 'limit', schema: z.string().nullable(), about: 'The option that limits what such a store keeps; null: it grows without a limit, or `size` is null.', value: ({ size }) => size?.limit ?? null },
  { key: 'identity', schema: z.string(), about: 'Identifies the store: a sink with another identity is filled from the beginning.', value: ({ identity }) => identity },
] as const satisfies readonly Row<SinkSeen>[];

export const SINK_SCHEMA = schemaOf('Sink', 'A store that the change log feeds.', SINK);

/** Sorts sinks that need somebody first. */
export function byUrgency(a: SinkSeen, b: SinkSeen): number {
  const places = Object.keys(SINK_STATES);
  const placeOf = (of: SinkSeen) => places.indexOf(of.state) - (parkedOf(of) > 0 ? places.length : 0);
  return placeOf(a) - placeOf(b);
}
