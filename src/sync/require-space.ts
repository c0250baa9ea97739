import { CatchwordError } from '../base/errors.ts';
import { diskOf } from '../store/file/disk-space.ts';

const MB = 1e6;

/**
 * Checks before pages are requested that the disk of the mirror has room for them, because other programs may suffer
 * more from a full disk than a mirror from a late run. Takes microseconds.
 * @throws CatchwordError MIRROR_DISK_LOW; the run can be resumed
 */
export function requireSpace(path: string, minFreeBytes: number | null): void {
  if (minFreeBytes === null) return;
  const { free } = diskOf(path);
  if (free >= minFreeBytes) return;
  const what = `the disk of ${path} has ${Math.floor(free / MB)} MB free, and CATCHWORD_MIN_FREE asks for ${minFreeBytes / MB} MB`;
  const hint =
    'Free space, or move CATCHWORD_DB; the run goes on from where it is. npx catchword doctor says what VACUUM would free.';
  throw new CatchwordError('MIRROR_DISK_LOW', what, { hint });
}
