// @module-tag stores
// @module-tag slow
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { openHarness, type Version } from '../../src/contract/harness.ts';
import { legOf } from '../../src/store/rows/sink-legs.ts';
import { compileView } from '../../src/view/view.ts';
import { start } from '../support/cli.ts';
import { prepareAll } from './target-kinds.ts';

/** `KILLS=200 npx vitest run test/relay/kill.test.ts` takes many minutes. */
const KILLS = Number(process.env.KILLS ?? (process.env.CI === undefined ? 10 : 20));
/** So many that a relay seldom finishes before it is killed, which both tests count. */
const PRODUCTS = 3_000;
const CHANGES = 300;
/** The most events in one request of a webhook. */
const WEBHOOK_BATCH = 100;

function version(index: number, round: number): Version {
  const vbid = `P${index}`;
  const isRemoval = (index + round) % 17 === 0;
  return { vbid, body: isRemoval ? null : JSON.stringify({ vbid, round, title: `Book ${index}` }) };
}

it(`delivers everything in order over ${KILLS} kills`, { timeout: 900_000 }, async () => {
  const random = createRandom(4);
  const harness = openHarness();
  const { targets, settings } = await prepareAll(({ variants }) => variants[0] ?? '');
  onTestFinished(() => harness.close());
  const env = {
    CATCHWORD_BASE_URL: 'http://service.example',
    CATCHWORD_DB: harness.store.path,
    // All changes are of one run.
    CATCHWORD_REMOVAL_LIMIT: '100%',
    LOG_LEVEL: 'info',
    ...settings,
  };
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
    relay.child.kill('SIGKILL');
    expect((await relay.ended).signal).toBe('SIGKILL');
    for (const { name, cursor } of harness.store.sinks.list()) {
      const more = cursor < harness.store.changes.lastSeq() ? 1 : 0;
      interrupted.set(name, (interrupted.get(name) ?? 0) + more);
    }
  }
  // Kills of idle relays would prove nothing.
  for (const { kind } of targets) expect(interrupted.get(kind.name), kind.name).toBeGreaterThan(KILLS / 5);

  const relay = start(['relay'], env, directory);
  const last = harness.store.changes.lastSeq();
  const behind = (): string[] =>
    harness.store.sinks.list().flatMap((sink) => (sink.cursor === last ? [] : JSON.stringify(sink)));
  await expect.poll(behind, { timeout: 600_000 }).toEqual([]);
  relay.child.kill('SIGTERM');
  expect(await relay.ended).toMatchObject({ code: 0 });

  const filled = [...filledFrom.values()].filter(({ body }) => body !== null).map(({ seq }) => seq);
  const expected = [...filled.sort((a, b) => a - b), ...harness.events(asOf).map(({ seq }) => seq)];
  const living = harness.living();
  for (const { kind, target } of targets) {
    const { seqs, products } = await target.read();
    expect(products, kind.name).toEqual(living);
    if (seqs === null) continue;
    expect(kind.effectivelyOnce ? seqs : [...new Set(seqs)], kind.name).toEqual(expected);
    // Each kill repeats at most one batch.
    expect(seqs.length - expected.length).toBeLessThanOrEqual(KILLS * WEBHOOK_BATCH);
  }
});

const FILTERS = ["body->>'round' % 2 = 0", "title LIKE 'Book 1%'", "body->>'round' > 0 OR title = 'Book 7'"];

it('brings stores to a view that changes at every second kill', { timeout: 900_000 }, async () => {
  const random = createRandom(5);
  const harness = openHarness();
  const names = ['jsonl', 'postgres', 'mysql', 's3', 'rediskeys', 'natskv'];
  const { targets, settings } = await prepareAll(({ variants }) => variants[0] ?? '', names);
  onTestFinished(() => harness.close());
  const directory = temporaryDirectory();
  const envOf = (where: string): Record<string, string> => ({
    CATCHWORD_BASE_URL: 'http://service.example',
    CATCHWORD_DB: harness.store.path,
    CATCHWORD_REMOVAL_LIMIT: '100%',
    LOG_LEVEL: 'info',
    ...settings,
    ...Object.fromEntries(targets.map(({ kind }) => [`CATCHWORD_SINK_${kind.name.toUpperCase()}_WHERE`, where])),
  });
  harness.change(Array.from({ length: PRODUCTS }, (_, index) => version(index + 1, 0)));
  let where = FILTERS[0] ?? '';
  const behind = (): string[] =>
    harness.store.sinks.list().flatMap((sink) => {
      return sink.cursor === harness.store.changes.lastSeq() && legOf(sink).where === where ? [] : JSON.stringify(sink);
    });
  let interrupted = 0;
  for (let killed = 0; killed < KILLS; killed++) {
    where = FILTERS[Math.floor(killed / 2) % FILTERS.length] ?? '';
    const relay = start(['relay'], envOf(where), directory);
    await relay.shows('sink is open');
    const seen = Math.floor(random() * PRODUCTS);
    harness.change(Array.from({ length: CHANGES }, (_, index) => version(1 + ((seen + index) % PRODUCTS), killed + 1)));
    await delay(random() * 300);
    relay.child.kill('SIGKILL');
    expect((await relay.ended).signal).toBe('SIGKILL');
    interrupted += behind().length;
  }
  expect(interrupted).toBeGreaterThan(KILLS);
  const relay = start(['relay'], envOf(where), directory);
  await expect.poll(behind, { timeout: 600_000 }).toEqual([]);
  // A view that changed before the store had the one before it has filled the store, and the end of a fill removes the rest.
  const unended = () => harness.store.sinks.list().filter(({ kind, fillEnd }) => kind !== 'jsonl' && fillEnd === null);
  await expect.poll(unended, { timeout: 600_000 }).toEqual([]);
  relay.child.kill('SIGTERM');
  expect(await relay.ended).toMatchObject({ code: 0 });
  const { of } = compileView({ where, fields: null }, { where: 'WHERE', fields: 'FIELDS' });
  const living = [...harness.store.products.all()].filter(({ vbid, body }) => of(vbid, body) !== null);
  const expected = new Map(living.map(({ vbid, body }) => [vbid, JSON.parse(body) as unknown]));
  expect(expected.size).toBeGreaterThan(0);
  for (const { kind, target } of targets) expect((await target.read()).products, kind.name).toEqual(expected);
});
