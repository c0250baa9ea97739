import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { withoutLinks } from './open-mirror-file.ts';

export interface Disk {
  readonly free: number;
  readonly size: number;
}

/** The disk that holds a file, in bytes: what this user may use of it, and all. */
export function diskOf(path: string): Disk {
  const { bavail, blocks, bsize } = statfsSync(dirname(withoutLinks(path)));
  return { free: bavail * bsize, size: blocks * bsize };
}
