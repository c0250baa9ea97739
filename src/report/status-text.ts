import type { Run } from '../catalog/run.ts';
import type { Store } from '../store/store.ts';
import { settlingText } from './run-text.ts';
import type { SinkStatus } from './sink.ts';
import { completeAt, type statusOf } from './status.ts';
import { ago, type Colours, count, duration, plural, size, time } from './text.ts';

type Status = ReturnType<typeof statusOf>;

function processText({ pid, host }: { readonly pid: number; readonly host: string }): string {
  return `process ${pid} on ${host}`;
}

function daemonText({ daemon, relay }: Status): string {
  if (daemon !== null) return processText(daemon);
  return relay === null ? 'no daemon is running' : `no daemon is running; ${processText(relay)} delivers to the sinks`;
}

/** Why the last run did not complete; null if it did, or is still running. */
function failureText({ finishedAt, state, error }: Run, { running, retry_reason: reason }: Status): string | null {
  if (finishedAt === null && running === null) {
    const why = reason === null ? '' : ` (${reason})`;
    return `it did not finish${why}: the daemon resumes it, or: npx catchword sync`;
  }
  return error === null ? null : `${state === 'failed' ? 'it failed: ' : ''}${error}`;
}

function plannedText({ next_full: full, next_delta: delta, next_try: retry }: Status): string | null {
  const planned = { 'full load': full, 'delta load': delta, 'another try': retry };
  const texts = Object.entries(planned).flatMap(([name, at]) => (at === null ? [] : [`${name} ${time(at)}`]));
  return texts.length === 0 ? null : texts.join(', ');
}

function sinkText({ name, state, lag_records: lag, lag_seconds: seconds, error, error_at: at }: SinkStatus): string {
  if (lag === null) return `${name}: ${state}, nothing is delivered before the daemon (or relay) starts`;
  const since = seconds === null ? '' : ` for ${duration(seconds * 1000)}`;
  const behind = lag === 0 ? 'up to date' : `${plural(lag, 'change')} behind${since}`;
  const failure = error === null ? '' : `: ${error}${at === null ? '' : ` (${time(at)})`}`;
  return `${name}: ${state}, ${behind}${failure}`;
}

/** The state of the mirror, for a person. */
export function statusLines(
  { yellow }: Colours,
  store: Store,
  status: Status,
  sinks: readonly SinkStatus[],
  nowMs: number,
): string[] {
  const [last] = store.runs.list(1);
  const completedAt = completeAt(store);
  const complete =
    completedAt === null
      ? yellow('never (the first full load has not finished)')
      : `up to ${time(store.watermark() ?? 0)}, ${ago(completedAt, nowMs)}`;
  const failure = last === undefined ? null : failureText(last, status);
  const rows: [string, string | null][] = [
    ['mirror', `${status.mirror} (${size(status.bytes)})`],
    ['products', count(status.products)],
    ['changes', count(status.last_seq)],
    ['complete', complete],
    ['source', status.blocked_until && `asks for no request before ${time(status.blocked_until)}`],
    [
      'last run',
      last === undefined
        ? null
        : `${last.id}, ${last.kind}, ${last.state}, ${time(last.startedAt)}, ${plural(last.pages, 'page')}`,
    ],
    ['', failure && yellow(failure)],
    ['settling', last === undefined ? null : settlingText(last)],
    ['next', plannedText(status)],
    ...status.held_runs.map(({ run, removals, reason }): [string, string] => {
      const why = reason === null ? '' : ` (${reason})`;
      return [
        'held',
        yellow(`run ${run}: ${plural(removals, 'removal')} to decide on${why}: npx catchword run ${run}`),
      ];
    }),
    ['running', status.running && `a run, in ${processText(status.running)}`],
    ['daemon', daemonText(status)],
    ...sinks.map((sink): [string, string] => ['sink', sink.error === null ? sinkText(sink) : yellow(sinkText(sink))]),
  ];
  return rows.flatMap(([label, text]) => (text === null ? [] : [`${label.padEnd(11)}${text}`]));
}
