import type { StoredSize } from '../relay/sink.ts';
import type { SinkConfig } from '../relay/sink-config.ts';
import type { sinkSummary } from './sink-report.ts';
import { type Colours, count, duration, table, time } from './text.ts';

/** The last error of a sink, and when it happened. */
export function errorText({ error, error_at: at }: Pick<ReturnType<typeof sinkSummary>, 'error' | 'error_at'>): string {
  return `${error ?? ''}${at === null ? '' : ` (${time(at)})`}`;
}

/** Sinks as `sink list` prints them for a person. */
export function sinkListLines(
  c: Colours,
  sinks: readonly ReturnType<typeof sinkSummary>[],
  fresh: readonly SinkConfig[],
  sizes: ReadonlyMap<string, StoredSize | null>,
): string[] {
  if (sinks.length + fresh.length === 0) {
    return ['no sinks: set CATCHWORD_SINK_<NAME>, such as CATCHWORD_SINK_FILE=jsonl:data/changes.jsonl'];
  }
  const head = ['name', 'kind', 'where', 'cursor', 'behind', 'for', 'state', 'rate', 'parked'];
  const rows = sinks.map((sink) => {
    const behindFor = sink.lag_seconds === null ? '–' : duration(sink.lag_seconds * 1000);
    const { name, kind, address, cursor, lag_records, state, parked } = sink;
    return [name, kind, address, cursor, lag_records, behindFor, state, `${count(Math.round(sink.rate))}/s`, parked];
  });
  const freshRows = fresh.map(({ name, kind, address }) => [name, kind, address, 0, '–', '–', 'new', '–', 0]);
  const errors = sinks.flatMap((sink) => (sink.error === null ? [] : [`${sink.name}: ${errorText(sink)}`]));
  const gaps = sinks.flatMap(({ name, gaps }) =>
    gaps.map(({ after, up_to }) => `${name}: superseded changes after ${after} up to ${up_to} were not delivered`),
  );
  const held = sinks.flatMap(({ name, held }) =>
    held === null ? [] : [`${name} is held: ${held.reason}`, `  ${held.advice}`],
  );
  const moving = sinks.flatMap(({ name, state, cursor, load_to: to }) =>
    state === 'reconciling' ? [`${name} gets only what differs from what its store has: up to ${cursor} of ${to}`] : [],
  );
  const failures = sinks.flatMap(({ name, view_failures: failed, view_failure: last }) =>
    failed === 0 ? [] : [`${name}: an expression of its view failed ${failed} times, last on ${last}`],
  );
  const growing = [...sizes].flatMap(([name, size]) => {
    if (size === null || size.limit !== null) return [];
    return [`${name}: keeps every event (${size.text} now); to limit it, add ${size.option}`];
  });
  return [
    table(head, [...rows, ...freshRows]),
    ...[...held, ...moving, ...failures, ...errors, ...gaps, ...growing].map(c.yellow),
  ];
}
