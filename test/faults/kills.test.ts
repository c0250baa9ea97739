// @module-tag slow
import { existsSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom } from '@catchword/sandbox/catalog/random';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { isEvent, openReader } from '../http/reader.ts';
import { post } from '../operate/daemon.ts';
import { jsonlTarget, redisTarget, webhookTarget } from '../relay/targets.ts';
import { addressOf, type Running, run, start } from '../support/cli.ts';
import { catalogOf, expectExactLog, truthOf, withoutWithdrawn } from '../support/mirror.ts';
import { place } from '../support/place.ts';
import { type CallKind, shimAvailable, shimEnvironment } from './shim.ts';

/*
 * Kills of every role, at random moments and at named points: before and after the Nth call that writes, syncs, renames
 * or removes a file. `KILLS=10000 npx vitest run test/faults/kills.test.ts` takes hours.
 */

const KILLS = Number(process.env.KILLS ?? (process.env.CI === undefined ? 5 : 20));
const SEED = Number(process.env.KILLS_SEED ?? 1);
/** Kills between two comparisons of everything. */
const ROUND = 50;
/** Rounds with one mirror: its log grows, and takes longer to read. */
const ROUNDS = 5;
const ROLES = ['sync', 'keeper', 'relay', 'web'] as const;
type Role = (typeof ROLES)[number];

const POINTS: readonly (readonly [CallKind, number])[] = [
  ['sync', 6],
  ['write', 20],
  ['any', 30],
  ['rename', 1],
  ['unlink', 2],
  ['open', 6],
];
/** What a role logs when its work begins. */
const AT_WORK: Readonly<Record<Role, string>> = {
  sync: '"msg":"run ',
  keeper: '"msg":"run ',
  relay: 'sink is open',
  web: '"msg":"listening"',
};
/** Every role has work when it starts: runs are due, and changes wait. */
const DUE = { CATCHWORD_DELTA_CRON: '* * * * * *', CATCHWORD_FULL_CRON: '*/20 * * * * *' };

const killed: Record<string, number> = {};

async function openWorld(seed: number) {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const targets = {
    jsonl: await jsonlTarget('?rotate=60kB'),
    redis: await redisTarget(redis.port),
    webhook: await webhookTarget(),
  };
  for (const target of Object.values(targets)) onTestFinished(() => target.remove());
  const { sandbox, directory, db, settings } = await place(
    { items: 300, seed },
    { CATCHWORD_PER_PAGE: '40', CATCHWORD_REMOVAL_LIMIT: '100%' },
  );
  const sinks = {
    ...Object.fromEntries(
      Object.entries(targets).map(([name, { url }]) => [`CATCHWORD_SINK_${name.toUpperCase()}`, url]),
    ),
    CATCHWORD_SINK_WEBHOOK_SECRET: targets.webhook.secret ?? '',
  };
  const env = { ...settings, CATCHWORD_LOG_RETENTION: '30d', LOG_LEVEL: 'info' };
  const shared = { REDIS_URL: redis.url, ...DUE };
  const fetcher = start(['fetcher'], { ...env, ...shared, CATCHWORD_DB: '/nowhere/needed.db' }, directory);
  onTestFinished(() => void fetcher.child.kill('SIGKILL'));
  const envs: Readonly<Record<Role, Record<string, string>>> = {
    sync: env,
    keeper: { ...env, ...shared },
    relay: { ...env, ...sinks },
    web: { ...env, CATCHWORD_HTTP_PORT: '0' },
  };
  return { sandbox, directory, db, targets, envs };
}

type World = Awaited<ReturnType<typeof openWorld>>;

/** Pauses and resumes a sink as the page does, until the process is killed. @returns the accepted decisions */
async function decide(running: Running): Promise<string[]> {
  const accepted: string[] = [];
  try {
    const url = await Promise.race([addressOf(running), running.ended.then(() => '')]);
    for (let at = 0; url !== ''; at++) {
      const action = at % 2 === 0 ? 'pause' : 'resume';
      if ((await post(url, { action, target: 'webhook' })).status === 303) accepted.push(action);
    }
  } catch {
    // It was killed.
  }
  return accepted;
}

/** Reads the stream where the last reader ended. */
function createFollower() {
  const seqs: number[] = [];
  let lastId = '';
  return {
    seqs,
    follow: async (running: Running, upTo = Number.POSITIVE_INFINITY): Promise<void> => {
      try {
        const url = await Promise.race([addressOf(running), running.ended.then(() => '')]);
        const reader = await openReader(`${url}/api/changes/stream`, lastId === '' ? {} : { 'last-event-id': lastId });
        if ((seqs.at(-1) ?? 0) >= upTo) {
          reader.leave();
          return;
        }
        for await (const block of reader.blocks()) {
          expect(block.event, JSON.stringify(block)).not.toBe('reset');
          lastId = block.id ?? lastId;
          if (isEvent(block)) seqs.push(Number((JSON.parse(block.data ?? '') as { sequence: string }).sequence));
          if ((seqs.at(-1) ?? 0) >= upTo) {
            reader.leave();
            return;
          }
        }
      } catch (error) {
        if ((await Promise.race([running.ended, delay(60_000)])) === undefined) throw error;
      }
    },
  };
}

/** Starts a role, and kills it. @returns whether it was killed before it ended */
async function killOne(world: World, role: Role, random: () => number, follow: (running: Running) => Promise<void>) {
  const below = (bound: number): number => Math.floor(random() * bound);
  const { directory, db, envs } = world;
  const hit = join(directory, 'hit');
  rmSync(hit, { force: true });
  const [kind, calls] = POINTS[below(POINTS.length)] ?? ['any', 1];
  const what = random() < 0.5 ? 'kill-before' : 'kill-after';
  const isNamed = shimAvailable && random() < 0.5;
  // A relay writes the file of a sink, too.
  const fault = { kind, at: 1 + below(calls), what, hit } as const;
  const watched = realpathSync(role === 'relay' && random() < 0.5 ? world.targets.jsonl.directory : directory);
  const more = isNamed ? shimEnvironment({ directory: watched, fault }) : {};
  const before = openStore(db);
  const lastAction = before.actions.list(1)[0]?.id ?? 0;
  before.close();
  const args = role === 'sync' && random() < 0.5 ? ['sync', '--full'] : [role];
  const running = start(args, { ...envs[role], ...more }, directory);
  const [decisions] = await Promise.all([
    role === 'web' ? decide(running) : [],
    role === 'web' ? follow(running) : undefined,
    (async () => {
      // Some die while they start.
      if (random() > 0.15) await running.shows(AT_WORK[role]).catch(() => {});
      const patience = isNamed ? 1_000 : random() * (role === 'sync' ? 250 : 400);
      await Promise.race([running.ended, delay(patience)]);
      running.child.kill('SIGKILL');
    })(),
  ]);
  const { signal, code, stderr } = await running.ended;
  if (signal === null) expect([0, 5], stderr).toContain(code);
  const name = `${role} ${existsSync(hit) ? `${what} ${kind}` : 'at random'}`;
  if (signal === 'SIGKILL') killed[name] = (killed[name] ?? 0) + 1;
  const store = openStore(db);
  const actions = store.actions.list((store.actions.list(1)[0]?.id ?? 0) - lastAction);
  const [newest] = actions;
  const state = store.sinks.list().find((sink) => sink.name === 'webhook')?.state;
  store.close();
  // What was answered is recorded; what was recorded is done.
  expect(actions.length).toBeGreaterThanOrEqual(decisions.length);
  expect(actions.length).toBeLessThanOrEqual(decisions.length + 1);
  if (newest !== undefined) expect(state).toBe(newest.action === 'pause' ? 'paused' : 'running');
  return signal === 'SIGKILL';
}

/** Loads the list, which stands still now. A run that goes on from before the last kill may end open: it saw a list that moved. */
async function loadFully({ envs, directory }: Pick<World, 'envs' | 'directory'>): Promise<void> {
  const proofs: unknown[] = [];
  while (proofs.length < 2 && !proofs.includes('sealed')) {
    const { code, stdout, stderr } = await run(
      ['sync', '--full', '--json'],
      { ...envs.sync, LOG_LEVEL: 'warn' },
      directory,
    );
    expect(code, stderr).toBe(0);
    proofs.push((JSON.parse(stdout) as { proof: unknown }).proof);
  }
  expect(proofs.at(-1)).toBe('sealed');
}

async function compare({ sandbox, directory, db, targets, envs }: World, follower: ReturnType<typeof createFollower>) {
  await run(['sink', 'resume', 'webhook'], envs.relay, directory);
  await loadFully({ envs, directory });
  const products = catalogOf(db);
  expect(withoutWithdrawn(products)).toEqual(await truthOf(sandbox.url));
  const count = expectExactLog(db);
  const relay = start(['relay'], envs.relay, directory);
  const store = openStore(db);
  onTestFinished(() => store.close());
  const behind = () => store.sinks.list().flatMap(({ name, cursor }) => (cursor === count ? [] : `${name} ${cursor}`));
  await expect.poll(behind, { timeout: 60_000 }).toEqual([]);
  expect(await relay.stop()).toMatchObject({ code: 0 });
  store.close();
  const numbers = Array.from({ length: count }, (_, at) => at + 1);
  const bodies = new Map([...products].map(([vbid, body]) => [vbid, JSON.parse(body) as unknown]));
  for (const [name, target] of Object.entries(targets)) {
    const { seqs, products: received } = await target.read();
    expect(name === 'webhook' ? [...new Set(seqs)] : seqs, name).toEqual(numbers);
    expect(received, name).toEqual(bodies);
  }
  const web = start(['web'], envs.web, directory);
  await follower.follow(web, count);
  expect(await web.stop()).toMatchObject({ code: 0 });
  expect(follower.seqs).toEqual(numbers);
}

function change(sandbox: Sandbox, seed: number): void {
  sandbox.catalog.mutate({ create: 3, update: 20, remove: 1, seed });
}

it.skipIf(!redisAvailable)(
  `a sink loses and doubles nothing over ${KILLS} kills of each role`,
  { tags: ['stores'], timeout: 36_000_000 },
  async () => {
    let kills = 0;
    for (let seed = SEED * 1_000; kills < KILLS; seed++) {
      const random = createRandom(seed);
      const world = await openWorld(seed);
      // The sinks open with an empty mirror, so that they get every change.
      const opening = start(['relay'], world.envs.relay, world.directory);
      for (const name of Object.keys(world.targets)) {
        await opening.shows(`"sink":"${name}","kind":"${name}","cursor":0,"msg":"sink is open"`);
      }
      expect(await opening.stop()).toMatchObject({ code: 0 });
      const follower = createFollower();
      for (let round = 0; round < ROUNDS && kills < KILLS; round++) {
        for (let inRound = 0; inRound < ROUND && kills < KILLS; ) {
          const role = ROLES[Math.floor(random() * ROLES.length)] ?? 'sync';
          if (!(await killOne(world, role, random, (running) => follower.follow(running)))) continue;
          inRound++;
          kills++;
          change(world.sandbox, seed * 10_000 + kills);
        }
        await compare(world, follower);
        if (process.env.KILLS !== undefined) process.stdout.write(`${kills} kills: ${JSON.stringify(killed)}\n`);
      }
    }
    expect(kills).toBeGreaterThanOrEqual(KILLS);
  },
);
