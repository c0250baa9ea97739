// @module-tag slow
import { setTimeout as delay } from 'node:timers/promises';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { openHarness, type Version } from '../../src/contract/harness.ts';
import { start } from '../support/cli.ts';
import { serveEngine } from './engine.ts';
import { createOpenSearch } from './fake-opensearch.ts';

const KILLS = Number(process.env.KILLS ?? (process.env.CI === undefined ? 5 : 10));
const PRODUCTS = 3_000;
const CHANGES = 200;

function version(index: number, round: number): Version {
  const vbid = `P ${index}`;
  const isRemoval = (index + round) % 17 === 0;
  return { vbid, body: isRemoval ? null : JSON.stringify({ vbid, round, title: `Book ${index}` }) };
}

it(`the example for opensearch delivers everything over ${KILLS} kills, with a view and without`, {
  timeout: 900_000,
}, async () => {
  const random = createRandom(6);
  const harness = openHarness();
  onTestFinished(() => harness.close());
  const env: Record<string, string> = {
    CATCHWORD_BASE_URL: 'http://service.example',
    CATCHWORD_DB: harness.store.path,
    CATCHWORD_REMOVAL_LIMIT: '100%',
    LOG_LEVEL: 'info',
    CATCHWORD_SINK_VIEWED_WHERE: "body->>'round' % 2 = 0",
  };
  const engines = ['WHOLE', 'VIEWED'].map((name) => ({ name, engine: createOpenSearch() }));
  for (const { name, engine } of engines) {
    const served = await serveEngine(engine);
    onTestFinished(() => served.remove());
    env[`CATCHWORD_SINK_${name}`] = served.url;
    env[`CATCHWORD_SINK_${name}_SECRET`] = engine.secret;
  }
  const directory = temporaryDirectory();
  harness.change(Array.from({ length: PRODUCTS }, (_, index) => version(index + 1, 0)));
  const behind = (): string[] =>
    harness.store.sinks
      .list()
      .flatMap((sink) => (sink.cursor === harness.store.changes.lastSeq() ? [] : JSON.stringify(sink)));
  let interrupted = 0;
  for (let killed = 0; killed < KILLS; killed++) {
    const relay = start(['relay'], env, directory);
    await relay.shows('sink is open');
    const seen = Math.floor(random() * PRODUCTS);
    harness.change(Array.from({ length: CHANGES }, (_, index) => version(1 + ((seen + index) % PRODUCTS), killed + 1)));
    await delay(random() * 500);
    relay.child.kill('SIGKILL');
    expect((await relay.ended).signal).toBe('SIGKILL');
    interrupted += behind().length;
  }
  // Kills of idle relays would prove nothing.
  expect(interrupted).toBeGreaterThan(KILLS);

  const relay = start(['relay'], env, directory);
  await expect.poll(behind, { timeout: 600_000 }).toEqual([]);
  relay.child.kill('SIGTERM');
  expect(await relay.ended).toMatchObject({ code: 0 });
  const living = harness.living();
  const even = new Map([...living].filter(([, product]) => (product as { readonly round: number }).round % 2 === 0));
  expect(engines.map(({ engine }) => engine.products())).toEqual([living, even]);
});
