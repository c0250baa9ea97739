import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { createTrouble } from '../../base/trouble.ts';
import { type Lease, type Leased, leaseLost } from './lease.ts';

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

  /** @returns false when the lease was lost */
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

/**
 * Runs one transaction under a lease that is held only for it.
 * @throws CatchwordError MIRROR_BUSY, or what `work` throws
 */
export function writeUnder<T, Writer>(lease: Lease<Writer>, nowMs: number, work: (writer: Writer) => T): T {
  const leased = lease.acquire(nowMs);
  try {
    return leased.write(work);
  } finally {
    leased.release();
  }
}
