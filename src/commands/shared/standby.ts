import type { Clock } from '../../clock.ts';
import { CatchwordError, systemCodeOf } from '../../errors.ts';
import { failureOf, type Service, serveUntil } from '../../lifecycle.ts';
import type { Logger } from '../../log.ts';
import { holdLease } from '../../store/hold-lease.ts';
import { openStore } from '../../store/store.ts';

export interface StandbyOptions {
  readonly role: string;
  /** The mirror's file. */
  readonly db: string;
  /** Mode of the mirror's files. */
  readonly mode: number | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Starts what only one process at a time may do. @param waited whether another process did it until now */
  readonly start: (waited: boolean) => Promise<Service[]>;
}

/** How often a process that stands by looks whether the active one is gone. */
const LOOK_MS = 2_000;

/**
 * ```
 *   lease free? ─ yes ─► active ─ lease lost ─┐
 *        └─ no ─► standing by ◄───────────────┘
 * ```
 * The lease is held for as long as the process is active. It is lost only by a process that was silent for longer than the
 * lease lasts (a suspended machine), after another has taken over.
 *
 * @returns as soon as the process is active or stands by
 * @throws whatever `start` throws the first time
 */
export async function startAlone({ role, db, mode, clock, log, start }: StandbyOptions): Promise<Service> {
  const stopping = new AbortController();
  let waited = false;
  let standsBy = false;

  async function serve(settled: () => void, lost: AbortSignal): Promise<void> {
    const services = await start(waited);
    standsBy = false;
    log.info({ role, services: services.map(({ name }) => name) }, waited ? 'took over' : 'started');
    settled();
    const over = new AbortController();
    const end = (): void => over.abort();
    for (const signal of [stopping.signal, lost]) signal.addEventListener('abort', end, { once: true });
    if (stopping.signal.aborted || lost.aborted) end();
    try {
      await serveUntil(over.signal, services, () => {
        if (lost.aborted)
          log.warn({ role }, 'another process has taken over, because this one was silent for too long');
      });
    } finally {
      for (const signal of [stopping.signal, lost]) signal.removeEventListener('abort', end);
    }
  }

  /** @returns false where another process is active */
  async function tryOnce(settled: () => void): Promise<boolean> {
    // Opened for each try: a file that was replaced meanwhile has another lease. Only the first try may create it.
    const store = openStore(db, { mustExist: waited, mode });
    let held = false;
    try {
      await holdLease(store.daemonLease, clock, log, (_leased, lost) => {
        held = true;
        return serve(settled, lost);
      });
      return true;
    } catch (error) {
      if (held || !(error instanceof CatchwordError) || error.code !== 'MIRROR_BUSY') throw error;
      if (!standsBy) log.info({ role, reason: error.message }, 'standing by');
      standsBy = true;
      return false;
    } finally {
      store.close();
    }
  }

  async function run(settled: () => void): Promise<void> {
    while (!stopping.signal.aborted) {
      const wasActive = await tryOnce(settled);
      waited = true;
      settled();
      if (!wasActive) await clock.sleep(LOOK_MS, stopping.signal).catch(() => {});
    }
  }

  let settle = (): void => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  const running = run(settle);
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

/**
 * Starts a server for which the process that was active until now may still hold the port: where that is so, the service
 * returned goes on trying.
 * @throws whatever else `start` throws
 */
export async function startWhenPortIsFree(
  start: () => Promise<Service>,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<Service> {
  const stopping = new AbortController();
  let service: Service | undefined;
  let said = false;

  async function tryOnce(): Promise<boolean> {
    try {
      service = await start();
      return true;
    } catch (error) {
      const isTaken = error instanceof CatchwordError && systemCodeOf(error.cause) === 'EADDRINUSE';
      if (!isTaken) throw error;
      if (!said) log.warn({ code: error.code, reason: error.message }, 'the port is not free yet, trying again');
      said = true;
      return false;
    }
  }

  async function tryOn(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(LOOK_MS, stopping.signal).catch(() => {});
      if (stopping.signal.aborted || (await tryOnce())) return;
    }
  }

  if ((await tryOnce()) && service !== undefined) return service;
  const trying = tryOn();
  return {
    name: 'web',
    // Once it is started, its own failures count.
    failed: failureOf(trying.then(() => service?.failed)),
    stop: async () => {
      stopping.abort();
      await trying.catch(() => {});
      await service?.stop();
    },
  };
}
