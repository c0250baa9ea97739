import type { Clock } from './clock.ts';
import type { LogFields, Logger } from './log.ts';

const MINUTE_MS = 60_000;

interface TroubleOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly level?: 'warn' | 'error';
  /** What happens while there is a reason: a constant text. */
  readonly wrong: string;
  /** The same for the end. */
  readonly over: string;
}

interface Known {
  fields: LogFields;
  saidAt: number;
  lastAt: number;
  /** Failures since the last line, and all of them. */
  unsaid: number;
  failures: number;
}

/**
 * Logs what a loop fails at again and again: one line when a reason begins, one a minute with the number of failures, and
 * one when it has been over for a minute. So a reason that comes and goes does not fill the log either.
 */
export function createTrouble({ clock, log, level = 'warn', wrong, over }: TroubleOptions) {
  const reasons = new Map<string, Known>();
  // A clock may be put back.
  const isOld = (at: number): boolean => Math.abs(clock.now() - at) >= MINUTE_MS;

  function passed(): void {
    for (const [reason, { fields, lastAt, failures }] of reasons) {
      if (!isOld(lastAt)) continue;
      reasons.delete(reason);
      log.info({ ...fields, failures }, over);
    }
  }

  return {
    /** Notes a failure. @param reason one of few words; `fields` describe it */
    failed: (reason: string, fields: LogFields): void => {
      const now = clock.now();
      const { saidAt, unsaid, failures } = reasons.get(reason) ?? { saidAt: null, unsaid: 0, failures: 0 };
      const known = { fields, saidAt: saidAt ?? now, lastAt: now, unsaid: unsaid + 1, failures: failures + 1 };
      reasons.set(reason, known);
      if (saidAt !== null && !isOld(saidAt)) return;
      log[level]({ ...fields, failures: known.unsaid }, wrong);
      known.saidAt = now;
      known.unsaid = 0;
    },
    /** Notes that a try has succeeded: reasons that have not come back for a minute are over. */
    passed,
    /** The reasons of the last minute. */
    current: (): string[] => [...reasons.keys()].filter((reason) => !isOld(reasons.get(reason)?.lastAt ?? 0)),
  };
}
