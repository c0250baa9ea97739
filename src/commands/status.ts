import { Command } from 'commander';
import type { Run } from '../catalog/run.ts';
import type { Config } from '../config.ts';
import { sinkSummary } from '../report/sink.ts';
import { completeAt, statusOf } from '../report/status.ts';
import { plansOf } from '../schedule/due.ts';
import { openStore, type Store } from '../store/store.ts';
import type { CommandContext } from './shared/context.ts';
import { ago, colours, count, duration, moment, plural, printJson, printLine, size } from './shared/format.ts';
import { loadSettings } from './shared/settings.ts';
import { settlingText } from './shared/settling.ts';

/** Opens an existing mirror for the time of `work`, which may write. */
export function withMirror<T>(context: CommandContext, work: (store: Store, config: Config) => T): T {
  return withOpened(context, false, work);
}

/** Opens an existing mirror for the time of `work`; this user may have no right to write it. */
export function readMirror<T>(context: CommandContext, work: (store: Store, config: Config) => T): T {
  return withOpened(context, true, work);
}

function withOpened<T>(context: CommandContext, forReading: boolean, work: (store: Store, config: Config) => T): T {
  const config = loadSettings(context, 'nothing');
  const store = openStore(config.db, { mustExist: true, forReading, mode: config.dbMode });
  try {
    return work(store, config);
  } finally {
    store.close();
  }
}

type Status = ReturnType<typeof statusOf>;

interface SinkStatus {
  readonly name: string;
  readonly state: string;
  readonly lag_records: number | null;
  readonly lag_seconds: number | null;
  readonly error: string | null;
  readonly error_at: string | null;
  readonly retry_at: string | null;
}

/** Each sink that the mirror knows, and those of the settings that no relay has fed yet. */
function sinksOf(store: Store, config: Config, nowMs: number): SinkStatus[] {
  const known = store.sinks.list().map((sink): SinkStatus => {
    const { name, state, lag_records, lag_seconds, error, error_at, retry_at } = sinkSummary(store, sink, nowMs);
    return { name, state, lag_records, lag_seconds, error, error_at, retry_at };
  });
  const names = new Set(known.map(({ name }) => name));
  const fresh = config.sinks.filter(({ name }) => !names.has(name));
  const nothing = { lag_records: null, lag_seconds: null, error: null, error_at: null, retry_at: null };
  return [...known, ...fresh.map(({ name }): SinkStatus => ({ ...nothing, name, state: 'new' }))];
}

function time(isoText: string): string {
  return `${moment(Date.parse(isoText))} UTC`;
}

function processText({ pid, host }: { readonly pid: number; readonly host: string }): string {
  return `process ${pid} on ${host}`;
}

function daemonLine({ daemon, relay }: Status): string {
  if (daemon !== null) return processText(daemon);
  return relay === null ? 'no daemon is running' : `no daemon is running; ${processText(relay)} delivers to the sinks`;
}

function lastRunLines(
  { id, kind, state, startedAt, pages, finishedAt, error }: Run,
  isRunning: boolean,
  retryReason: string | null,
): string[] {
  const head = `${id}, ${kind}, ${state}, ${moment(startedAt)} UTC, ${plural(pages, 'page')}`;
  if (finishedAt === null && !isRunning) {
    const why = retryReason === null ? '' : ` (${retryReason})`;
    return [head, `it did not finish${why}: the daemon resumes it, or: npx catchword sync`];
  }
  return error === null ? [head] : [head, `${state === 'failed' ? 'it failed: ' : ''}${error}`];
}

function plannedText({ next_full: full, next_delta: delta, next_try: retry }: Status): string | null {
  const planned = [
    full === null ? [] : [`full load ${time(full)}`],
    delta === null ? [] : [`delta load ${time(delta)}`],
    retry === null ? [] : [`another try ${time(retry)}`],
  ].flat();
  return planned.length === 0 ? null : planned.join(', ');
}

function sinkLine({ name, state, lag_records: lag, lag_seconds: seconds, error, error_at: at }: SinkStatus): string {
  if (lag === null) return `${name}: ${state}, nothing is delivered before the daemon (or relay) starts`;
  const since = seconds === null ? '' : ` for ${duration(seconds * 1000)}`;
  const behind = lag === 0 ? 'up to date' : `${plural(lag, 'change')} behind${since}`;
  const failure = error === null ? '' : `: ${error}${at === null ? '' : ` (${time(at)})`}`;
  return `${name}: ${state}, ${behind}${failure}`;
}

function printStatus(context: CommandContext, store: Store, status: Status, sinks: readonly SinkStatus[]): void {
  const c = colours(context, context.stdout);
  const line = (label: string, text: string): void => printLine(context, `${label.padEnd(11)}${text}`);
  const [last] = store.runs.list(1);
  const completedAt = completeAt(store);
  line('mirror', `${status.mirror} (${size(status.bytes)})`);
  line('products', count(status.products));
  line('changes', count(status.last_seq));
  line(
    'complete',
    completedAt === null
      ? c.yellow('never (the first full load has not finished)')
      : `up to ${moment(store.watermark())} UTC, ${ago(completedAt, context.clock.now())}`,
  );
  if (status.blocked_until !== null) line('source', `asks for no request before ${time(status.blocked_until)}`);
  const aboutLast = last === undefined ? [] : lastRunLines(last, status.running !== null, status.retry_reason);
  for (const [index, text] of aboutLast.entries()) {
    line(index === 0 ? 'last run' : '', index === 0 ? text : c.yellow(text));
  }
  const settling = last === undefined ? null : settlingText(last);
  if (settling !== null) line('settling', settling);
  const planned = plannedText(status);
  if (planned !== null) line('next', planned);
  for (const { run, removals, reason } of status.held_runs) {
    const why = reason === null ? '' : ` (${reason})`;
    line('held', c.yellow(`run ${run}: ${plural(removals, 'removal')} to decide on${why}: npx catchword run ${run}`));
  }
  if (status.running !== null) line('running', `a run, in ${processText(status.running)}`);
  line('daemon', daemonLine(status));
  for (const sink of sinks) line('sink', sink.error === null ? sinkLine(sink) : c.yellow(sinkLine(sink)));
}

export function statusCommand(context: CommandContext): Command {
  return new Command('status')
    .description('show the mirror, how fresh it is, the last run, the daemon and the sinks')
    .option('--json', 'print one JSON document')
    .action((options: { json?: boolean }) =>
      readMirror(context, (store, config) => {
        const nowMs = context.clock.now();
        store.read(() => {
          const status = statusOf(store, nowMs, plansOf(config, nowMs));
          const sinks = sinksOf(store, config, nowMs);
          if (options.json) printJson(context, { ...status, sinks });
          else printStatus(context, store, status, sinks);
        });
      }),
    );
}
