import { withAbort } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { repeat, type Service, serveUntil } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import { holdLease } from '../../store/schema/hold-lease.ts';
import type { LeasedDaemon } from '../../store/schema/writers.ts';
import type { Store } from '../../store/store.ts';

/** How often to check whether the daemon that is recorded is gone. */
const CHECK_MS = 10_000;

interface PresenceOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Starts services that only the recorded daemon runs. */
  readonly start?: (leased: LeasedDaemon) => Service[];
}

/** Records in the mirror that a daemon is running. If several run, one is recorded, and another when it ends. */
export function showPresence({ store, clock, log, start = () => [] }: PresenceOptions): Service {
  async function turn(stopping: AbortSignal): Promise<void> {
    try {
      await holdLease(store.daemonLease, clock, log, (leased, lost) =>
        withAbort([stopping, lost], (over) => serveUntil(over, start(leased))),
      );
    } catch (error) {
      log.debug({ reason: messageOf(error) }, 'another daemon is recorded as the one of this mirror');
    }
  }

  return repeat({ name: 'presence', clock, everyMs: CHECK_MS, turn });
}
