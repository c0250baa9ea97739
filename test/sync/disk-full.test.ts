import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, truthOf } from '../support/mirror.ts';
import { place } from '../support/place.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
/** In blocks of 512 bytes: less than the mirror needs, and more than its first batches need. */
const ROOM = 30_000;

it.each(['sync --full', 'daemon'])(
  'a disk that fills ends %s cleanly, and its run goes on when there is room',
  { tags: ['slow'] },
  async (verb) => {
    const { sandbox, directory, db, settings } = await place(
      { items: 10_000, details: true },
      {
        CATCHWORD_PER_PAGE: '200',
        CATCHWORD_HTTP_PORT: 'off',
        LOG_LEVEL: 'silent',
      },
    );
    // A write beyond the limit fails with EFBIG, like one on a full disk with ENOSPC.
    const limited = `trap '' XFSZ; ulimit -f ${ROOM}; exec "$0" "$1" ${verb}`;
    const ended = await promisify(execFile)('sh', ['-c', limited, process.execPath, CLI], {
      cwd: directory,
      env: { PATH: process.env.PATH, ...settings },
    }).catch((error: { code: number; stderr: string; stdout: string }) => error);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/^error writing the mirror failed: .* \[MIRROR_WRITE_FAILED\]\nhint {2}.*\n$/);

    const applied = catalogOf(db).size;
    expect(applied).toBeGreaterThan(0);
    expect(applied).toBeLessThan(10_000);
    expect(expectExactLog(db)).toBe(applied);

    const run = await load(settings, 'full');
    expect(run).toMatchObject({ id: 1, state: 'complete', created: 10_000 });
    expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
    expect(expectExactLog(db)).toBe(10_000);
  },
);
