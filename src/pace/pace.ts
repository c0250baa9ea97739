/** At most this many requests in any window of this length. */
export interface Rate {
  readonly requests: number;
  readonly windowMs: number;
}

export interface Pace {
  readonly intervalMs: number;
  /** How late a request may be without delaying those behind it. */
  readonly slackMs: number;
}

/** How much slower than the limit requests are sent, so that network jitter and late timers do not exceed it. */
const MARGIN = 0.01;

export function paceOf(rate: Rate | null): Pace | null {
  if (rate === null) return null;
  return { intervalMs: ((1 + MARGIN) * rate.windowMs) / rate.requests, slackMs: (MARGIN * rate.windowMs) / 2 };
}

/** The fewest requests that can be split into two parts of whole ones. */
export const LEAST_APART = 2;

/**
 * Splits a limit between fetchers and commands. With Redis, which does not know the requests that commands make, each
 * keeps its own part, so that commands such as point lookups do not wait for a full load.
 *
 * The parts are whole requests. With nine tenths and a tenth of the interval, each could make one request more than its
 * part in some window, so that 45 a minute became 46. Only a learned limit may be below `LEAST_APART`; then each has half.
 */
export function lanesOf({ requests, windowMs }: Rate): Readonly<Record<'fetchers' | 'commands', Rate>> {
  const byCommands = requests < LEAST_APART ? requests / 2 : Math.max(1, Math.floor(requests / 10));
  return {
    fetchers: { requests: requests - byCommands, windowMs },
    commands: { requests: byCommands, windowMs },
  };
}
