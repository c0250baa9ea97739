import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { SinkTarget } from '../../src/relay/contract/checks.ts';
import { openHarness, type Version } from '../../src/relay/contract/harness.ts';
import { createRandom } from '../../src/sandbox/catalog/random.ts';
import { start } from '../support/cli.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { natsAvailable, startNats } from '../support/nats.ts';
import { postgresAvailable, startPostgres } from '../support/postgres.ts';
import { type RedisServer, redisAvailable, startRedis } from '../support/redis.ts';
import type { ServerProcess } from '../support/server.ts';
import { jsonlTarget, natsTarget, postgresTarget, redisTarget, webhookTarget } from './targets.ts';

/** `KILLS=200 npx vitest run test/relay/kill.test.ts` takes three minutes. */
const KILLS = Number(process.env.KILLS ?? (process.env.CI === undefined ? 10 : 50));
/** So many that a relay seldom finishes before it is killed. */
const PRODUCTS = 10_000;
const CHANGES = 400;
const WEBHOOK_BATCH = 50;

let postgres: ServerProcess | undefined;
let redis: RedisServer | undefined;
let nats: ServerProcess | undefined;

beforeAll(async () => {
  postgres = postgresAvailable ? await startPostgres({ settings: ['fsync=off'] }) : undefined;
  redis = redisAvailable ? await startRedis() : undefined;
  nats = natsAvailable ? await startNats() : undefined;
});
afterAll(async () => {
  await Promise.all([postgres?.stop(), redis?.stop(), nats?.stop()]);
});

async function prepare(): Promise<Map<string, SinkTarget>> {
  const targets = new Map<string, SinkTarget>([
    ['file', await jsonlTarget('?rotate=1MB')],
    ['hook', await webhookTarget(undefined, `&batch=${WEBHOOK_BATCH}`)],
  ]);
  if (postgres !== undefined) targets.set('shop', await postgresTarget(postgres.port));
  if (redis !== undefined) targets.set('stream', await redisTarget(redis.port));
  if (nats !== undefined) targets.set('bus', await natsTarget(nats.port));
  return targets;
}

function version(index: number, round: number): Version {
  const vbid = `P${index}`;
  const isRemoval = (index + round) % 17 === 0;
  return { vbid, body: isRemoval ? null : JSON.stringify({ vbid, round, title: `Book ${index}` }) };
}

it(`delivers everything in order over ${KILLS} kills`, { timeout: 900_000 }, async () => {
  const random = createRandom(4);
  const harness = openHarness();
  const targets = await prepare();
  onTestFinished(async () => {
    await harness.close();
    await Promise.all([...targets.values()].map((target) => target.remove()));
  });
  const env: Record<string, string> = {
    CATCHWORD_BASE_URL: 'http://service.example',
    CATCHWORD_DB: harness.store.path,
    LOG_LEVEL: 'info',
  };
  for (const [name, { url, secret }] of targets) {
    env[`CATCHWORD_SINK_${name.toUpperCase()}`] = url;
    if (secret !== undefined) env[`CATCHWORD_SINK_${name.toUpperCase()}_SECRET`] = secret;
  }
  const directory = temporaryDirectory();
  harness.change(Array.from({ length: PRODUCTS }, (_, index) => version(index + 1, 0)));
  const filledFrom = new Map(harness.events().map((event) => [event.vbid, event]));
  const asOf = harness.store.changes.lastSeq();

  const interrupted = new Map<string, number>();
  for (let killed = 0; killed < KILLS; killed++) {
    const relay = start(['relay'], env, directory);
    await relay.shows('sink is open');
    const seen = Math.floor(random() * PRODUCTS);
    harness.change(Array.from({ length: CHANGES }, (_, index) => version(1 + ((seen + index) % PRODUCTS), killed + 1)));
    await delay(random() * 120);
    expect((await relay.stop('SIGKILL')).signal).toBe('SIGKILL');
    for (const { name, cursor } of harness.store.sinks.list()) {
      const more = cursor < harness.store.changes.lastSeq() ? 1 : 0;
      interrupted.set(name, (interrupted.get(name) ?? 0) + more);
    }
  }
  // Kills of idle relays would prove nothing.
  for (const name of targets.keys()) expect(interrupted.get(name), name).toBeGreaterThan(KILLS / 10);

  const relay = start(['relay'], env, directory);
  const last = harness.store.changes.lastSeq();
  const behind = (): string[] =>
    harness.store.sinks.list().flatMap((sink) => (sink.cursor === last ? [] : JSON.stringify(sink)));
  await expect.poll(behind, { timeout: 60_000 }).toEqual([]);
  expect(await relay.stop()).toMatchObject({ code: 0 });

  const filled = [...filledFrom.values()].filter(({ body }) => body !== null).map(({ seq }) => seq);
  const expected = [...filled.sort((a, b) => a - b), ...harness.events(asOf).map(({ seq }) => seq)];
  const living = harness.living();
  for (const [name, target] of targets) {
    const { seqs, products } = await target.read();
    expect(products, name).toEqual(living);
    if (seqs === null) continue;
    if (name !== 'hook') {
      expect(seqs, name).toEqual(expected);
      continue;
    }
    expect([...new Set(seqs)], name).toEqual(expected);
    // Each kill repeats at most one batch.
    const repeated = seqs.length - expected.length;
    expect(repeated).toBeLessThanOrEqual(KILLS * WEBHOOK_BATCH);
  }
});
