import type { Clock } from './clock.ts';
import type { LogFields, Logger } from './log.ts';

const MINUTE_MS = 60_000;

interface TroubleOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly level?: 'warn' | 'error';
  /** Constant text for a failure. */
  readonly wrong: string;
  /** Constant text for the end of a reason; default: the end has no line. */
  readonly over?: string;
}

/** A reason; `unsaid` counts the failures since its last line. */
type Known = { readonly fields: LogFields } & Readonly<Record<'saidAt' | 'lastAt' | 'unsaid' | 'failures', number>>;

/**
 * Logs what a loop fails at again and again: one line when a reason begins, one a minute with the number of failures, and
 * one when it has been over for a minute. So a reason that comes and goes does not fill the log either.
 */
export function createTrouble({ clock, log, level = 'warn', wrong, over }: TroubleOptions) {
  const reasons = new Map<string, Known>();
  // A clock may be put back.
  const isOld = (at: number): boolean => Math.abs(clock.now() - at) >= MINUTE_MS;
  return {
    /** Notes a failure. @param reason one of few words; `fields` describe it */
    failed: (reason: string, fields: LogFields): void => {
      const lastAt = clock.now();
      const before = reasons.get(reason) ?? { saidAt: Number.NEGATIVE_INFINITY, unsaid: 0, failures: 0 };
      const isDue = isOld(before.saidAt);
      const [unsaid, failures] = [before.unsaid + 1, before.failures + 1];
      reasons.set(reason, { ...before, fields, lastAt, failures, unsaid, ...(isDue && { saidAt: lastAt, unsaid: 0 }) });
      if (isDue) log[level]({ ...fields, failures: unsaid }, wrong);
    },
    /** Notes that a try has succeeded: reasons that have not come back for a minute are over. */
    passed: (): void => {
      for (const [reason, { fields, lastAt, failures }] of reasons) {
        if (!isOld(lastAt)) continue;
        reasons.delete(reason);
        if (over !== undefined) log.info({ ...fields, failures }, over);
      }
    },
    /** The reasons of the last minute. */
    current: (): string[] => [...reasons].filter(([, { lastAt }]) => !isOld(lastAt)).map(([reason]) => reason),
  };
}
