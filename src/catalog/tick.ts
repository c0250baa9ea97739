import type { RunKind } from './run.ts';

/** The name of a scheduled moment, the same on every machine: `full@2026-11-20T02:00:00.000Z`. */
export function tickName(kind: RunKind, atMs: number): string {
  return `${kind}@${new Date(atMs).toISOString()}`;
}

/** The moment that a tick names, milliseconds since 1970; null where `tick` is not a name that `tickName` gives. */
export function tickTime(tick: string): number | null {
  const at = Date.parse(tick.replace(/^(full|delta)@/, ''));
  return Number.isNaN(at) ? null : at;
}

/** When the schedule starts the next runs, milliseconds since 1970; null for never. */
export interface Plans {
  readonly nextFull: number | null;
  readonly nextDelta: number | null;
}
