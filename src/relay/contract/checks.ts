import assert from 'node:assert/strict';
import { SinkError } from '../sink.ts';
import { type SinkConfig, sinkConfig } from '../sink-config.ts';
import { altered, limited, openWorkbench, SINK_NAME, until, type Version, type Workbench } from './harness.ts';

/*
 * What every sink must keep, for any test runner:
 *
 *   import { sinkChecks } from 'catchword/sink-contract';
 *   for (const check of sinkChecks(subject)) it(check.name, check.run);
 */

/** A store of the kind that is checked, empty and of the check's own. */
export interface SinkTarget {
  /** As in the settings, `CATCHWORD_SINK_<NAME>`. */
  readonly url: string;
  /** `CATCHWORD_SINK_<NAME>_SECRET`. */
  readonly secret?: string;
  readonly read: () => Promise<Received>;
  /** Makes the store unreachable, without losing what it holds. */
  readonly interrupt: () => Promise<void>;
  readonly restore: () => Promise<void>;
  readonly remove: () => Promise<void>;
}

/** What a store holds. */
export interface Received {
  /** `seq` of every event in the order of arrival; null for a store that keeps the products alone. */
  readonly seqs: readonly number[] | null;
  /** Products that live there, by key, parsed. */
  readonly products: ReadonlyMap<string, unknown>;
}

export interface SinkSubject {
  /** Whether an event never comes twice, whatever happens. */
  readonly effectivelyOnce: boolean;
  readonly prepare: () => Promise<SinkTarget>;
}

export interface SinkCheck {
  readonly name: string;
  readonly run: () => Promise<void>;
}

function body(vbid: string, version: number, more: Record<string, unknown> = {}): string {
  return JSON.stringify({ vbid, version, title: `Book „${vbid}“ \\ ${version}`, ...more });
}

function versions(count: number, version: number, from = 0): Version[] {
  return Array.from({ length: count }, (_, index) => {
    const vbid = `P${from + index}`;
    return { vbid, body: body(vbid, version) };
  });
}

/** Without what came again: each event the first time that it came. */
function firsts(seqs: readonly number[]): number[] {
  return [...new Set(seqs)];
}

interface Scene {
  readonly bench: Workbench;
  readonly target: SinkTarget;
  readonly config: SinkConfig;
  /** The store holds the products of the mirror, and its events are `expected` (default: every change), in order. */
  readonly expectAll: (expected?: readonly number[]) => Promise<void>;
}

async function onScene(subject: SinkSubject, work: (scene: Scene) => Promise<void>): Promise<void> {
  const target = await subject.prepare();
  const bench = openWorkbench();
  try {
    const config = sinkConfig({ env: 'SINK', name: SINK_NAME, url: target.url, secret: target.secret });
    const expectAll = async (expected: readonly number[] = bench.events().map(({ seq }) => seq)): Promise<void> => {
      await bench.caughtUp();
      const { seqs, products } = await target.read();
      assert.deepEqual(products, bench.living());
      if (seqs === null) return;
      assert.deepEqual(subject.effectivelyOnce ? seqs : firsts(seqs), expected);
    };
    await work({ bench, target, config, expectAll });
  } finally {
    await bench.close();
    await target.remove();
  }
}

async function delivers({ bench, config, expectAll }: Scene): Promise<void> {
  bench.start(config);
  await bench.caughtUp();
  bench.change(versions(300, 1));
  await expectAll();
  bench.change(versions(100, 2));
  bench.change([{ vbid: 'P7', body: null }, ...versions(3, 3), { vbid: 'P0', body: null }]);
  await expectAll();
  bench.change([{ vbid: 'P7', body: body('P7', 4) }]);
  await expectAll();
}

/** Changes go on while the sink is filled, and the relay is ended several times meanwhile. */
async function fills({ bench, config, expectAll }: Scene): Promise<void> {
  bench.change(versions(900, 1));
  bench.change(versions(300, 2, 200));
  bench.change(versions(200, 0, 400).map(({ vbid }) => ({ vbid, body: null })));
  const asOf = bench.store.changes.lastSeq();
  const newest = new Map(bench.events().map((event) => [event.vbid, event]));
  const first = [...newest.values()].filter((event) => event.body !== null).map(({ seq }) => seq);
  const slow = altered(config, limited(50));
  for (let round = 0; round < 4; round++) {
    bench.start(slow);
    await until('the sink moves', () => (bench.store.sinks.get(SINK_NAME)?.cursor ?? 0) > round * 250);
    bench.change(versions(20, 10 + round, round * 150));
    bench.change([{ vbid: `P${600 + round}`, body: null }]);
    await bench.stop();
  }
  bench.start(slow);
  const later = bench.events(asOf).map(({ seq }) => seq);
  await expectAll([...first.sort((a, b) => a - b), ...later]);
}

async function crashes({ bench, config, target, expectAll }: Scene): Promise<void> {
  bench.change(versions(40, 1));
  const slow = altered(config, limited(10));
  await bench.crash(slow);
  bench.change(versions(10, 2));
  await bench.crash(slow);
  bench.change(versions(15, 3));
  await bench.crash(slow);
  bench.start(slow);
  await expectAll();
  const { seqs } = await target.read();
  // Once for each crash, at most a batch: what was delivered and not confirmed.
  assert.ok(seqs === null || seqs.length <= 65 + 3 * 10, `${seqs?.length} events came`);
}

async function restarts({ bench, config, expectAll }: Scene): Promise<void> {
  for (let round = 1; round <= 5; round++) {
    bench.change(versions(60, round));
    bench.start(config);
    if (round % 2 === 0) await bench.caughtUp();
    await bench.stop();
  }
  bench.start(config);
  await expectAll();
}

async function outage({ bench, config, target, expectAll }: Scene): Promise<void> {
  bench.start(altered(config, limited(20)));
  bench.change(versions(50, 1));
  await bench.caughtUp();
  await target.interrupt();
  bench.change(versions(50, 2));
  await bench.stop();
  bench.start(altered(config, limited(20)));
  await until('the failure is noted', () => bench.sink().error !== null);
  assert.equal(bench.sink().state, 'running');
  bench.change(versions(30, 3));
  await target.restore();
  await expectAll();
  assert.equal(bench.sink().error, null);
}

/** Refuses changes of one product until `pardon` is called. */
async function poison({ bench, config, target, expectAll }: Scene): Promise<void> {
  const bad = { seq: 0 };
  const picky = altered(config, (sink) => ({
    deliver: async (events, mark, signal) => {
      if (events.some(({ seq }) => seq === bad.seq)) throw new SinkError('refused', 'this one is refused by the check');
      await sink.deliver(events, mark, signal);
    },
  }));
  bench.change(versions(30, 1));
  bad.seq = 12;
  bench.start(picky);
  bench.change([
    { vbid: 'P11', body: body('P11', 2) },
    { vbid: 'P3', body: body('P3', 2) },
  ]);
  await bench.caughtUp();
  bench.change([
    { vbid: 'P11', body: body('P11', 3) },
    { vbid: 'P4', body: body('P4', 2) },
  ]);
  await bench.caughtUp();
  const states = bench.store.sinks.parked(bench.sink().id).map(({ seq, state }) => [seq, state]);
  assert.deepEqual(states, [
    [12, 'refused'],
    [31, 'waiting'],
    [33, 'waiting'],
  ]);
  const { products } = await target.read();
  assert.equal(products.has('P11'), false);
  assert.deepEqual(products.get('P4'), JSON.parse(body('P4', 2)));
  const skip = (): void => bench.store.request(({ sinks }) => sinks.skip(bench.sink().id, 12, Date.now()));
  skip();
  await until('what waited is delivered', () => bench.store.sinks.parked(bench.sink().id, 'ready').length === 0);
  bench.change(versions(5, 5));
  await bench.stop();
  bench.start(picky);
  const order = bench
    .events()
    .map(({ seq }) => seq)
    .filter((seq) => ![12, 31, 33].includes(seq));
  await expectAll([...order.filter((seq) => seq <= 34), 31, 33, ...order.filter((seq) => seq > 34)]);
}

async function slowly({ bench, config, expectAll }: Scene): Promise<void> {
  let turn = 0;
  const slow = altered(config, (sink) => ({
    ...limited(25)(sink),
    deliver: async (events, mark, signal) => {
      for (let wait = 0; wait < turn % 4; wait++) await new Promise((resolve) => setImmediate(resolve));
      turn++;
      await sink.deliver(events, mark, signal);
    },
  }));
  bench.start(slow);
  for (let round = 1; round <= 10; round++) {
    bench.change(versions(40, round));
    await until('the sink moves', () => bench.store.sinks.get(SINK_NAME) !== undefined);
  }
  await expectAll();
}

/** More at once than fits in a batch, and products of a quarter of a megabyte. */
async function large({ bench, config, expectAll }: Scene): Promise<void> {
  const long = 'ü✓"\\'.repeat(40_000);
  bench.change(versions(6_000, 1));
  bench.change(Array.from({ length: 6 }, (_, index) => ({ vbid: `L${index}`, body: body(`L${index}`, 1, { long }) })));
  bench.start(config);
  await expectAll();
}

async function replays({ bench, config, target, expectAll }: Scene): Promise<void> {
  bench.start(config);
  bench.change(versions(60, 1));
  bench.change(versions(30, 2));
  bench.change([{ vbid: 'P40', body: null }]);
  await expectAll();
  const { id } = bench.sink();
  const all = bench.events().map(({ seq }) => seq);

  bench.store.request(({ sinks }) => sinks.replay(id, 49, false));
  await bench.caughtUp();
  let { seqs } = await target.read();
  if (seqs !== null) assert.deepEqual(seqs.slice(all.length), all.slice(49));

  bench.store.request(({ sinks }) => sinks.replay(id, 0, true));
  await bench.caughtUp();
  ({ seqs } = await target.read());
  // Of each product the newest change; a removal tells a store that still has it.
  const newest = [...new Map(bench.events().map(({ seq, vbid }) => [vbid, seq])).values()].sort((a, b) => a - b);
  if (seqs !== null) assert.deepEqual(seqs.slice(all.length + all.length - 49), newest);
  bench.change(versions(5, 3));
  await bench.caughtUp();
  assert.deepEqual((await target.read()).products, bench.living());
}

async function pauses({ bench, config, target, expectAll }: Scene): Promise<void> {
  bench.start(config);
  bench.change(versions(20, 1));
  await bench.caughtUp();
  bench.store.request(({ sinks }) => sinks.setState(bench.sink().id, 'paused'));
  // A batch that was being read when it was paused may still go out; after a restart nothing is.
  await bench.stop();
  bench.start(config);
  bench.change(versions(20, 2));
  await bench.stop();
  assert.equal(bench.sink().cursor, 20);
  assert.deepEqual((await target.read()).products.get('P1'), JSON.parse(body('P1', 1)));
  bench.start(config);
  bench.store.request(({ sinks }) => sinks.setState(bench.sink().id, 'running'));
  await expectAll();
}

const CHECKS: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  'delivers every change, in order': delivers,
  'is filled with the products as of a change, and goes on from there, while changes go on': fills,
  'survives an end between delivery and confirmation': crashes,
  'goes on after every restart': restarts,
  'waits while the store is down': outage,
  'sets a refused event aside, and what follows it of the same product': poison,
  'takes its time': slowly,
  'takes many events and large ones': large,
  'delivers again on demand': replays,
  'is paused and resumed': pauses,
};

/** The checks of one kind of sink. Each makes a store of its own, and removes it. */
export function sinkChecks(subject: SinkSubject): SinkCheck[] {
  return Object.entries(CHECKS).map(([name, check]) => ({ name, run: () => onScene(subject, check) }));
}
