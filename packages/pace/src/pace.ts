/** At most this many requests in any window of this length. */
export interface Rate {
  readonly requests: number;
  readonly windowMs: number;
}

export interface Pace {
  readonly intervalMs: number;
  /** How late a request may be without delaying later ones. */
  readonly slackMs: number;
}

/** How much slower than the limit requests are sent, so that network jitter and late timers do not exceed it. */
const MARGIN = 0.01;

export function paceOf(rate: Rate | null): Pace | null {
  if (rate === null) return null;
  return { intervalMs: ((1 + MARGIN) * rate.windowMs) / rate.requests, slackMs: (MARGIN * rate.windowMs) / 2 };
}
