import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { execute } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { start } from '../support/cli.ts';
import { runHere as cli } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, mutate, settingsFor, truthOf } from '../support/mirror.ts';

let first: Sandbox;
let other: Sandbox;
let directory: string;
let db: string;
let settings: Record<string, string>;
let elsewhere: Record<string, string>;

async function sandboxOf(seed: number, latencyMs = 0): Promise<Sandbox> {
  const sandbox = await startSandbox({ items: 400, seed, details: true, latencyMs });
  onTestFinished(() => sandbox.stop());
  return sandbox;
}

const syncJson = (environment: Record<string, string>) => cli(['sync', '--json'], environment, directory);

beforeEach(async () => {
  [first, other] = await Promise.all([sandboxOf(1), sandboxOf(2)]);
  directory = temporaryDirectory();
  db = join(directory, 'catalog.db');
  settings = settingsFor(first.url, db, { LOG_LEVEL: '' });
  elsewhere = settingsFor(other.url, db, { LOG_LEVEL: '' });
  await load({ ...settings, LOG_LEVEL: 'fatal' }, 'full');
});

it.each(['sync', 'sync --full', 'sync --dry-run', 'verify', 'daemon'])(
  'a mirror of another service is rejected by %s before any request, with both addresses and what to do',
  async (verb) => {
    const refused = await cli(verb.split(' '), elsewhere, directory);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('MIRROR_OTHER_SOURCE');
    expect(refused.stderr).toContain(`is the mirror of ${first.url}, and CATCHWORD_BASE_URL is ${other.url}`);
    expect(refused.stderr).toContain('CATCHWORD_DB');
    expect(refused.stderr).toContain('npx catchword adopt');
    expect(other.requests).toEqual([]);
    expect(expectExactLog(db)).toBe(400);
  },
);

it('a mirror of another service is rejected by approve before any lookup', async () => {
  execute(db, `UPDATE runs SET state = 'held'; INSERT INTO held_removals (run_id, product_id) VALUES (1, 1)`);
  const lookups = { ...elsewhere, CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' };
  const refused = await cli(['approve', '1'], lookups, directory);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('MIRROR_OTHER_SOURCE') as string });
  expect(other.requests).toEqual([]);
  expect(catalogOf(db).size).toBe(400);
});

it('a mirror of another service fails a check of doctor', async () => {
  const { code, stdout } = await cli(['doctor', '--json'], elsewhere, directory);
  expect(code).toBe(1);
  const findings = JSON.parse(stdout) as { check: string; level: string; text: string; hint: string }[];
  const found = findings.find(({ check }) => check === 'address');
  expect(found).toMatchObject({ level: 'failed', hint: expect.stringContaining('catchword adopt') as string });
  expect(found?.text).toContain(first.url);
  expect(other.requests).toEqual([]);
  const same = await cli(['doctor', '--json'], settings, directory);
  expect(same.stdout).toContain(`${first.url}, as in the mirror`);
});

it('a mirror of another service ends a daemon whose mirror was adopted for another address meanwhile', {
  tags: ['slow'],
}, async () => {
  const every = { CATCHWORD_DELTA_CRON: '* * * * * *', CATCHWORD_FULL_CRON: 'off', LOG_LEVEL: 'info' };
  const daemon = start(['daemon'], { ...settings, ...every }, directory);
  await daemon.shows('run complete');
  execute(db, `UPDATE mirror SET source_address = '${other.url}'`);
  expect(await daemon.ended).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('MIRROR_OTHER_SOURCE') as string,
  });
});

it('a mirror of another service is accepted if the first address was never read from', async () => {
  const nowhere = settingsFor('http://127.0.0.1:9', join(directory, 'new.db'), { LOG_LEVEL: '' });
  expect(await cli(['sync'], nowhere, directory)).toMatchObject({ code: 75 });
  expect(await cli(['sync'], { ...nowhere, CATCHWORD_BASE_URL: first.url }, directory)).toMatchObject({ code: 0 });
});

it('a mirror whose address is only written differently is not one of another service', async () => {
  const { port } = new URL(first.url);
  const written = { ...settings, CATCHWORD_BASE_URL: `HTTP://127.0.0.1:${port}//` };
  expect(await cli(['sync'], written, directory)).toMatchObject({ code: 0 });
});

/** Kills a process that adopts the mirror for a slow service. @returns the service, and the settings for it */
async function killedAdoption() {
  const slow = await sandboxOf(1, 150);
  const moved = settingsFor(slow.url, db, { LOG_LEVEL: '', CATCHWORD_PER_PAGE: '50', CATCHWORD_CONCURRENCY: '1' });
  const adopting = start(['adopt'], moved, directory);
  await expect.poll(() => slow.requests.length).toBeGreaterThan(3);
  await adopting.stop('SIGKILL');
  return { slow, moved };
}

it('adopt continues the mirror with the new address, by a full run under the removal limit', async () => {
  const adopted = await cli(['adopt'], elsewhere, directory);
  // All 400 products of the old address are gone: more than the limit.
  expect(adopted).toMatchObject({ code: 5, stdout: expect.stringContaining('would remove 400') as string });
  expect(adopted.stderr).toContain(`was read from ${first.url} and is continued with ${other.url}`);
  expect(await cli(['sync'], settings, directory)).toMatchObject({ code: 2 });
  expect(await cli(['approve', '2'], elsewhere, directory)).toMatchObject({ code: 0 });
  expect(catalogOf(db)).toEqual(await truthOf(other.url));
  await mutate(other.url, { update: 3, seed: 4 });
  expect(await syncJson(elsewhere)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/"kind":"delta".*"updated":3/) as string,
  });
  expectExactLog(db);
});

it('adopt does nothing, without any request, if the address is the same', async () => {
  const asked = first.requests.length;
  const { code, stdout } = await cli(['adopt'], settings, directory);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('nothing to adopt') as string });
  expect(first.requests.length).toBe(asked);
});

it('an adoption is finished by the next run, a full one, after a kill', { tags: ['slow'] }, async () => {
  const { moved } = await killedAdoption();
  const { code, stdout, stderr } = await syncJson(moved);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('"kind":"full"') as string });
  expect(stderr).toContain('a full load has not completed since');
  const next = await syncJson(moved);
  expect(next.stdout).toContain('"kind":"delta"');
  expect(next.stderr).toBe('');
});

it('adopt resumes an adoption that was interrupted', { tags: ['slow'] }, async () => {
  const { slow, moved } = await killedAdoption();
  const again = await cli(['adopt', '--json'], moved, directory);
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('"kind":"full"') as string });
  expect(again.stderr).toContain(`resuming the unfinished full run of ${slow.url}`);
  expect(catalogOf(db)).toEqual(await truthOf(slow.url));
  const done = await cli(['adopt'], moved, directory);
  expect(done.stdout).toContain('nothing to adopt');
});

it('adopt does not wait for a pause that the old address asked for, nor keep the limit that was learned there', async () => {
  const now = Date.now();
  execute(db, `UPDATE mirror SET blocked_since = ${now}, blocked_until = ${now + 7_200_000}`);
  execute(db, `UPDATE mirror SET learned_rate = '{"refusedAt":0.01,"perMinute":0.01}'`);
  const adopted = await cli(['adopt'], elsewhere, directory);
  expect(adopted).toMatchObject({ code: 5, stdout: expect.stringContaining('would remove 400') as string });
  const status = await cli(['status', '--json'], elsewhere, directory);
  expect(status.stdout).toContain('"learned_limit":null');
});

it('adopt waits for a pause that the new address asked for', async () => {
  const now = Date.now();
  execute(
    db,
    `UPDATE mirror SET source_address = '${other.url}', blocked_since = ${now}, blocked_until = ${now + 7_200_000},
      source_selection = json_set(source_selection, '$.unfinished', json('true'))`,
  );
  const adopted = await cli(['adopt'], elsewhere, directory);
  expect(adopted).toMatchObject({ code: 75, stderr: expect.stringContaining('sync --now') as string });
  expect(other.requests).toEqual([]);
  expect(await cli(['sync', '--now'], elsewhere, directory)).toMatchObject({ code: 5 });
});

it('adopt is rejected while a daemon is alive, even one without sinks that makes no run', {
  tags: ['slow'],
}, async () => {
  const idle = { CATCHWORD_DELTA_CRON: 'off', CATCHWORD_FULL_CRON: 'off', LOG_LEVEL: 'info' };
  const daemon = start(['daemon'], { ...settings, ...idle }, directory);
  await daemon.shows('"msg":"started"');
  const refused = await cli(['adopt'], elsewhere, directory);
  expect((await daemon.stop()).code).toBe(0);
  expect(refused.stderr).toContain('MIRROR_BUSY');
  expect(refused.stderr).toContain(`process ${daemon.child.pid} on`);
  expect(refused.stderr).toContain('is the daemon of this mirror');
  expect(other.requests).toEqual([]);
  expect(await cli(['adopt'], elsewhere, directory)).toMatchObject({ code: 5 });
});

const metadata = { CATCHWORD_INCLUDE_DETAILS: 'metadata' };

it('another selection is announced before the first request, and read by a full run', { tags: ['slow'] }, async () => {
  const before = first.requests.length;
  const changed = start(['sync', '--json'], { ...settings, ...metadata }, directory);
  await changed.shows(
    'those that differ are recorded as updated: CATCHWORD_INCLUDE_DETAILS changed from (none) to metadata',
  );
  const { code, stdout } = await changed.ended;
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('"kind":"full"') as string });
  expect(first.requests[before]?.path).not.toContain('from=');
  const next = await syncJson({ ...settings, ...metadata });
  expect(next).toMatchObject({ stdout: expect.stringContaining('"kind":"delta"') as string, stderr: '' });
});

it('another selection is announced by verify and by sync --dry-run, which reads what the run would read', {
  tags: ['slow'],
}, async () => {
  const verified = await cli(['verify'], { ...settings, ...metadata }, directory);
  expect(verified.stderr).toContain('CATCHWORD_INCLUDE_DETAILS changed from (none) to metadata since the mirror');
  const forecast = await cli(['sync', '--dry-run', '--json'], { ...settings, ...metadata }, directory);
  expect(forecast.stderr).toContain('reading every product again');
  expect(forecast.stdout).toContain('"kind":"full"');
});

it('another selection gives up an unfinished run of the previous selection, and holds only after a full run', {
  tags: ['slow'],
}, async () => {
  await mutate(first.url, { update: 100, seed: 3 });
  const slow = { CATCHWORD_PER_PAGE: '20', CATCHWORD_CONCURRENCY: '1', CATCHWORD_RATE_LIMIT: '5/s' };
  const asked = first.requests.length;
  const killed = start(['sync', '--full'], { ...settings, ...metadata, ...slow }, directory);
  await expect.poll(() => first.requests.length).toBeGreaterThan(asked + 3);
  await killed.stop('SIGKILL');
  // Back to the previous selection: the mirror may hold products of the other one.
  const back = await syncJson(settings);
  expect({ code: back.code, stdout: back.stdout }).toEqual({
    code: 0,
    stdout: expect.stringContaining('"kind":"full"') as string,
  });
  const runs = JSON.parse((await cli(['runs', '--json'], settings, directory)).stdout) as { error: string | null }[];
  expect(runs.map(({ error }) => error)).toContain('RUN_OUTDATED: the settings select other products since it started');
  expect(catalogOf(db)).toEqual(await truthOf(first.url));
  expect((await syncJson(settings)).stdout).toContain('"kind":"delta"');
});

it('the source of an event is the one that the mirror has noted, with and without CATCHWORD_BASE_URL', {
  tags: ['slow'],
}, async () => {
  const sourceOf = (text: string) => (JSON.parse(text.split('\n')[0] ?? '') as { source: string }).source;
  const { CATCHWORD_BASE_URL: _, ...nameless } = settings;
  for (const environment of [settings, nameless, elsewhere]) {
    const { stdout } = await cli(['changes', '--limit', '1'], environment, directory);
    expect(sourceOf(stdout)).toBe(`${first.url}/v4/products`);
  }
  const written = join(directory, 'out.jsonl');
  const relay = start(['relay'], { ...nameless, CATCHWORD_SINK_OUT: `jsonl:${written}`, LOG_LEVEL: 'info' }, directory);
  await expect.poll(() => (existsSync(written) ? readFileSync(written, 'utf8') : '')).toContain('\n');
  await relay.stop();
  expect(sourceOf(readFileSync(written, 'utf8'))).toBe(`${first.url}/v4/products`);
  const web = start(['web'], { ...nameless, CATCHWORD_HTTP_PORT: '0', LOG_LEVEL: 'info' }, directory);
  await web.shows('"address":"');
  expect(await web.stop()).toMatchObject({ code: 0 });
});

it('the source of an event needs CATCHWORD_BASE_URL if the mirror has not noted one', async () => {
  const { CATCHWORD_BASE_URL: _, ...nameless } = settings;
  for (const role of ['relay', 'web']) {
    const empty = { ...nameless, CATCHWORD_DB: join(directory, 'none.db'), CATCHWORD_SINK_FILE: 'jsonl:none.jsonl' };
    const refused = await cli([role], empty, directory);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('CATCHWORD_BASE_URL') as string });
  }
});
