import { isUntold } from '@catchword/catalog/reasons';
import { remaining } from '../store/rows/sink-rows.ts';
import type { MirrorState, SinkHealth } from './mirror-state.ts';

/*
 * Problems, by topic: the one list that `status`, the overview, metrics and notifications show. docs/notifications.md
 * describes the topics; ops/alerts.yml has the same limits where it has the same alert.
 */

export const TOPICS = [
  'stale',
  'runs',
  'open',
  'untold',
  'updates',
  'unusual',
  'held',
  'sink',
  'failing',
  'behind',
  'differs',
  'pause',
  'disk',
] as const;
export type Topic = (typeof TOPICS)[number];

export interface Problem {
  readonly topic: Topic;
  /** The sink with the problem. */
  readonly sink?: SinkHealth;
  /** Minimum duration before a notification, milliseconds: less may pass by itself. */
  readonly forMs: number;
  /** False: keeps an open episode open and begins none, so that a value near its limit does not flicker. */
  readonly begins: boolean;
}

const MINUTE_MS = 60_000;
const LASTING_MS = 10 * MINUTE_MS;
const TWICE = 2;
/** Shares of the disk. */
const DISK_FREE = { begins: 0.1, ends: 0.12 };
const LONG_PAUSE_MS = 60 * MINUTE_MS;

const QUIET_MS = 5 * MINUTE_MS;
const LONGEST_QUIET_MS = 6 * 60 * MINUTE_MS;

/** How long a problem must be gone before it is over, milliseconds. @param recent how many times it began within a day */
export function quietMs(recent: number): number {
  return Math.min(LONGEST_QUIET_MS, QUIET_MS * 2 ** Math.max(0, recent - 1));
}

type Found = Pick<Problem, 'topic'> & Partial<Problem>;

function isOutdated({ freshness, nowMs, firstAt, maxAgeMs }: MirrorState): boolean {
  return freshness === 'empty' ? firstAt !== null && nowMs - firstAt > maxAgeMs : freshness !== 'fresh';
}

function sinkProblems(sink: SinkHealth, limitMs: number): Found[] {
  // A paused sink is paused on purpose.
  if (sink.row.state === 'paused') return [];
  const lagMs = 1000 * (sink.lagSeconds ?? 0);
  const found: Found[] = sink.isHalted ? [{ topic: 'sink', sink }] : [];
  // A store that waits for nothing is never behind, such as one whose fill cannot end.
  if (!sink.isHalted && sink.row.retryAt !== null) found.push({ topic: 'failing', sink, forMs: LASTING_MS });
  // A sink that is stopped has its own episode.
  const begins = lagMs > limitMs && !sink.isHalted;
  const check = sink.row.checked;
  const isWrong = check !== null && (check.error !== null || remaining(check) > 0);
  // A store that can never be compared has no problem which a comparison could end.
  if (isWrong && check.allows !== 'nothing') found.push({ topic: 'differs', sink, forMs: 0 });
  if (lagMs > limitMs / 2) found.push({ topic: 'behind', sink, forMs: Math.min(LASTING_MS, limitMs / 3), begins });
  return found;
}

function diskProblems({ disk: { free, size }, isDiskLow }: MirrorState): Found[] {
  const share = free / size;
  const begins = isDiskLow || share < DISK_FREE.begins;
  return begins || share < DISK_FREE.ends ? [{ topic: 'disk', forMs: LASTING_MS, begins }] : [];
}

/** Everything that is wrong now. */
export function problemsOf(state: MirrorState): Problem[] {
  const { failed, retry, open, full, restless, unusual, held, sinks, pause } = state;
  const found: Found[] = [];
  if (isOutdated(state)) found.push({ topic: 'stale', forMs: LASTING_MS });
  // One failure may pass by itself.
  if (failed >= TWICE) found.push({ topic: 'runs' });
  else if (retry !== null) found.push({ topic: 'runs', forMs: LASTING_MS });
  if (open >= TWICE) found.push({ topic: 'open' });
  if (full?.reasons.some(isUntold) === true) found.push({ topic: 'untold' });
  if (restless !== undefined) found.push({ topic: 'updates' });
  // At once: it does not pass by itself.
  if (unusual !== undefined) found.push({ topic: 'unusual', forMs: 0 });
  if (held.length > 0) found.push({ topic: 'held' });
  found.push(...sinks.flatMap((sink) => sinkProblems(sink, state.behindLimitMs)));
  if (pause !== null && pause.until - pause.since >= LONG_PAUSE_MS) found.push({ topic: 'pause' });
  found.push(...diskProblems(state));
  return found.map((one) => ({ forMs: MINUTE_MS, begins: true, ...one }));
}

/** The names of the problems that are open. */
export function namedProblems(state: MirrorState): string[] {
  return problemsOf(state).flatMap((problem) => (problem.begins ? [nameOf(problem)] : []));
}

/** The name of a problem: `stale`, `sink:shop`. At most one episode of a name is open at a time. */
export function nameOf({ topic, sink }: Pick<Problem, 'topic' | 'sink'>): string {
  return sink === undefined ? topic : `${topic}:${sink.row.name}`;
}
