import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Notice } from '@catchword/base/log';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { createVirtualClock } from '@catchword/testing/test-clocks';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { createPaceWriter, createSourceReader } from '../../src/store/rows/source-state.ts';
import { createQueries } from '../../src/store/schema/queries.ts';
import { mirrorPacer } from '../../src/sync/shared-pace.ts';
import { openedStore } from '../store/opened-store.ts';
import { run, start } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { place } from '../support/place.ts';

/** When requests of the interface arrived at the sandbox; milliseconds since 1970. */
async function arrivals({ url }: Sandbox): Promise<number[]> {
  const response = await fetch(`${url}/_sandbox/requests`);
  return ((await response.json()) as { at: number }[]).map(({ at }) => at);
}

const KILLS = process.env.CI === undefined ? 5 : 10;

it(`a process that is killed ${KILLS} times keeps to the limit, and says what it waits for`, {
  tags: ['slow'],
}, async () => {
  // One request in five minutes, which is longer than the starts take.
  const more = { CATCHWORD_RATE_LIMIT: '0.2/min', CATCHWORD_CONCURRENCY: '1' };
  const { sandbox, directory, settings } = await place({ items: 5_000 }, more);
  for (let kill = 1; kill <= KILLS; kill++) {
    const killed = start(['sync'], settings, directory);
    if (kill === 1) await expect.poll(async () => (await arrivals(sandbox)).length).toBe(1);
    else await killed.shows('CATCHWORD_RATE_LIMIT allows no more');
    expect((await killed.stop('SIGKILL')).signal).toBe('SIGKILL');
  }
  expect(await arrivals(sandbox)).toHaveLength(1);
});

it('concurrent sync, verify and sync --dry-run share one limit', { tags: ['slow'] }, async () => {
  const { sandbox, directory, settings } = await place({ items: 500 }, { CATCHWORD_PER_PAGE: '20', LOG_LEVEL: '' });
  await load({ ...settings, LOG_LEVEL: 'fatal' }, 'full');
  const before = (await arrivals(sandbox)).length;
  const limited = { ...settings, CATCHWORD_RATE_LIMIT: '20/s', CATCHWORD_CONCURRENCY: '1' };
  const verbs = [['sync', '--full'], ['verify'], ['sync', '--dry-run']];
  const ended = await Promise.all(verbs.map((args) => run(args, limited, directory)));
  expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(verbs.map(() => ({ code: 0, stderr: '' })));
  const times = (await arrivals(sandbox)).slice(before);
  expect(times.length).toBeGreaterThan(50);
  const sorted = times.toSorted((one, other) => one - other);
  for (const [first, from] of sorted.entries()) {
    for (const [last, to] of sorted.entries()) {
      // One of each command may arrive late.
      if (last > first) expect(to - from).toBeGreaterThanOrEqual((last - first - 3) * 50);
    }
  }
});

it('commands that do not read the catalog share the limit and the pauses of the mirror', {
  tags: ['slow'],
}, async () => {
  const { directory, db, settings } = await place({ items: 30 }, { CATCHWORD_RATE_LIMIT: '0.2/min', LOG_LEVEL: '' });
  await load({ ...settings, CATCHWORD_RATE_LIMIT: 'off', LOG_LEVEL: 'fatal' }, 'full');
  expect(await runHere(['licenses'], settings, directory)).toMatchObject({ code: 0, stderr: '' });
  const waiting = start(['licenses'], settings, directory);
  await waiting.shows('CATCHWORD_RATE_LIMIT allows no more');
  await waiting.stop();
  const now = Date.now();
  openedStore(db).source.notePause({ since: now, until: now + 7_200_000 });
  const paused = await runHere(['licenses'], { ...settings, CATCHWORD_RATE_LIMIT: 'off' }, directory);
  expect(paused).toMatchObject({ code: 75, stderr: expect.stringContaining('accepts no request') as string });

  const other = await place({ items: 30 });
  const elsewhere = { ...settings, CATCHWORD_BASE_URL: other.sandbox.url };
  expect(await runHere(['licenses'], elsewhere, directory)).toMatchObject({ code: 0, stderr: '' });
  const none = { ...settings, CATCHWORD_DB: join(directory, 'none.db') };
  expect(await runHere(['licenses'], none, directory)).toMatchObject({ code: 0, stderr: '' });
  expect(existsSync(none.CATCHWORD_DB)).toBe(false);
  writeFileSync(none.CATCHWORD_DB, 'not a database, but something else that is long enough to be looked at');
  const unusable = await runHere(['licenses'], none, directory);
  expect(unusable).toMatchObject({ code: 0, stderr: expect.stringContaining('is not an SQLite database') as string });
});

it('a process that cannot write the mirror keeps the limit by itself, and says so once', async () => {
  const db = openedStore().path;
  const sqlite = new Database(db, { readonly: true });
  onTestFinished(() => {
    sqlite.close();
  });
  const notices: Notice[] = [];
  const queries = createQueries(sqlite);
  const source = createPaceWriter(queries, createSourceReader(queries), (work) => work());
  const store = { path: db, source };
  const clock = createVirtualClock();
  const config = { rateLimit: { requests: 10, windowMs: 1_000 } };
  const pacer = mirrorPacer({ config, clock, tell: (notice) => notices.push(notice) }, store);
  const from = clock.now();
  for (let request = 0; request < 5; request++) await pacer.acquire(new AbortController().signal);
  expect(clock.now() - from).toBeGreaterThanOrEqual(400);
  expect(notices).toEqual([
    { message: 'this process keeps CATCHWORD_RATE_LIMIT by itself', fields: { reason: `${db} cannot be written` } },
  ]);
});
