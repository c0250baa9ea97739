import { iso } from '@catchword/base/iso-time';
import * as z from 'zod';
import { reasonText } from '../report/reason-text.ts';
import { openText, restlessText, settlingText, unusualText } from '../report/run-text.ts';
import { otherSettingsTexts } from '../report/status-report.ts';
import { type Colours, count, localIso, plural, size, time } from '../report/text.ts';
import { FRESHNESS } from '../state/mirror-state.ts';
import { namedProblems } from '../state/problems.ts';
import { count as counted, list, named, textOrNull, timeOrNull } from './described.ts';
import { CHANNEL, CHANNEL_SCHEMA, channelTrouble } from './shown-channel.ts';
import { PROBLEM, PROBLEM_SCHEMA, problemSaid } from './shown-problem.ts';
import { HOLDER } from './shown-process.ts';
import { COUNT, jsonOf, type Row, rowsOf, saidOf, schemaOf, TIME, type Tone, textOf } from './shown-row.ts';
import { RUN_SCHEMA, runJson } from './shown-run.ts';
import { SINK } from './shown-sink.ts';
import type { StatusSeen } from './status-seen.ts';
import * as words from './status-text.ts';

const HOLDER_SCHEMA = schemaOf('Process', 'A process of catchword.', HOLDER);

const MISSED = named('Missed', 'Scheduled times since the newest one that was served.', {
  ticks: counted('How many scheduled times; 501 means more than 500.'),
  from: timeOrNull('The first of them.'),
  up_to: timeOrNull('The last of them.'),
  reason: textOrNull('Why no run made up for them, as far as the mirror knows it.'),
});

const HELD_RUN = z.object({
  run: counted('The number of the run.'),
  removals: counted('How many products it would remove.'),
  reason: textOrNull('Why it waits.'),
});
const OPEN_RUN = z.object({
  run: counted('The number of the run.'),
  reasons: list('Why, one sentence each.', z.string()),
  rejected: counted('Items that it rejected.'),
  missing: counted('Products that it did not see and did not remove.'),
});
const RESTLESS_RUN = z.object({
  run: counted('The number of the run.'),
  updated: counted('Products that it updated.'),
  field: textOrNull('The field that changed most often, as in `common_change`.'),
});

/** What the status has of a sink. */
// biome-ignore format: the members of a sink.
const OF_SINK = rowsOf(SINK, ...(['name', 'state', 'held', 'lag_records', 'lag_seconds', 'parked', 'error', 'error_at', 'retry_at'] as const));

const warn = (): Tone => 'warn';
const warnIf = (isWrong: boolean): Tone => (isWrong ? 'warn' : 'soft');
/** Sentences, each with its own tone. */
const lines = (texts: readonly string[]) => texts.map((one) => ({ text: one }));
/** When something starts; null if no daemon is alive to start it. */
const planned = ({ servers }: StatusSeen, at: number | null): number | null => (servers.daemon === null ? null : at);

function localPlanned(of: StatusSeen, at: number | null): string | null {
  const ms = planned(of, at);
  return ms === null ? null : localIso(ms, of.plans.timezone);
}

function heldTexts({ held }: StatusSeen): string[] {
  return held.map(({ run, removals, reason }) => {
    const why = reason === null ? '' : ` (${reason})`;
    return `run ${run}: ${plural(removals, 'removal')} to decide on${why}: npx catchword run ${run}`;
  });
}

/** The state of the mirror, in the order of `status`. */
// biome-ignore format: a row is a line.
export const STATUS = [
  { key: 'mirror', label: 'mirror', schema: z.string(), about: 'Path of the mirror.', value: ({ store }) => store.path, text: ({ store }) => `${store.path} (${size(store.sizeBytes())})` },
  { key: 'incarnation', schema: z.string(), about: 'Random id of the history of this mirror. Another one means that numbers mean other changes.', value: ({ store }) => store.incarnation },
  { key: 'bytes', schema: COUNT, about: 'Size of the file.', value: ({ store }) => store.sizeBytes() },
  { key: 'products', label: 'products', schema: COUNT, about: 'Products that are not removed.', value: ({ products }) => products, text: words.productsText },
  { key: 'last_seq', label: 'changes', schema: COUNT, about: 'The number of the newest change; 0 if there is none.', value: ({ store }) => store.changes.lastSeq() },
  { key: 'watermark', schema: TIME.nullable(), about: 'The source\'s time up to which the mirror is complete, where the next delta starts.', value: ({ store }) => iso(store.watermark()) },
  { key: 'freshness', label: 'complete', schema: z.enum(FRESHNESS), about: '`empty`: never complete. `stale`: older than CATCHWORD_READY_MAX_AGE. `clock`: as of a time that the clock of this machine has not reached by more than that, so its age is not known.', value: ({ state }) => state.freshness, text: ({ state }) => words.completeText(state), tone: ({ state }) => warnIf(state.freshness !== 'fresh') },
  { key: 'age_seconds', schema: COUNT.nullable(), about: 'How long ago the mirror was complete, by the clock of this machine. Null if it never was, or that is not known.', value: ({ state: { ageMs } }) => (ageMs === null ? null : Math.round(ageMs / 1000)) },
  { key: 'blocked_until', label: 'source', schema: TIME.nullable(), about: 'Until when the source asked to wait.', value: ({ state }) => iso(state.pause?.until ?? null), text: ({ state: { pause } }) => pause && `asks for no request before ${time(pause.until)}` },
  { key: 'learned_limit', label: 'limit', schema: COUNT.nullable(), about: 'Requests a minute, learned from refusals and used while CATCHWORD_RATE_LIMIT is off. Null before the first refusal.', value: ({ limit }) => limit, text: ({ limit }) => (limit === null ? null : `${count(limit)} requests a minute, learned; used while CATCHWORD_RATE_LIMIT is off`) },
  { key: 'learned_page_size', label: 'pages', schema: COUNT.nullable(), about: 'Products a page, used for a week because the source does not answer pages of CATCHWORD_PER_PAGE. Null if it does.', value: ({ pageSize }) => pageSize, text: ({ pageSize }) => (pageSize === null ? null : `${plural(pageSize, 'product')} each, because the source does not answer CATCHWORD_PER_PAGE`) },
  { key: 'last_run', label: 'last run', schema: RUN_SCHEMA.nullable(), about: 'The newest run, as `run ID --json`.', value: ({ last }) => (last === undefined ? null : runJson(last)), text: ({ last }) => (last === undefined ? null : words.lastRunText(last)) },
  { key: 'failure', label: '', about: 'Why it did not complete.', value: (of) => (of.last === undefined ? null : words.failureText(of.last, of)), tone: warn },
  { key: 'settling', label: 'settling', about: 'What it waits for.', value: ({ last }) => last && settlingText(last) },
  { key: 'open_run', label: 'open', schema: OPEN_RUN.nullable(), about: 'The newest full run, if it could not prove that it saw every product; else null.', value: ({ open }) => open && { run: open.id, reasons: open.reasons.map(reasonText), rejected: open.rejected, missing: open.missing }, text: ({ open }) => open && openText(open), tone: warn },
  { key: 'source_total', schema: z.int().nullable(), about: "The source's own total in the newest full run; null if none is known.", value: ({ total }) => total },
  { key: 'restless_run', label: 'updates', schema: RESTLESS_RUN.nullable(), about: 'The newest run of the last 26 hours that updated nearly every product; null if none did.', value: ({ state: { restless } }) => (restless ? { run: restless.id, updated: restless.updated, field: restless.field } : null), text: ({ state: { restless } }) => restless ? `run ${restless.id} ${Object.values(restlessText(restless)).join('. ')}` : null, tone: warn },
  { key: 'unusual', label: 'unusual', about: 'The unusual run that is still a problem.', value: ({ state: { unusual } }) => unusual && `run ${unusual.run} ${Object.values(unusualText(unusual)).join('. ')}`, tone: warn },
  { key: 'next', label: 'next', about: 'What the schedule starts next.', value: words.plannedText },
  { key: 'next_full', schema: TIME.nullable(), about: 'When the next full run starts. Null if no daemon is alive to start it.', value: (of) => iso(planned(of, of.plans.nextFull)) },
  { key: 'next_delta', schema: TIME.nullable(), about: 'When the next delta starts. Null if no daemon is alive to start it.', value: (of) => iso(planned(of, of.plans.nextDelta)) },
  { key: 'next_full_local', schema: TIME.nullable(), about: '`next_full` by the clock of `timezone`, with its offset.', value: (of) => localPlanned(of, of.plans.nextFull) },
  { key: 'next_delta_local', schema: TIME.nullable(), about: '`next_delta` by the clock of `timezone`, with its offset.', value: (of) => localPlanned(of, of.plans.nextDelta) },
  { key: 'timezone', schema: z.string(), about: 'The zone in which the schedule is read (CATCHWORD_TIMEZONE), an IANA name.', value: ({ plans }) => plans.timezone },
  { key: 'missed_full', label: 'missed', schema: MISSED.nullable(), about: 'Full runs that were scheduled and not made; null if none.', value: ({ missed }) => missed.missed_full, text: ({ missed, plans }) => lines(words.missedTexts(missed, plans.timezone)), tone: warn },
  { key: 'missed_delta', schema: MISSED.nullable(), about: 'The same for deltas.', value: ({ missed }) => missed.missed_delta },
  { key: 'next_try', schema: TIME.nullable(), about: 'When a failed run is retried.', value: (of) => iso(planned(of, of.state.retry?.at ?? null)) },
  { key: 'retry_reason', schema: z.string().nullable(), about: 'Why it failed.', value: ({ state }) => state.retry?.reason ?? null },
  { key: 'held', schema: z.array(z.int()).readonly(), about: 'Runs that wait for a decision about removals.', value: ({ state }) => state.held },
  { key: 'held_runs', label: 'held', schema: z.array(HELD_RUN).readonly(), about: 'The same runs, with what they would remove.', value: ({ held }) => held, text: (of) => lines(heldTexts(of)), tone: warn },
  { key: 'running', label: 'running', schema: HOLDER_SCHEMA.nullable(), about: 'The process that makes a run; the run itself is `last_run`.', value: ({ running }) => running && jsonOf(HOLDER, running), text: ({ running }) => running && `a run, in ${words.processText(running)}` },
  { key: 'daemon', label: 'daemon', schema: HOLDER_SCHEMA.nullable(), about: 'The daemon or keeper.', value: ({ servers: { daemon } }) => daemon && jsonOf(HOLDER, daemon), text: ({ servers }) => words.daemonText(servers) },
  { key: 'relay', schema: HOLDER_SCHEMA.nullable(), about: 'The process that feeds the sinks.', value: ({ servers: { relay } }) => relay && jsonOf(HOLDER, relay) },
  { key: 'settings', label: 'settings', about: 'Settings that a running process was not started with.', value: ({ servers }) => lines(otherSettingsTexts(servers)), tone: warn },
  { key: 'sinks', label: 'sink', schema: z.array(schemaOf('SinkStatus', 'A sink, in part.', OF_SINK)).readonly(), about: 'The sinks, in part: `/api/sinks` and `sink list --json` have all of each.', value: ({ sinks }) => sinks.map((sink) => jsonOf(OF_SINK, sink)), text: ({ sinks, servers }) => sinks.map((sink) => ({ text: words.sinkText(sink, servers), tone: warnIf(sink.error !== null) })) },
  { key: 'channels', label: 'channel', schema: z.array(CHANNEL_SCHEMA).readonly(), about: 'The channels of the settings.', value: ({ channels }) => channels.map((channel) => jsonOf(CHANNEL, channel)), text: ({ channels, servers }) => channels.map((channel) => ({ text: words.channelText(channel, servers), tone: warnIf(channelTrouble(channel) !== null) })) },
  { key: 'problems', schema: z.array(z.string()).readonly(), about: 'Problems by the topics of notifications: `runs`, `sink:NAME`.', value: ({ state }) => namedProblems(state) },
  { key: 'episodes', label: 'wrong', schema: z.array(PROBLEM_SCHEMA).readonly(), about: 'Problems that are open, as they were noticed for notifications.', value: ({ problems }) => problems.map((problem) => jsonOf(PROBLEM, problem)), text: ({ problems }) => problems.map((problem) => ({ text: `${problemSaid(problem)}${problem.isGone ? '' : ` (since ${time(problem.beganAt)})`}`, tone: warnIf(!problem.isGone) })) },
] as const satisfies readonly Row<StatusSeen>[];

export const STATUS_SCHEMA = schemaOf(
  'Status',
  'The state of the mirror, as `catchword status --json` prints it.',
  STATUS,
);

/** The state of the mirror, for a person: a line for each thing that there is to say. */
export function statusLines({ yellow }: Colours, of: StatusSeen): string[] {
  const rows: readonly Row<StatusSeen>[] = STATUS;
  return rows.flatMap((row) =>
    saidOf(row, of).flatMap((said) => {
      if (row.label === undefined) return [];
      const line = textOf(said);
      return `${row.label.padEnd(11)}${(said.tone ?? row.tone?.(of)) === 'warn' ? yellow(line) : line}`;
    }),
  );
}
