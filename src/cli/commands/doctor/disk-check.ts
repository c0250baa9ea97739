import type { Config } from '@catchword/settings/config';
import { count, size } from '../../../report/text.ts';
import { type Disk, diskOf } from '../../../store/file/open-mirror-file.ts';
import type { Store } from '../../../store/store.ts';
import { withMirror } from '../../roles/open-mirror.ts';
import { quoted } from '../completion/verb-tree.ts';
import { failed, note, ok, type Result } from './finding.ts';

const DAY_MS = 86_400_000;
/** The time over which growth is measured. */
const SPAN_MS = 30 * DAY_MS;
/** Less is too little for a forecast: a day may be unusual. */
const LEAST_MS = 7 * DAY_MS;
/** A VACUUM that frees less is not worth its work: new rows use the space. */
const WORTHWHILE = { bytes: 50e6, share: 0.25 };
/** Days until the disk is full; fewer are a reason to act. */
const SOON_DAYS = 30;
/** Days; a forecast for longer is not printed. */
const LONG_DAYS = 3650;

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

function forecast(growth: ReturnType<typeof growthOf>): string {
  if (growth === null) return 'no forecast before a week of runs';
  const { bytesPerDay, daysLeft } = growth;
  if (daysLeft === null) return 'the mirror does not grow';
  const grows = `the mirror grows by ${size(bytesPerDay)} a day`;
  if (daysLeft > LONG_DAYS) return `${grows}, which the disk can hold for ten years`;
  return `${grows}: the disk is full in about ${count(Math.floor(daysLeft))} days`;
}

function vacuumAdvice(store: Store, unused: number, nowMs: number): string {
  const holder = store.daemonLease.holder(nowMs) ?? store.keeperLease.holder(nowMs) ?? store.relayLease.holder(nowMs);
  const stop =
    holder === null
      ? 'While catchword is stopped, run'
      : `Stop process ${holder.pid} on ${holder.host} first, which cannot write while VACUUM works and gives up its run; then run`;
  const needed = size(2 * (store.sizeBytes() - unused));
  return `${stop}: sqlite3 ${quoted(store.path)} VACUUM (it needs up to ${needed} of free space meanwhile).`;
}

/** How long the disk of the mirror lasts, and what a VACUUM would free. */
export function checkDisk(config: Config, nowMs: number): Promise<Result> {
  return withMirror(config, true, (store) => {
    const disk = diskOf(store.path);
    const growth = growthOf(store, disk);
    const unused = store.unusedBytes();
    const text = `${size(disk.free)} free; ${forecast(growth)}; VACUUM would free ${size(unused)}`;
    if (config.minFreeBytes !== null && disk.free < config.minFreeBytes) {
      const hint = 'Free space, or move CATCHWORD_DB. A VACUUM needs free space itself.';
      return failed(`${text}; runs stop below CATCHWORD_MIN_FREE (${size(config.minFreeBytes)})`, hint);
    }
    const isWorthwhile = unused >= WORTHWHILE.bytes && unused >= WORTHWHILE.share * store.sizeBytes();
    if (isWorthwhile) return note(text, vacuumAdvice(store, unused, nowMs));
    if ((growth?.daysLeft ?? Number.POSITIVE_INFINITY) >= SOON_DAYS) return ok(text);
    return note(
      text,
      'Free space, or move CATCHWORD_DB; CATCHWORD_LOG_RETENTION and CATCHWORD_RUN_RETENTION limit what is kept.',
    );
  });
}
