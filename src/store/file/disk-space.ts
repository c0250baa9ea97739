import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { withoutLinks } from './open-mirror-file.ts';

export type Disk = ReturnType<typeof diskOf>;

/** The disk that holds a file, in bytes: what this user may use of it, and all. */
export function diskOf(path: string) {
  const { bavail, blocks, bsize } = statfsSync(dirname(withoutLinks(path)));
  return { free: bavail * bsize, size: blocks * bsize };
}
