import { Command } from 'commander';
import type { Run } from '../catalog/run.ts';
import { type SinkStatus, sinkStatuses } from '../report/sink.ts';
import { completeAt, statusOf } from '../report/status.ts';
import { plansOf } from '../schedule/due.ts';
import type { Store } from '../store/store.ts';
import type { CommandContext } from './shared/context.ts';
import { ago, colours, count, duration, plural, print, settlingText, size, time } from './shared/format.ts';
import { readMirror } from './shared/mirror.ts';

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

function statusLines(context: CommandContext, store: Store, status: Status, sinks: readonly SinkStatus[]): string[] {
  const { yellow } = colours(context, context.stdout);
  const [last] = store.runs.list(1);
  const completedAt = completeAt(store);
  const complete =
    completedAt === null
      ? yellow('never (the first full load has not finished)')
      : `up to ${time(store.watermark() ?? 0)}, ${ago(completedAt, context.clock.now())}`;
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

export function statusCommand(context: CommandContext): Command {
  return new Command('status')
    .description('show mirror size, freshness, the last run, the daemon and the sinks')
    .option('--json', 'print one JSON document')
    .action((options: { json?: boolean }) =>
      readMirror(context, (store, config) =>
        store.read(() => {
          const nowMs = context.clock.now();
          const status = statusOf(store, nowMs, plansOf(config, nowMs));
          const sinks = sinkStatuses(store, config.sinks, nowMs);
          print(context, options, { ...status, sinks }, statusLines(context, store, status, sinks));
        }),
      ),
    );
}
