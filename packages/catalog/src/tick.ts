import type { RunKind } from './run-types.ts';

/** Names a scheduled time, equally on every machine: `full@2026-11-20T02:00:00.000Z`. */
export function tickName(kind: RunKind, atMs: number): string {
  return `${kind}@${new Date(atMs).toISOString()}`;
}

/** The time that a tick names, milliseconds since 1970; null if `tick` was not made by `tickName`. */
export function tickTime(tick: string): number | null {
  const at = Date.parse(tick.replace(/^(full|delta)@/, ''));
  return Number.isNaN(at) ? null : at;
}

export interface MissedTicks {
  /** How many; counted up to MOST_MISSED. */
  readonly ticks: number;
  /** The first and the last of them, milliseconds since 1970. */
  readonly from: number;
  readonly upTo: number;
}

/** A larger number of missed times is `more than`. */
export const MOST_MISSED = 500;

/** What the schedule says of a moment. */
export interface Plans {
  /** When the next runs are scheduled, milliseconds since 1970; null for never. */
  readonly nextFull: number | null;
  readonly nextDelta: number | null;
  /** The times since the newest one that was served; null if there are none, or if none was ever served. */
  readonly missedFull: MissedTicks | null;
  readonly missedDelta: MissedTicks | null;
  /** The zone in which the schedule is read: an IANA name. */
  readonly timezone: string;
}
