import type { Clock } from '../clock.ts';
import { messageOf } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { LeaseStore } from './lease.ts';

/** A third of the time after which a silent holder loses the lease. */
const RENEW_MS = 10_000;

/**
 * Does `work` while this process holds the mirror's lease, and renews it meanwhile.
 *
 * A lease that was lost is noticed where it matters: every write checks the epoch in its own transaction. Work that writes
 * nothing by itself listens to `lost`, which aborts when the lease cannot be renewed because another process has it.
 *
 * @throws CatchwordError MIRROR_BUSY, or what `work` throws
 */
export async function holdLease<T>(
  lease: LeaseStore,
  clock: Clock,
  log: Logger,
  work: (epoch: number, lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const epoch = lease.acquire(clock.now());
  const over = new AbortController();
  const lost = new AbortController();

  /** @returns false when there is nothing to renew any more */
  function renewOnce(): boolean {
    try {
      return lease.renew(epoch, clock.now());
    } catch (error) {
      // There are two more tries before it expires.
      log.warn({ reason: messageOf(error) }, 'the lease could not be renewed');
      return true;
    }
  }

  async function renew(): Promise<void> {
    try {
      do await clock.sleep(RENEW_MS, over.signal);
      while (renewOnce());
      lost.abort();
    } catch (error) {
      // Nobody awaits this while the work goes on: what is thrown here would end the process.
      if (!over.signal.aborted) log.warn({ reason: messageOf(error) }, 'the lease is not renewed any more');
    }
  }

  const renewing = renew();
  try {
    return await work(epoch, lost.signal);
  } finally {
    over.abort();
    await renewing;
    try {
      lease.release(epoch);
    } catch (error) {
      log.warn({ reason: messageOf(error) }, 'the lease was not given back; it expires by itself');
    }
  }
}
