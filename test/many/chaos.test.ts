// @module-tag slow
import { rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { redisAvailable } from '@catchword/testing/redis';
import { query } from '@catchword/testing/sqlite';
import Database from 'better-sqlite3';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { createMachineClock, removeShared, sharedByFaketime } from '../life/clock.ts';
import { type Event, jsonlTarget, receivedFrom } from '../relay/targets.ts';
import type { Ended, Running } from '../support/cli.ts';
import { catalogOf, expectExactLog, mutate, truthOf, withoutWithdrawn } from '../support/mirror.ts';
import { hostsAvailable } from './network.ts';
import { openScene, type Scene } from './scene.ts';
import { HOSTS, type HostName, planTrouble, ROLES, type RoleName, type Trouble } from './trouble.ts';

/*
 * A catalog on several machines, of which everything fails at random moments but the service and the disk.
 * `CHAOS_MINUTES=30 CHAOS_SEED=7 npx vitest run test/many/chaos.test.ts`
 */

const MINUTES = Number(process.env.CHAOS_MINUTES ?? 1);
const SEED = Number(process.env.CHAOS_SEED ?? 1);
const ITEMS = 3_000;
const PER_MINUTE = 120;
const LOOK_EVERY_MS = 30_000;
/** Longer than any pause, retry and lease: a run that is not complete by then never is. */
const END_WITHIN = { timeout: 240_000, interval: 500 };
const RESTART_MS = 1_000;

const SETTINGS = {
  CATCHWORD_PER_PAGE: '100',
  CATCHWORD_CONCURRENCY: '4',
  CATCHWORD_RATE_LIMIT: `${PER_MINUTE}/min`,
  CATCHWORD_FULL_CRON: '*/15 * * * * *',
  CATCHWORD_DELTA_CRON: '*/3 * * * * *',
  CATCHWORD_REMOVAL_LIMIT: '100%',
};
const SANDBOX = {
  items: ITEMS,
  seed: SEED,
  latencyMs: 40,
  // 3 fetchers with 4 requests each may be under way when a minute begins, and arrive in it.
  rateLimit: { maxRequests: PER_MINUTE + 3 * 4, windowMs: 60_000 },
  faults: '5xx:0.02,reset:0.01',
};

/** Keeps a role running, as a process manager does. */
function createRole(name: RoleName, launch: () => Running, ends: string[]) {
  let running = launch();
  let isWanted = true;
  let pauseMs = RESTART_MS;
  const logs: string[] = [];

  async function supervise(): Promise<void> {
    for (;;) {
      const { code, signal, stderr } = await running.ended;
      logs.push(stderr);
      if (!isWanted) return;
      if (signal === null) ends.push(`${name} ended with ${code}: ${stderr.trim().split('\n').at(-1) ?? ''}`);
      await delay(pauseMs);
      pauseMs = RESTART_MS;
      running = launch();
    }
  }

  const supervised = supervise();
  return {
    name,
    pid: () => running.child.pid,
    child: () => running.child,
    /** Kills it, and starts it again after a pause. */
    kill: (afterMs: number): void => {
      pauseMs = afterMs;
      running.child.kill('SIGKILL');
    },
    /** Stops it for good. */
    stop: async (): Promise<Ended> => {
      isWanted = false;
      running.child.kill('SIGTERM');
      await supervised;
      return await running.ended;
    },
    log: () => logs.join(''),
  };
}

async function openWorld() {
  const shared = sharedByFaketime();
  const target = await jsonlTarget('?rotate=200kB');
  const scene = await openScene({ sandbox: SANDBOX, settings: SETTINGS });
  onTestFinished(async () => {
    await scene.close();
    await target.remove();
    removeShared(shared);
  });
  const store = await scene.redisOn(scene.host('store'));
  const hosts = Object.fromEntries(
    HOSTS.map((name) => [name, name === 'keeper' ? scene.keeperHost : scene.host(name)]),
  ) as Record<HostName, Scene['keeperHost']>;
  const clocks = Object.fromEntries(HOSTS.map((name) => [name, createMachineClock(scene.directory, name)])) as Record<
    HostName,
    ReturnType<typeof createMachineClock>
  >;
  const sinks = { CATCHWORD_SINK_FILE: target.url, CATCHWORD_SINK_STREAM: `${store.url}?stream=changes` };
  const ends: string[] = [];
  function launch(name: RoleName): Running {
    const host = name.startsWith('fetcher') || name === 'scheduler' ? (name as HostName) : 'keeper';
    const more = name === 'relay' ? sinks : {};
    return scene.startRole(hosts[host], name.replace(/\d$/, ''), { ...clocks[host].env, ...more });
  }
  // The sinks open with an empty mirror, so that they get every change.
  const opening = scene.startRole(scene.keeperHost, 'relay', sinks);
  for (const sink of ['file', 'stream']) await opening.shows(`"sink":"${sink}"`);
  expect(await opening.stop()).toMatchObject({ code: 0 });
  const roles = Object.fromEntries(ROLES.map((name) => [name, createRole(name, () => launch(name), ends)])) as Record<
    RoleName,
    ReturnType<typeof createRole>
  >;
  return { scene, target, store, hosts, clocks, roles, ends };
}

type World = Awaited<ReturnType<typeof openWorld>>;

function print(text: string): void {
  if (process.env.CHAOS_MINUTES !== undefined) writeSync(1, `${text}\n`);
}

/** Expects the log to be exact in a copy, because the keeper goes on. */
async function look({ scene }: World): Promise<number> {
  const copy = join(scene.directory, 'look.db');
  const sqlite = new Database(scene.db, { readonly: true });
  await sqlite.backup(copy);
  sqlite.close();
  const count = expectExactLog(copy);
  for (const end of ['', '-wal', '-shm']) rmSync(`${copy}${end}`, { force: true });
  return count;
}

/** Suspends the keeper that works, between two of its transactions: within one, no other process could write. */
async function freezeKeeper({ scene, roles }: World, lastsMs: number): Promise<void> {
  const store = openStore(scene.db);
  const sqlite = new Database(scene.db, { timeout: 0 });
  const find = () =>
    [roles.keeper1, roles.keeper2].find(({ pid }) => pid() === store.keeperLease.holder(Date.now())?.pid);
  try {
    for (;;) {
      const keeper = find();
      if (keeper === undefined) {
        await delay(20);
        continue;
      }
      const child = keeper.child();
      child.kill('SIGSTOP');
      await delay(50);
      try {
        sqlite.exec('BEGIN IMMEDIATE; ROLLBACK');
      } catch {
        child.kill('SIGCONT');
        continue;
      }
      if (find() === keeper) {
        await delay(lastsMs);
        child.kill('SIGCONT');
        return;
      }
      child.kill('SIGCONT');
    }
  } finally {
    sqlite.close();
    store.close();
  }
}

async function withAdmin(url: string, work: (redis: Redis) => Promise<unknown>): Promise<void> {
  const redis = new Redis(url, { maxRetriesPerRequest: 3 });
  redis.on('error', () => {});
  try {
    await work(redis);
  } finally {
    redis.disconnect();
  }
}

/** Lets one trouble happen, and ends it. */
async function suffer(world: World, trouble: Trouble): Promise<void> {
  const { scene, hosts, clocks, roles } = world;
  const { kind, lastsMs } = trouble;
  switch (kind) {
    case 'kill':
      roles[trouble.target].kill(lastsMs);
      return;
    case 'cut':
    case 'half-open link': {
      const host = hosts[trouble.target];
      if (kind === 'cut') host.cut();
      else host.deafen();
      await delay(lastsMs);
      host.restore();
      return;
    }
    case 'clock':
      clocks[trouble.target].set(trouble.offsetMs);
      await delay(lastsMs);
      clocks[trouble.target].set(0);
      return;
    case 'Redis killed':
      await scene.redis.kill('SIGKILL');
      await delay(lastsMs);
      await scene.redis.restart();
      return;
    case 'Redis flushed':
      await withAdmin(scene.redis.url, (redis) => redis.flushall());
      return;
    case 'Redis paused':
      await withAdmin(scene.redis.url, (redis) => redis.call('CLIENT', 'PAUSE', String(Math.round(lastsMs)), 'ALL'));
      await delay(lastsMs);
      return;
    case 'Redis frozen':
      await scene.redis.kill('SIGSTOP');
      await delay(lastsMs);
      await scene.redis.kill('SIGCONT');
      return;
    case 'keeper frozen':
      await freezeKeeper(world, lastsMs);
  }
}

/** Repeats `work` until the signal aborts. */
async function every(ms: number, signal: AbortSignal, work: () => Promise<unknown>): Promise<void> {
  while (!signal.aborted) {
    await work();
    await delay(ms, undefined, { signal }).catch(() => {});
  }
}

/** Plays the plan, while the catalog changes. @returns how often what happened */
async function live(world: World, plan: readonly Trouble[]): Promise<Record<string, number>> {
  const happened: Record<string, number> = {};
  const over = new AbortController();
  let seed = SEED * 1_000_000;
  const change = (mutation: Record<string, number>) => mutate(world.scene.url, mutation);
  const changing = every(400, over.signal, () => {
    const mutation = { create: 1, update: 3, remove: seed % 4 === 0 ? 1 : 0, seed: seed++ };
    // Retried once, because a kept-alive connection may be closed just when it is reused.
    return change(mutation).catch(() => change(mutation));
  });
  const looking = every(LOOK_EVERY_MS, over.signal, () => look(world));
  const began = performance.now();
  const troubles = plan.map(async (trouble) => {
    const { atMs, kind, target, lastsMs } = trouble;
    await delay(Math.max(0, atMs - (performance.now() - began)));
    print(`${(atMs / 1000).toFixed(1)} s: ${kind}, ${target}, ${(lastsMs / 1000).toFixed(1)} s`);
    happened[kind] = (happened[kind] ?? 0) + 1;
    await suffer(world, trouble);
  });
  const ended = Promise.all(troubles).finally(() => over.abort());
  await Promise.all([ended, changing, looking]);
  return happened;
}

const complete = (db: string, after: number) =>
  query<{ proof: string }>(
    db,
    `SELECT proof FROM runs WHERE kind = 'full' AND state = 'complete' AND id > ${after} ORDER BY id`,
  ).map(({ proof }) => proof);

async function requestsOf(url: string): Promise<{ at: number; status: number }[]> {
  return (await (await fetch(`${url}/_sandbox/requests`)).json()) as { at: number; status: number }[];
}

/** The most requests in any minute. */
function busiestMinute(times: readonly number[]): number {
  let from = 0;
  return times.reduce((most, time, index) => {
    while ((times[from] ?? time) <= time - 60_000) from++;
    return Math.max(most, index - from + 1);
  }, 0);
}

it.skipIf(!hostsAvailable || !redisAvailable)(
  `a relay loses and doubles nothing while everything fails for ${MINUTES.toFixed(1)} minutes (seed ${SEED})`,
  { tags: ['stores'], timeout: MINUTES * 60_000 + 600_000 },
  async () => {
    const plan = planTrouble(createRandom(SEED), MINUTES * 60_000);
    const world = await openWorld();
    const { scene, target, store, roles } = world;
    // Until there is something to disturb.
    await expect.poll(async () => (await requestsOf(scene.url)).length, END_WITHIN).toBeGreaterThan(10);
    const happened = await live(world, plan);

    // A run that begins now sees a list that stands still.
    const last = query<{ id: number }>(scene.db, 'SELECT max(id) AS id FROM runs')[0]?.id ?? 0;
    await expect.poll(() => complete(scene.db, last), END_WITHIN).toContain('sealed');
    for (const role of Object.values(roles)) if (role.name !== 'relay') await role.stop();
    const products = catalogOf(scene.db);
    expect(withoutWithdrawn(products)).toEqual(await truthOf(scene.url));
    const count = expectExactLog(scene.db);
    const cursors = () => query<{ cursor: number }>(scene.db, 'SELECT cursor FROM sinks').map(({ cursor }) => cursor);
    await expect.poll(cursors, END_WITHIN).toEqual([count, count]);
    await roles.relay.stop();

    const requests = await requestsOf(scene.url);
    const rejected = requests.filter(({ status }) => status === 429).length;
    const runs = query(scene.db, 'SELECT kind, state, proof, count(*) AS n FROM runs GROUP BY 1, 2, 3');
    const log = Object.values(roles)
      .map((role) => role.log())
      .join('');
    const figures = {
      minutes: MINUTES,
      seed: SEED,
      happened,
      runs,
      changes: count,
      requests: requests.length,
      rejected,
      busiestMinute: busiestMinute(requests.map(({ at }) => at)),
      takenOver: log.split('another process has taken over this mirror').length - 1,
      ends: world.ends,
    };
    print(JSON.stringify(figures, null, 1));
    const numbers = Array.from({ length: count }, (_, at) => at + 1);
    const bodies = new Map([...products].map(([vbid, body]) => [vbid, JSON.parse(body) as unknown]));
    let stream: Event[] = [];
    await withAdmin(store.url, async (redis) => {
      const entries = await redis.xrange('changes', '-', '+');
      stream = entries.map(([, fields]) => JSON.parse(String(fields[1])) as Event);
    });
    for (const received of [await target.read(), receivedFrom(stream)]) {
      expect(received.seqs).toEqual(numbers);
      expect(received.products).toEqual(bodies);
    }
    expect(rejected).toBe(0);
  },
);
