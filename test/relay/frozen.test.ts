// @module-tag slow
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { hasCode } from '@catchword/base/errors';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { openHarness, type Version } from '../../src/contract/harness.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { Store } from '../../src/store/store.ts';
import { type Running, startService } from '../support/cli.ts';
import { prepareAll } from './target-kinds.ts';

/** `FREEZES=30 npx vitest run test/relay/frozen.test.ts` takes five minutes. */
const FREEZES = Number(process.env.FREEZES ?? (process.env.CI === undefined ? 2 : 10));
const PRODUCTS = 3_000;
const WITHIN_MS = 60;
/** A store may wait 20 s for the transaction of a frozen relay. */
const LONG = { timeout: 240_000 };
/** The most events in one request of a webhook. */
const WEBHOOK_BATCH = 100;

function versions(round: number): Version[] {
  return Array.from({ length: PRODUCTS }, (_, index) => {
    const vbid = `P${index}`;
    const isRemoval = (index + round) % 17 === 0;
    return { vbid, body: isRemoval ? null : JSON.stringify({ vbid, round, title: `Book ${index}`.padEnd(200) }) };
  });
}

/** Lets the lease of a frozen relay expire. @returns false if that relay is frozen while it writes to the mirror */
function expireLease(store: Store): boolean {
  try {
    writeUnder(store.relayLease, Date.now() + 60_000, () => {});
    return true;
  } catch (error) {
    if (hasCode(error, 'MIRROR_BUSY')) return false;
    throw error;
  }
}

async function freeze(relay: Running, store: Store, random: () => number): Promise<void> {
  for (;;) {
    await delay(random() * WITHIN_MS);
    relay.child.kill('SIGSTOP');
    if (expireLease(store)) return;
    relay.child.kill('SIGCONT');
  }
}

it('delivers everything once, in order, although frozen relays wake after another one took over', {
  timeout: 900_000,
}, async () => {
  const random = createRandom(7);
  const harness = openHarness();
  const { store } = harness;
  // A file that does not rotate.
  const { targets, settings } = await prepareAll(() => '');
  onTestFinished(() => harness.close());
  // All changes are of one run.
  const more = { CATCHWORD_REMOVAL_LIMIT: '100%' };
  const env = { CATCHWORD_BASE_URL: 'http://service.example', CATCHWORD_DB: store.path, ...more, ...settings };
  const file = new URL(settings.CATCHWORD_SINK_JSONL ?? '').pathname;
  const directory = temporaryDirectory();
  const behind = (): string[] => {
    const last = store.changes.lastSeq();
    return store.sinks.list().flatMap(({ name, cursor }) => (cursor === last ? [] : name));
  };

  const interrupted = new Map<string, boolean>();
  // A relay that was frozen while it was idle proves nothing: then its store gets another turn.
  const idle = (): string | undefined => [...interrupted].find(([, wasBusy]) => !wasBusy)?.[0];
  let round = 0;
  for (; round < FREEZES || (idle() !== undefined && round < 5 * FREEZES); round++) {
    harness.change(versions(round));
    const frozen = startService(['relay'], env, directory);
    const inTurn = targets.at(-1 - (round % targets.length))?.kind.name ?? '';
    const awaited = round < FREEZES ? inTurn : (idle() ?? inTurn);
    for (const name of ['jsonl', awaited]) {
      const kind = targets.find((target) => target.kind.name === name)?.target.url.split(/[:+]/)[0];
      await frozen.shows(`"sink":"${name}","kind":"${kind}","cursor"`);
    }
    await freeze(frozen, store, random);
    interrupted.set(awaited, interrupted.get(awaited) || behind().includes(awaited));
    // The frozen relay may have fed the file to the end.
    harness.change([{ vbid: 'LAST', body: JSON.stringify({ vbid: 'LAST', round }) }]);
    const text = readFileSync(file, 'utf8');
    const next = startService(['relay'], env, directory);
    await expect.poll(() => behind().join(), LONG).toBe('jsonl');
    await next.shows(`process ${frozen.child.pid} holds the lock on ${file}`);
    expect(readFileSync(file, 'utf8') === text).toBe(true);
    frozen.child.kill('SIGCONT');
    await frozen.shows('standing by');
    // As `sink resume` does: ends the pause.
    store.request(({ sinks }) => sinks.setState(sinks.get('jsonl')?.id ?? 0, 'running'));
    await expect.poll(behind, LONG).toEqual([]);
    expect(await frozen.stop()).toMatchObject({ code: 0 });
    expect(await next.stop()).toMatchObject({ code: 0 });
  }

  expect(idle()).toBeUndefined();
  for (const { kind, target } of targets) {
    const { seqs, products } = await target.read();
    expect(products, kind.name).toEqual(harness.living());
    if (seqs === null) continue;
    expect(kind.effectivelyOnce ? seqs : [...new Set(seqs)], kind.name).toEqual(harness.events().map(({ seq }) => seq));
    expect(seqs.length - harness.events().length, kind.name).toBeLessThanOrEqual(round * WEBHOOK_BATCH);
  }
});
