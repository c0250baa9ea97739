import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { systemClock } from '@catchword/base/clock';
import { messageOf } from '@catchword/base/errors';
import type { Mark, Sink, StoredProduct } from '@catchword/sink-kit/sink';
import { bucketOf } from '@catchword/sink-kit/store-digest';
import { withTimeout } from '@catchword/sink-kit/with-timeout';
import { checkText } from '../relay/check-text.ts';
import { type SinkConfig, sinkConfig } from '../relay/sink-config.ts';
import { WHOLE } from '../relay/store-contents.ts';
import { isSameView, legOf } from '../store/rows/sink-legs.ts';
import { remaining } from '../store/rows/sink-rows.ts';
import type { SinkCheck } from '../store/schema/sink-tables.ts';
import { type Harness, openHarness, SINK_NAME, type Version } from './harness.ts';
import type { OpaqueTarget, Received, SinkSubject, SinkTarget } from './subject.ts';

/** So long a relay that has delivered everything needs to notice that it has nothing to do; milliseconds. */
const IDLE_MS = 100;

export function book(vbid: string, version: number, more: Record<string, unknown> = {}) {
  return { vbid, body: JSON.stringify({ vbid, version, title: `Book „${vbid}“ \\ ${version}`, ...more }) };
}

export function books(count: number, version: number, from = 0): Version[] {
  return Array.from({ length: count }, (_, index) => book(`P${from + index}`, version));
}

/** Keys that a store merges if it folds case, accents or spaces, or takes a part of them for a path. */
const ALIKE = [
  ...'a|A| a|a |a  b|a b|stra\u00dfe|strasse|\u00e9|e\u0301|e|\ufb01|fi|\u0131|i|1|01|1.0|1.00|🙂|🙃'.split('|'),
  ...`a/b|a%2Fb|a%2fb|a.b|../a|.|*|>|a:b|a'b|a"b|a\\b|null|$a|-`.split('|'),
  ...['k', 'ü'].flatMap((long) => [long.repeat(255), `${long.repeat(254)}K`, `${long.repeat(254)} `]),
];

/** Products with such keys, and with numbers that another reader writes in other digits. */
export function alike(version: number): Version[] {
  return ALIKE.map((vbid, nth) => {
    const texts = {
      vbid,
      version,
      nth,
      title: ` ${vbid} `,
      amount: '1.50',
      edition: '007',
      format: '1e3',
      language: 'NO',
    };
    const numbers = '"value":1.50,"big":12345678901234567890,"small":0.1000000000000000055,"e":1E2';
    return { vbid, body: JSON.stringify(texts).replace(/}$/, `,${numbers}}`) };
  });
}

/** Says what `check` has found, as a rule for stores. */
export async function kept(check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (error) {
    const rule = 'a key is another one if its case, its spaces or its accents differ, and numbers keep their digits';
    throw new Error(`${rule}: ${messageOf(error)}`, { cause: error });
  }
}

/** @throws Error that names the products that the store lacks, or should not have */
function expectKeys(found: ReadonlyMap<string, unknown>, expected: ReadonlyMap<string, unknown>): void {
  const other = (keys: Iterable<string>, has: ReadonlyMap<string, unknown>) =>
    [...keys].flatMap((key) => (has.has(key) ? [] : JSON.stringify(key).slice(0, 80)));
  const [lacks, extra] = [other(expected.keys(), found), other(found.keys(), expected)];
  const sentences = [
    lacks.length > 0 && `the store lacks ${lacks.length} of ${expected.size} products, such as ${lacks[0]}`,
    extra.length > 0 && `it has ${extra.length} that were removed or never sent, such as ${extra[0]}`,
  ].filter((sentence) => sentence !== false);
  assert.ok(sentences.length === 0, sentences.join('; '));
}

export interface Scene {
  readonly harness: Harness;
  readonly target: SinkTarget | OpaqueTarget;
  readonly config: SinkConfig;
  /** The same sink with this filter and these fields. */
  readonly withView: (where: string, fields: string) => SinkConfig;
  /** Null: only the sink can read the store. */
  readonly read: () => Promise<Received | null>;
  /** Checks that the store has these products (default: the mirror's); without `read`, what the relay expects. */
  readonly expectProducts: (expected?: ReadonlyMap<string, unknown>) => Promise<void>;
  /** Checks that the store has the mirror's products, and the `expected` events (default: every change) in order. */
  readonly expectAll: (expected?: readonly number[]) => Promise<void>;
}

/** Lets the relay compare the store with the mirror, as `sink verify --deep` does. */
export async function comparison({ store, sink, until }: Harness): Promise<SinkCheck> {
  const request = { id: randomUUID(), deep: true, repair: false, removesAll: false };
  store.request(({ sinks }) => sinks.askCheck(sink().id, request));
  await until('the store is compared', () => sink().checked?.id === request.id);
  const { checked } = sink();
  assert.ok(checked !== null);
  return checked;
}

async function expectVerified(harness: Harness): Promise<void> {
  const check = await comparison(harness);
  const { sink } = harness;
  assert.ok(check.error === null, `the store cannot be compared: ${check.error}`);
  const [first] = check.examples;
  assert.ok(remaining(check) === 0, `products of the store: ${checkText(sink(), check).found}; such as ${first?.vbid}`);
}

export async function onScene(subject: SinkSubject, work: (scene: Scene) => Promise<void>): Promise<void> {
  const target = await subject.prepare();
  const harness = openHarness(subject);
  try {
    const setting = { env: 'SINK', name: SINK_NAME, url: target.url, secret: target.secret, module: target.module };
    // One of the checks needs a sink that parks what is refused, whatever its address says.
    const config: SinkConfig = { ...sinkConfig(setting), refused: 'park' };
    const withView = (where: string, fields: string): SinkConfig => sinkConfig({ ...setting, where, fields });
    const read = async () => ('read' in target ? await target.read() : null);
    const expectProducts = async (expected: ReadonlyMap<string, unknown> = harness.living()): Promise<void> => {
      if ('read' in target) {
        const { products } = await target.read();
        expectKeys(products, expected);
        assert.deepEqual(products, expected);
      } else if (target.verifies) await expectVerified(harness);
    };
    const expectAll = async (expected: readonly number[] = harness.events().map(({ seq }) => seq)): Promise<void> => {
      await harness.caughtUp();
      await expectProducts();
      const seqs = (await read())?.seqs ?? null;
      if (seqs === null) return;
      // The first arrival of each event counts.
      assert.deepEqual(subject.effectivelyOnce ? seqs : [...new Set(seqs)], expected);
    };
    await work({ harness, target, config, withView, read, expectProducts, expectAll });
  } finally {
    await harness.close();
    await target.remove();
  }
}

/** Lets a connection that waits for the next call end, as a firewall or a server with a limit for idle ones does. */
export async function endIdle(harness: Harness, target: SinkTarget): Promise<void> {
  await harness.until('the fill has ended', () => harness.sink().cursor >= legOf(harness.sink()).to);
  await systemClock.sleep(IDLE_MS);
  await target.interrupt();
  await target.restore();
}

/** Checks that the store has what a view shows of the mirror's products. */
export async function expectView({ harness, expectProducts }: Scene, { view }: SinkConfig): Promise<void> {
  const { store } = harness;
  await harness.until('the store has its view', () => {
    const row = store.sinks.get(SINK_NAME);
    if (row === undefined || row.cursor !== store.changes.lastSeq()) return false;
    return isSameView(legOf(row), view ?? WHOLE);
  });
  const seen = [...store.products.all()].map(({ vbid, body }) => [vbid, view?.of(vbid, body) ?? null] as const);
  const expected = seen.flatMap(([vbid, json]) =>
    json === null ? [] : [[vbid, JSON.parse(json) as unknown] as const],
  );
  await expectProducts(new Map(expected));
}

/** What another mirror would believe of a store. */
export const STRANGER: Mark = { incarnation: 'contract', generation: 1, cursor: 0, at: 0, late: 0 };

/** Opens the store, which no relay feeds now, as another mirror would: it may only be asked. */
export async function onOpened<T>(
  config: SinkConfig,
  ask: (sink: Sink, mark: Mark | null, signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const sink = await config.make();
  try {
    return await withTimeout(30_000, async (deadline) => ask(sink, await sink.open(STRANGER, 0, deadline), deadline));
  } finally {
    await sink.close();
  }
}

/** What the store says of its position. */
export function positionOf(config: SinkConfig): Promise<Mark | null> {
  return onOpened(config, (_sink, mark) => mark);
}

/** By key, what the store lists of its products; all of them, or those of some buckets. */
export async function listedBy(lists: AsyncIterable<readonly StoredProduct[]>, buckets: ReadonlySet<number> | null) {
  const found = new Map<string, StoredProduct>();
  for await (const products of lists) {
    for (const product of products)
      if (buckets === null || buckets.has(bucketOf(product.vbid))) found.set(product.vbid, product);
  }
  return found;
}
