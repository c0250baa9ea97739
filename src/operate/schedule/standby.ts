import { withAbort } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { hasCode, messageOf } from '../../base/errors.ts';
import { failureOf, type Service, serveUntil, startTogether } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import { holdLease } from '../../store/schema/hold-lease.ts';
import type { LeasedDaemon } from '../../store/schema/writers.ts';
import { openStore, type Store } from '../../store/store.ts';

interface StandbyOptions {
  readonly role: string;
  /** Path of the mirror, and the mode of its files. */
  readonly db: string;
  readonly mode: number | undefined;
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
export async function startStandby({ role, db, mode, clock, log, start }: StandbyOptions): Promise<Service> {
  const stopping = new AbortController();
  let waited = false;
  let standsBy = false;
  /** Stays open from one try to the next, because every opening costs memory; see statements.ts. */
  let mirror: Store | undefined;
  let settle = (): void => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });

  async function serve(leased: LeasedDaemon, lost: AbortSignal): Promise<void> {
    const services = await startTogether(async (started) => {
      await start(started, waited, leased);
      return started;
    });
    standsBy = false;
    log.info({ role, services: services.map(({ name }) => name) }, waited ? 'took over' : 'started');
    settle();
    function onStopping(): void {
      if (!lost.aborted) return;
      log.warn({ role }, 'another process has taken over because this one was suspended for too long');
    }
    await withAbort([stopping.signal, lost], (over) => serveUntil(over, services, onStopping));
  }

  /** @returns false if another process is active */
  async function tryOnce(): Promise<boolean> {
    // Only the first try may create it.
    mirror ??= openStore(db, { mustExist: waited, mode });
    let held = false;
    try {
      await holdLease(mirror.daemonLease, clock, log, (leased, lost) => {
        held = true;
        return serve(leased, lost);
      });
      return true;
    } catch (error) {
      if (!held && hasCode(error, 'MIRROR_REPLACED')) {
        // The next try opens the new file. This one stays open, because closing it would write to the new one.
        mirror = undefined;
        return false;
      }
      if (held || !hasCode(error, 'MIRROR_BUSY')) throw error;
      if (!standsBy) log.info({ role, reason: messageOf(error) }, 'standing by');
      standsBy = true;
      return false;
    }
  }

  async function run(): Promise<void> {
    try {
      while (!stopping.signal.aborted) {
        const wasActive = await tryOnce();
        waited = true;
        settle();
        if (!wasActive) await clock.sleep(CHECK_MS, stopping.signal).catch(() => {});
      }
    } finally {
      mirror?.close();
    }
  }

  const running = run();
  await Promise.race([settled, running]);
  return {
    name: role,
    failed: failureOf(running),
    stop: async () => {
      stopping.abort();
      await running.catch(() => {});
    },
  };
}
