import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts';
import { run, start } from '../support/cli.ts';
import { load } from '../support/load.ts';
import { settingsFor, temporaryDirectory } from '../support/mirror.ts';

async function sandboxOf(items: number): Promise<Sandbox> {
  const sandbox = await startSandbox({ items });
  onTestFinished(() => sandbox.stop());
  return sandbox;
}

/** When requests of the interface arrived, milliseconds since 1970, as the sandbox tells everybody. */
async function arrivals({ url }: Sandbox): Promise<number[]> {
  const response = await fetch(`${url}/_sandbox/requests`);
  return ((await response.json()) as { at: number }[]).map(({ at }) => at);
}

it('a process that is killed after its first request, ten times, makes no more requests than the limit', async () => {
  const sandbox = await sandboxOf(5_000);
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  const settings = settingsFor(sandbox.url, db, { CATCHWORD_RATE_LIMIT: '12/min', CATCHWORD_PER_PAGE: '100' });
  for (let kill = 1; kill <= 10; kill++) {
    const killed = start(['sync'], settings, directory);
    await expect.poll(async () => (await arrivals(sandbox)).length, { timeout: 60_000, interval: 20 }).toBe(kill);
    killed.child.kill('SIGKILL');
    expect((await killed.ended).signal).toBe('SIGKILL');
  }
  const times = await arrivals(sandbox);
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  // One every five seconds, after the first.
  expect(times.length - 1).toBeLessThanOrEqual((last - first) / 5_000 + 0.2);
});

it('sync, verify and sync --dry-run at once keep one limit together', async () => {
  const sandbox = await sandboxOf(500);
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  const settings = settingsFor(sandbox.url, db, { CATCHWORD_PER_PAGE: '20', LOG_LEVEL: '' });
  await load({ ...settings, LOG_LEVEL: 'fatal' }, 'full');
  const before = (await arrivals(sandbox)).length;
  const limited = { ...settings, CATCHWORD_RATE_LIMIT: '5/s' };
  const verbs = [['sync', '--full'], ['verify'], ['sync', '--full', '--dry-run']];
  const ended = await Promise.all(verbs.map((args) => run(args, limited, directory)));
  expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual(verbs.map(() => ({ code: 0, stderr: '' })));
  const times = (await arrivals(sandbox)).slice(before);
  expect(times.length).toBeGreaterThan(60);
  const windowMs = 4_000;
  const busiest = Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + windowMs).length));
  // Some arrive late on a machine that is busy, so that others seem to follow them closely.
  expect(busiest).toBeLessThanOrEqual(20 + 4);
});
