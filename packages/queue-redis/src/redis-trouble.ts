import type { Clock } from '@catchword/base/clock';
import type { Logger } from '@catchword/base/log';
import { createTrouble } from '@catchword/base/trouble';

/** The commands that Redis answers with an error, over all connections of a process. */
export type RedisTrouble = ReturnType<typeof createRedisTrouble>;

/** Logs such commands, and knows them for `/healthz`. One for each process, so that a reason has one line. */
export function createRedisTrouble({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
  const wrong = 'Redis refuses commands, trying again';
  const trouble = createTrouble({ clock, log, wrong, over: 'Redis takes commands again' });
  let isLost = false;
  return {
    /** @param reason as Redis gives it; its first word is the kind of error: OOM, NOPERM */
    failed: (what: string, reason: string): void =>
      trouble.failed(/^[A-Z]{2,}\b/.exec(reason)?.[0] ?? 'connection', { what, reason }),
    passed: trouble.passed,
    /** Notes whether the connection is lost, which has lines of its own. */
    setLost: (lost: boolean): void => {
      isLost = lost;
    },
    /** For readers who may not see the text of Redis. @returns null if all is well */
    problem: (): string | null => {
      const kinds = new Set([...trouble.current(), ...(isLost ? ['connection'] : [])]);
      return kinds.size === 0 ? null : `problems with Redis: ${[...kinds].join(', ')}`;
    },
  };
}
