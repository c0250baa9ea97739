import type { Disk } from '../store/file/disk-space.ts';
import type { Store } from '../store/store.ts';

const DAY_MS = 86_400_000;
/** The time over which growth is measured. */
const SPAN_MS = 30 * DAY_MS;
/** Less is too little for a forecast: a day may be unusual. */
const LEAST_MS = 7 * DAY_MS;

/**
 * Compares the sizes that runs noted over the last 30 days, and counts on the free pages of the file and on the free
 * space of its disk. Other files on that disk are taken to stay as they are.
 * @returns null if the runs that noted a size are less than a week apart; `daysLeft` until the disk is full, if it goes on
 *   like this, null if the mirror does not grow
 */
export function growthOf(store: Pick<Store, 'runs' | 'unusedBytes'>, { free }: Pick<Disk, 'free'>) {
  const sizes = store.runs.sizes(SPAN_MS);
  if (sizes === null || sizes.last.at - sizes.first.at < LEAST_MS) return null;
  const { first, last } = sizes;
  const bytesPerDay = Math.max(0, (last.bytes - first.bytes) / ((last.at - first.at) / DAY_MS));
  return { bytesPerDay, daysLeft: bytesPerDay === 0 ? null : (free + store.unusedBytes()) / bytesPerDay };
}
