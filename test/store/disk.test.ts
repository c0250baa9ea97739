import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { diskOf } from '../../src/store/file/open-mirror-file.ts';

it.skipIf(process.platform !== 'linux')('a link is measured by the disk of the file that it names', () => {
  const link = join(temporaryDirectory(), 'catalog.db');
  symlinkSync('/proc/version', link);
  expect(diskOf(link)).toEqual({ free: 0, size: 0 });
});
