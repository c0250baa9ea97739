import type { Run } from '@catchword/catalog/run-types';
import type { Rate } from '@catchword/pace/pace';
import type { RunWatch } from './run-watch.ts';

const MINUTE = 60;
/** Points of the chart. Of a shorter time, a curve says nothing. */
const POINTS = { least: 10, most: 240 };
/** A shorter run has no chart. */
export const CHART_LEAST_MS = POINTS.least * 1_000;
/** The pace of the last five minutes tells when the run ends. */
const PACE_SECONDS = 300;
/** Longest chart. For safety: the clocks of the machines that make requests may differ by years. */
const CHART_SECONDS = 2 * 86_400;
/** A run that has not read a window for so long, although no pause is known, has no predictable end. */
const SILENT_MS = 120_000;

/** The limit as requests a minute; null without one. */
export function perMinute(rate: Rate | null): number | null {
  return rate === null ? null : (rate.requests * 60_000) / rate.windowMs;
}

type Seconds = ReturnType<RunWatch['seconds']>;

/**
 * Requests in the minute before each moment: `from` on, in seconds since 1970, every `step` seconds.
 * @param untilMs the last moment; null: the last request
 * @returns null if the time is too short for a chart
 */
export function paceSeries(seconds: Seconds, untilMs: number | null) {
  if (seconds.size === 0) return null;
  const all = [...seconds.keys()];
  const last = all.reduce((one, other) => Math.max(one, other));
  const first = all.reduce((one, other) => Math.min(one, other));
  const from = Math.max(first, last - CHART_SECONDS);
  // The last second is not over.
  const now = untilMs === null ? last : Math.floor(untilMs / 1000) - 1;
  const until = Math.min(Math.max(last, now), from + CHART_SECONDS);
  const step = Math.max(1, Math.ceil((until - from) / POINTS.most));
  const requests: number[] = [];
  let sum = 0;
  for (let second = from; second <= until; second++) {
    sum += seconds.get(second)?.requests ?? 0;
    sum -= seconds.get(second - MINUTE)?.requests ?? 0;
    if ((second - from) % step === 0) requests.push(sum);
  }
  return requests.length < POINTS.least ? null : { from, step, requests };
}

/** Requests that were answered in the last minute. */
export function requestsInLastMinute(seconds: Seconds, nowMs: number): number {
  const now = Math.floor(nowMs / 1000);
  let sum = 0;
  for (let second = now - MINUTE + 1; second <= now; second++) sum += seconds.get(second)?.requests ?? 0;
  return sum;
}

interface Left {
  readonly run: Pick<Run, 'settlesAt'>;
  readonly seconds: Seconds;
  /** Windows that are planned and not read. */
  readonly windows: number;
  /** The end of a pause that the source asked for; null without one. */
  readonly pausedUntil: number | null;
  /** The expected wait before the last delta; 0 for none. */
  readonly settleMs: number;
  readonly nowMs: number;
}

/** Predicts the end of a run from the pace of the last minutes, milliseconds since 1970; null if that is not possible. */
export function predictedEnd({ run, seconds, windows, pausedUntil, settleMs, nowMs }: Left): number | null {
  if (run.settlesAt !== null) return Math.max(run.settlesAt, nowMs);
  const newest = [...seconds.keys()].reduce((one, other) => Math.max(one, other), 0);
  const recent = [...seconds].filter(([second]) => second > newest - PACE_SECONDS);
  const read = recent.reduce((sum, [, { windows: some }]) => sum + some, 0);
  const oldest = recent.reduce((least, [second]) => Math.min(least, second), newest);
  const span = (newest - oldest + 1) * 1000;
  if (read < 3 || span < 2_000 || windows === 0) return null;
  if (pausedUntil === null && nowMs - newest * 1000 > SILENT_MS) return null;
  const start = pausedUntil ?? Math.max(nowMs - SILENT_MS, newest * 1000);
  return Math.max(nowMs, start + (windows * span) / read) + settleMs;
}
