import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Service } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import type { Leased } from '../store/lease.ts';
import type { Reader } from '../store/reader.ts';
import type { Store } from '../store/store.ts';

/** A third of the time after which a silent daemon counts as gone. */
const BEAT_MS = 10_000;

export interface PresenceOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Shows in the mirror that a daemon lives, between runs and without sinks too. Of several daemons one is shown; another
 * takes its place when it is gone.
 */
export function showPresence({ store, clock, log }: PresenceOptions): Service {
  const { daemonLease: lease } = store;
  const stopping = new AbortController();
  let leased: Leased<Reader> | null = null;

  function beat(): void {
    try {
      if (leased === null || !leased.renew(clock.now())) leased = lease.acquire(clock.now());
    } catch (error) {
      leased = null;
      log.debug({ reason: messageOf(error) }, 'another daemon is shown as the one of this mirror');
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      beat();
      await clock.sleep(BEAT_MS, stopping.signal).catch(() => {});
    }
  }

  const running = run();
  return {
    name: 'presence',
    stop: async () => {
      stopping.abort();
      await running;
      if (leased === null) return;
      try {
        leased.release();
      } catch (error) {
        log.debug({ reason: messageOf(error) }, 'the daemon is shown until its lease expires');
      }
      leased = null;
    },
  };
}
