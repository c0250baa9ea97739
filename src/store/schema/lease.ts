import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Clock } from '@catchword/base/clock';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import { holdFile, isFileHeld } from '@catchword/base/file-lock';
import type { Logger } from '@catchword/base/log';
import { createTrouble } from '@catchword/base/trouble';
import type { Queries } from './queries.ts';
import type { StartedSettings } from './started-settings.ts';
import type { Transact } from './transaction.ts';

export interface Holder extends Partial<StartedSettings> {
  readonly pid: number;
  readonly host: string;
  /** Ids of the boot and of the process namespace in which `pid` is valid; null if unknown. */
  readonly boot: string | null;
  readonly pidNamespace: string | null;
  /** Whether it had the system's lock of this lease when it renewed the lease last. It keeps the lock while it lives. */
  readonly isLocked?: boolean;
  /** When it got the lease. */
  readonly since?: number;
}

/** One row of the table for each lease. See writers.ts for what each protects. */
export const LEASES = {
  keeper: { id: 1, doing: 'is running a run on this mirror' },
  relay: { id: 2, doing: 'feeds the sinks of this mirror' },
  daemon: { id: 3, doing: 'is the daemon of this mirror' },
} as const;

/** How long a holder may be silent, in milliseconds: others, which look every few seconds, take over within 30 s. */
export const LEASE_TTL_MS = 25_000;
/** The most that a process waits between reading its clock and writing the lease; milliseconds. */
const LOCK_WAIT_MS = 20_000;

export function leaseLost(): CatchwordError {
  const hint = 'Nothing was lost: the other process resumes from the last checkpoint.';
  return new CatchwordError('LEASE_LOST', 'another process has taken over this mirror', { hint });
}

export function thisProcess(): Holder {
  const self = { pid: process.pid, host: hostname() };
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return { ...self, boot, pidNamespace: readlinkSync('/proc/self/ns/pid') };
  } catch {
    // Not Linux: whether another process is alive is unknown, so only expiry ends its lease.
    return { ...self, boot: null, pidNamespace: null };
  }
}

/** True only if it is certain: the holder ran here, before a reboot or under a process id that is free now. */
function isDead(holder: Holder, self: Holder): boolean {
  if (self.boot === null || holder.host !== self.host || holder.pidNamespace !== self.pidNamespace) return false;
  if (holder.boot !== self.boot) return true;
  if (holder.pid === self.pid) return false;
  try {
    process.kill(holder.pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** @returns null if another process has the lock, or this one cannot have any there */
function tryToHold(path: string): (() => void) | null {
  try {
    return holdFile(path);
  } catch {
    return null;
  }
}

/** A lease that was acquired: the only way to its writer. */
export type Leased<Writer> = ReturnType<Lease<Writer>['acquire']>;
export type Lease<Writer> = ReturnType<typeof createLease<Writer>>;

/**
 * Gives one process at a time the right to write. Each holder gets a higher epoch than the one before. One that stops
 * renewing loses the lease when it expires; one that is known to be dead loses it at once.
 * @param started tells with which settings this process was started
 * @param lock the file whose lock shows that a holder lives, also one in another container; null: no lock
 */
export function createLease<Writer>(
  { value, number, write }: Queries,
  { id, doing }: (typeof LEASES)[keyof typeof LEASES],
  writer: Writer,
  self: Holder,
  transact: Transact,
  lock: string | null,
  started: () => Partial<StartedSettings>,
) {
  /** Null if it could not be had. Each lock costs memory, so it is tried once, and kept until the store closes. */
  let unlock: (() => void) | null | undefined;
  /** The epoch of a holder that was found alive by its lock, which is tried once for the same reason. */
  let alive = 0;
  let since: number | undefined;
  const epochOf = number<[id: number]>('SELECT epoch FROM lease WHERE id = ?');
  // An end that is further ahead shows that the clock was put back: a dead holder would keep the lease for as long.
  const longestMs = LEASE_TTL_MS + LOCK_WAIT_MS;
  const holderOf = value<[{ id: number; nowMs: number }], string | null>(
    `SELECT holder FROM lease WHERE id = :id AND expires_at > :nowMs AND expires_at <= :nowMs + ${longestMs}`,
  );
  const take = number<[{ id: number; holder: string; until: number }]>(
    `INSERT INTO lease (id, epoch, holder, expires_at) VALUES (:id, 1, :holder, :until)
     ON CONFLICT (id) DO UPDATE SET epoch = epoch + 1, holder = :holder, expires_at = :until RETURNING epoch`,
  );
  const extend = write('UPDATE lease SET expires_at = ?, holder = ? WHERE id = ? AND epoch = ?');
  const free = write('UPDATE lease SET holder = NULL, expires_at = NULL WHERE id = ? AND epoch = ?');

  /** This process as a holder. Somebody may have removed the file of its lock: then the lock shows nothing. */
  const selfText = () =>
    JSON.stringify({ ...self, ...started(), since, isLocked: unlock != null && lock !== null && isFileHeld(lock) });

  /** The process that holds a lease which has not expired. */
  function holder(nowMs: number): Holder | null {
    const found = JSON.parse(holderOf({ id, nowMs }) ?? 'null') as Holder | null;
    return found === null || isDead(found, self) || hasEnded(found) ? null : found;
  }

  /** Whether the system has ended the lock of a holder. */
  function hasEnded({ isLocked }: Holder): boolean {
    if (lock === null || isLocked !== true || epochOf(id) === alive) return false;
    const release = tryToHold(lock);
    if (release === null) alive = epochOf(id);
    release?.();
    return release !== null;
  }

  function leased(epoch: number) {
    let isReleased = false;

    /** @throws CatchwordError LEASE_LOST */
    function check(): void {
      if (!isReleased && epochOf(id) === epoch) return;
      throw leaseLost();
    }

    return {
      check,
      /** One transaction, after checking in it that the lease is held. @throws LEASE_LOST; as `createWriteTransaction` */
      write: <T>(work: (writer: Writer) => T): T =>
        transact(() => {
          check();
          return work(writer);
        }),
      /** @returns false when the lease was lost */
      renew: (nowMs: number): boolean => transact(() => extend(nowMs + LEASE_TTL_MS, selfText(), id, epoch)) === 1,
      release: (): void => {
        isReleased = true;
        transact(() => free(id, epoch));
      },
    };
  }

  return {
    holder,
    /** @throws CatchwordError MIRROR_BUSY naming the holder */
    acquire: (nowMs: number) =>
      transact(() => {
        const other = holder(nowMs);
        if (other === null) {
          if (unlock === undefined) unlock = lock === null ? null : tryToHold(lock);
          since = nowMs;
          return leased(take({ id, holder: selfText(), until: nowMs + LEASE_TTL_MS }));
        }
        const hint = 'Wait until it ends, or see what it does: npx catchword status.';
        throw new CatchwordError('MIRROR_BUSY', `process ${other.pid} on ${other.host} ${doing}`, { hint });
      }),
    /** Ends the lock. Call it when the store closes. */
    unlock: (): void => unlock?.(),
  };
}

/** A third of the time after which a silent holder loses the lease. */
const RENEW_MS = 8_000;

/**
 * Runs `work` while this process holds a lease, and renews the lease meanwhile. Work that does not write, and so does
 * not check the lease, listens to `lost`, which aborts with LEASE_LOST when another process has the lease.
 * @throws CatchwordError MIRROR_BUSY, or what `work` throws
 */
export async function holdLease<T, Writer>(
  lease: Lease<Writer>,
  clock: Clock,
  log: Logger,
  work: (leased: Leased<Writer>, lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const leased = lease.acquire(clock.now());
  const over = new AbortController();
  const lost = new AbortController();
  const trouble = createTrouble({ clock, log, wrong: 'the lease could not be renewed' });

  function renewOnce(): boolean {
    try {
      return leased.renew(clock.now());
    } catch (error) {
      // It can be retried twice before the lease expires.
      trouble.failed('', { reason: messageOf(error) });
      return true;
    }
  }

  async function renew(): Promise<void> {
    try {
      do await clock.sleep(RENEW_MS, over.signal);
      while (renewOnce());
      lost.abort(leaseLost());
    } catch (error) {
      // An error thrown here would be an unhandled rejection while `work` goes on.
      if (!over.signal.aborted) log.warn({ reason: messageOf(error) }, 'the lease is not renewed any more');
    }
  }

  const renewing = renew();
  try {
    return await work(leased, lost.signal);
  } finally {
    over.abort();
    await renewing;
    try {
      leased.release();
    } catch (error) {
      log.warn({ reason: messageOf(error) }, 'the lease was not released; it expires by itself');
    }
  }
}

/** Runs one transaction under a lease that is held only for it. @throws CatchwordError MIRROR_BUSY, or what `work` throws */
export function writeUnder<T, Writer>(lease: Lease<Writer>, nowMs: number, work: (writer: Writer) => T): T {
  const leased = lease.acquire(nowMs);
  try {
    return leased.write(work);
  } finally {
    leased.release();
  }
}
