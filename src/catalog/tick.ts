import type { RunKind } from './run.ts';

/** Names a scheduled time, equally on every machine: `full@2026-11-20T02:00:00.000Z`. */
export function tickName(kind: RunKind, atMs: number): string {
  return `${kind}@${new Date(atMs).toISOString()}`;
}

/** The time that a tick names, milliseconds since 1970; null if `tick` was not made by `tickName`. */
export function tickTime(tick: string): number | null {
  const at = Date.parse(tick.replace(/^(full|delta)@/, ''));
  return Number.isNaN(at) ? null : at;
}

/** When the next runs are scheduled, milliseconds since 1970; null for never. */
export interface Plans {
  readonly nextFull: number | null;
  readonly nextDelta: number | null;
}
