import { withAbort } from '@catchword/base/abort';
import type { Clock } from '@catchword/base/clock';
import { hasCode, messageOf } from '@catchword/base/errors';
import { repeat, type Service, serveUntil, startTogether } from '@catchword/base/lifecycle';
import type { Logger } from '@catchword/base/log';
import { holdLease } from '../../store/schema/lease.ts';
import type { LeasedDaemon } from '../../store/schema/writers.ts';
import { openStore, type Store, type StoreOptions } from '../../store/store.ts';

interface StandbyOptions extends Pick<StoreOptions, 'mode' | 'checkContent' | 'settings'> {
  readonly role: string;
  /** Path of the mirror. */
  readonly db: string;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Starts the services that only the active process runs.
   * @param tookOver whether this process has waited
   * @param leased the lease of the active process
   */
  readonly start: (services: Service[], tookOver: boolean, leased: LeasedDaemon) => Promise<void>;
}

/** How often a process that stands by checks whether the active one is gone. */
const CHECK_MS = 2_000;

/**
 * Starts services in one process at a time.
 *
 * ```
 *   lease free? ─ yes ─► active ─ lease lost ─┐
 *        └─ no ─► standing by ◄───────────────┘
 * ```
 * @returns as soon as this process is active or stands by
 * @throws what `start` throws the first time
 */
export async function startStandby({ role, db, clock, log, start, ...options }: StandbyOptions): Promise<Service> {
  let waited = false;
  let standsBy = false;
  /** Stays open from one try to the next, because every opening costs memory; see statements.ts. */
  let mirror: Store | undefined;
  let settle = (): void => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });

  async function serve(leased: LeasedDaemon, stopping: AbortSignal, lost: AbortSignal): Promise<void> {
    const services = await startTogether(async (started) => {
      await start(started, waited, leased);
      return started;
    });
    standsBy = false;
    log.info({ role, services: services.map(({ name }) => name) }, waited ? 'took over' : 'started');
    settle();
    function onStopping(): void {
      if (!lost.aborted) return;
      const reason = 'this machine was suspended, or another program kept the mirror locked';
      log.warn({ role, reason }, 'another process has taken over, because this one did not renew its lease in time');
    }
    await withAbort([stopping, lost], (over) => serveUntil(over, services, onStopping));
  }

  async function turn(stopping: AbortSignal): Promise<void> {
    // Only the first try may create it.
    mirror ??= openStore(db, { ...options, mustExist: waited });
    let held = false;
    try {
      await holdLease(mirror.daemonLease, clock, log, (leased, lost) => {
        held = true;
        return serve(leased, stopping, lost);
      });
    } catch (error) {
      if (held || !hasCode(error, 'MIRROR_REPLACED', 'MIRROR_BUSY')) throw error;
      // The next try opens the new file. This one stays open, because closing it would write to the new one.
      if (error.code === 'MIRROR_REPLACED') mirror = undefined;
      else if (!standsBy) {
        log.info({ role, reason: messageOf(error) }, 'standing by');
        standsBy = true;
      }
    }
    waited = true;
    settle();
  }

  const trying = repeat({ name: role, clock, everyMs: CHECK_MS, turn });
  async function stop(): Promise<void> {
    await trying.stop();
    mirror?.close();
    mirror = undefined;
  }
  await Promise.race([settled, trying.failed]).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { ...trying, stop };
}

/** How often to check whether the daemon that is recorded is gone. */
const PRESENCE_CHECK_MS = 10_000;

/**
 * Records in the mirror that a daemon is running. If several run, one is recorded, and another when it ends.
 * @param start starts services that only the recorded daemon runs
 */
export function showPresence(
  { store, clock, log }: Pick<StandbyOptions, 'clock' | 'log'> & { readonly store: Store },
  start: (leased: LeasedDaemon) => Service[] = () => [],
): Service {
  async function turn(stopping: AbortSignal): Promise<void> {
    try {
      await holdLease(store.daemonLease, clock, log, (leased, lost) =>
        withAbort([stopping, lost], (over) => serveUntil(over, start(leased))),
      );
    } catch (error) {
      log.debug({ reason: messageOf(error) }, 'another daemon is recorded as the one of this mirror');
    }
  }

  return repeat({ name: 'presence', clock, everyMs: PRESENCE_CHECK_MS, turn });
}
