import type { Run } from '../catalog/run-types.ts';
import { MOST_MISSED } from '../catalog/tick.ts';
import type { MirrorState } from '../state/mirror-state.ts';
import type { Store } from '../store/store.ts';
import { openText, restlessText, settlingText, unusualText } from './run-text.ts';
import { errorText, type sinkStatuses } from './sink-report.ts';
import {
  type channelStatuses,
  type episodesJson,
  type Missed,
  otherSettingsTexts,
  type statusOf,
} from './status-report.ts';
import { ago, type Colours, count, duration, plural, size, time, timeIn } from './text.ts';

type Status = ReturnType<typeof statusOf>;
type SinkStatus = ReturnType<typeof sinkStatuses>[number];

function processText({ pid, host }: { readonly pid: number; readonly host: string }): string {
  return `process ${pid} on ${host}`;
}

function daemonText({ daemon, relay }: Status): string {
  if (daemon !== null) return processText(daemon);
  return relay === null ? 'no daemon is running' : `no daemon is running; ${processText(relay)} delivers to the sinks`;
}

function lastRunText({ id, kind, state, startedAt, pages }: Run): string {
  return `${id}, ${kind}, ${state}, ${time(startedAt)}, ${plural(pages, 'page')}`;
}

/** Says why the last run did not complete; null if it did, or is still running. */
function failureText({ finishedAt, state, error }: Run, { running, retry_reason: reason }: Status): string | null {
  if (finishedAt === null && running === null) {
    const why = reason === null ? '' : ` (${reason})`;
    return `it did not finish${why}: the daemon resumes it, or: npx catchword sync`;
  }
  return error === null ? null : `${state === 'failed' ? 'it failed: ' : ''}${error}`;
}

function plannedText({ next_full: full, next_delta: delta, next_try: retry, timezone }: Status): string | null {
  const planned = { 'full load': full, 'delta load': delta, 'another try': retry };
  const texts = Object.entries(planned).flatMap(([name, at]) =>
    at === null ? [] : [`${name} ${timeIn(Date.parse(at), timezone)}`],
  );
  return texts.join(', ') || null;
}

/** `3 scheduled delta loads, 2026-11-20 02:00:00 UTC to …: no daemon is running` */
export function missedTexts({ missed_full: full, missed_delta: delta }: Missed, timezone: string): string[] {
  return Object.entries({ full, delta }).flatMap(([kind, missed]) => {
    if (missed === null) return [];
    const { ticks, from, up_to: upTo, reason } = missed;
    const many = ticks > MOST_MISSED ? `more than ${count(MOST_MISSED)}` : count(ticks);
    const first = timeIn(Date.parse(from ?? ''), timezone);
    const when = ticks === 1 ? first : `${first} to ${timeIn(Date.parse(upTo ?? ''), timezone)}`;
    return `${many} scheduled ${kind} load${ticks === 1 ? '' : 's'}, ${when}${reason === null ? '' : `: ${reason}`}`;
  });
}

/** Whether a running process was started with another setting than the command that asks. */
function isElsewise({ daemon, relay }: Status, setting: string): boolean {
  return [daemon, relay].some((server) => server?.other_settings.includes(setting) === true);
}

function sinkText(sink: SinkStatus, status: Status): string {
  const { name, state, lag_records: lag, lag_seconds: seconds, parked } = sink;
  if (lag === null) {
    const wrong = sink.error === null ? '' : `: ${errorText(sink)}`;
    const start =
      status.relay === null && status.daemon === null
        ? 'the daemon (or relay) starts'
        : 'you restart the daemon (or relay)';
    return `${name}: ${state}, nothing is delivered before ${start}${wrong}`;
  }
  const since = seconds === null ? '' : ` for ${duration(seconds * 1000)}`;
  const behind = lag === 0 ? 'up to date' : `${plural(lag, 'change')} behind${since}`;
  const refused = parked === 0 ? '' : `, ${plural(parked, 'event')} parked (npx catchword sink parked ${name})`;
  if (sink.held !== null) return `${name}: ${state}, ${behind}${refused}: ${sink.held.reason}. ${sink.held.advice}`;
  return `${name}: ${state}, ${behind}${refused}${sink.error === null ? '' : `: ${errorText(sink)}`}`;
}

/** A channel, for a person. */
function channelText(channel: ReturnType<typeof channelStatuses>[number], status: Status): string {
  const { name, kind, delivered_at: at, waiting, given_up: givenUp, error, next_try_at: next } = channel;
  const isUsed = !isElsewise(status, `CATCHWORD_NOTIFY_${name.toUpperCase()}`);
  const parts = [at === null ? 'no message so far' : `last message ${time(at)}`];
  if (!isUsed) parts.push('not used as it is set here before you restart the daemon');
  if (waiting > 0) parts.push(`${plural(waiting, 'message')} waiting${next === null ? '' : ` until ${time(next)}`}`);
  if (givenUp > 0) parts.push(`${plural(givenUp, 'message')} given up`);
  return `${name}: ${kind}, ${parts.join(', ')}${error === null ? '' : `: ${error}`}`;
}

/** With the source's own total, if it is another one. */
function productsText({ products, source_total: total }: Status): string {
  return total === null || total === products
    ? count(products)
    : `${count(products)}, the source had ${count(total)} in the last full run`;
}

interface Parts {
  readonly sinks: readonly SinkStatus[];
  readonly episodes: ReturnType<typeof episodesJson>;
  readonly channels: ReturnType<typeof channelStatuses>;
}

/** Says when the mirror was complete. */
export function completeText({ asOf, freshness, nowMs }: MirrorState): string {
  if (asOf === null) return 'never: the first full load has not finished';
  if (freshness === 'clock')
    return `as of ${time(asOf)}, which this machine's clock has not reached: its age is unknown`;
  return `as of ${time(asOf)}, ${ago(asOf, nowMs)}${freshness === 'stale' ? ': too old to rely on' : ''}`;
}

/** Says of a problem that is gone until when it is watched. */
function watchedText({ topic, message, watched_until: until }: Parts['episodes'][number]): string {
  const end = until === null ? 'for a few minutes' : `until ${time(until).slice(11)}`;
  const [title = ''] = message.split('. ');
  return `${topic.startsWith('differs:') ? 'repaired' : 'gone'}, watching ${end}: ${title}`;
}

/** The state of the mirror, for a person. */
export function statusLines(c: Colours, store: Store, state: MirrorState, status: Status, parts: Parts) {
  const { yellow } = c;
  const { sinks, episodes, channels } = parts;
  const [last] = store.runs.list(1);
  const failure = last && failureText(last, status);
  const {
    restless_run: restless,
    open_run: open,
    learned_page_size: learnedPage,
    learned_limit: learnedLimit,
  } = status;
  const held = status.held_runs.map(({ run, removals, reason }) => {
    const why = reason === null ? '' : ` (${reason})`;
    return `run ${run}: ${plural(removals, 'removal')} to decide on${why}: npx catchword run ${run}`;
  });
  const marked = ({ error }: { readonly error: string | null }, text: string) => (error === null ? text : yellow(text));
  const rows: Readonly<Record<string, string | null | undefined | false | readonly string[]>> = {
    mirror: `${status.mirror} (${size(status.bytes)})`,
    products: productsText(status),
    changes: count(status.last_seq),
    complete: state.freshness === 'fresh' ? completeText(state) : yellow(completeText(state)),
    source: status.blocked_until && `asks for no request before ${time(status.blocked_until)}`,
    limit:
      learnedLimit !== null &&
      `${count(learnedLimit)} requests a minute, learned; used while CATCHWORD_RATE_LIMIT is off`,
    pages:
      learnedPage !== null &&
      `${plural(learnedPage, 'product')} each, because the source does not answer CATCHWORD_PER_PAGE`,
    'last run': last && lastRunText(last),
    '': failure && yellow(failure),
    settling: last && settlingText(last),
    open: open && yellow(openText({ ...open, id: open.run })),
    updates: restless && yellow(`run ${restless.run} ${Object.values(restlessText(restless)).join('. ')}`),
    unusual:
      state.unusual && yellow(`run ${state.unusual.run} ${Object.values(unusualText(state.unusual)).join('. ')}`),
    next: plannedText(status),
    missed: missedTexts(status, status.timezone).map(yellow),
    held: held.map(yellow),
    running: status.running && `a run, in ${processText(status.running)}`,
    daemon: daemonText(status),
    settings: otherSettingsTexts(status).map(yellow),
    sink: sinks.map((sink) => marked(sink, sinkText(sink, status))),
    channel: channels.map((channel) => marked(channel, channelText(channel, status))),
    wrong: episodes.map((episode) =>
      episode.gone ? watchedText(episode) : yellow(`${episode.message} (since ${time(episode.began_at ?? '')})`),
    ),
  };
  return Object.entries(rows).flatMap(([label, texts]) =>
    [texts || []].flat().map((text) => `${label.padEnd(11)}${text}`),
  );
}
