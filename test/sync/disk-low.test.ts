import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, truthOf } from '../support/mirror.ts';
import { filled, place } from '../support/place.ts';

/** Mounts a small disk in memory; null where that is not allowed. */
function smallDisk(directory: string, megabytes: number): string | null {
  const path = join(directory, 'disk');
  mkdirSync(path);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path], { stdio: 'ignore' });
  } catch {
    return null;
  }
  onTestFinished(() => {
    execFileSync('umount', [path]);
  });
  return path;
}

async function requestsTo(url: string): Promise<number> {
  const response = await fetch(`${url}/_sandbox/requests`);
  return (await response.text()).split('\n').filter((line) => line.includes('/v4/products')).length;
}

it('a run requests nothing while less is free than the setting asks for, and goes on when there is', async () => {
  const { sandbox, settings, directory, db } = await filled({ items: 30 });
  const before = await requestsTo(sandbox.url);
  const low = { ...settings, CATCHWORD_MIN_FREE: '100000GB' };
  for (let time = 0; time < 2; time++) {
    const refused = await runHere(['sync', '--full'], low, directory);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(
      /^error the disk of .* has \d+ MB free, and CATCHWORD_MIN_FREE asks for 100000000 MB \[MIRROR_DISK_LOW\]\nhint {2}Free space/m,
    );
  }
  expect(await requestsTo(sandbox.url)).toBe(before);
  // The run waits, and is not made twice.
  expect(await load({ ...settings, CATCHWORD_MIN_FREE: 'off' }, 'full')).toMatchObject({ id: 2, state: 'complete' });
  expect(expectExactLog(db)).toBe(30);
});

it('a run stops while there is still room, and keeps what was read', { tags: ['slow'] }, async ({ skip }) => {
  const { sandbox, settings, directory } = await place({ items: 10_000, details: true }, { CATCHWORD_PER_PAGE: '100' });
  const disk = smallDisk(directory, 200);
  if (disk === null) return skip('this user may not mount a small disk');
  const db = join(disk, 'catalog.db');
  const own = { ...settings, CATCHWORD_DB: db };
  const stopped = await runHere(['sync', '--full'], { ...own, CATCHWORD_MIN_FREE: '204MB' }, directory);
  expect(stopped.stderr).toContain('[MIRROR_DISK_LOW]');
  expect(stopped.code).toBe(1);
  const applied = catalogOf(db).size;
  expect(applied).toBeGreaterThan(0);
  expect(applied).toBeLessThan(10_000);
  expect(expectExactLog(db)).toBe(applied);

  const run = await load({ ...own, CATCHWORD_MIN_FREE: '1MB' }, 'full');
  expect(run).toMatchObject({ id: 1, state: 'complete', created: 10_000 });
  expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
});
