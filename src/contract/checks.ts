import assert from 'node:assert/strict';
import { type BucketSum, SinkError } from '@catchword/sink-kit/sink';
import { bucketOf, createSums } from '@catchword/sink-kit/store-digest';
import {
  alike,
  book,
  books,
  comparison,
  endIdle,
  expectView,
  kept,
  listedBy,
  onOpened,
  onScene,
  positionOf,
  type Scene,
  STRANGER,
} from './contract-scene.ts';
import { everyApplyFails, everyFifthFails } from './failing-calls.ts';
import { SINK_NAME, smallBatches, wrapSink } from './harness.ts';
import type { SinkSubject } from './subject.ts';

export type { OpaqueTarget, Received, SinkSubject, SinkTarget } from './subject.ts';

/*
 * The checks that every sink must pass, for any test runner:
 *
 *   import { sinkChecks } from 'catchword/sink-contract';
 *   for (const check of sinkChecks(subject)) it(check.name, check.run);
 */

const LISTINGS = [
  { whole: false, positions: true },
  { whole: true, positions: false },
  { whole: true, positions: true },
] as const;

const CHECKS: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  'delivers every change in order': async ({ harness, config, expectAll }) => {
    harness.start(config);
    await harness.caughtUp();
    harness.change(books(300, 1));
    await expectAll();
    harness.change(books(100, 2));
    harness.change([{ vbid: 'P7', body: null }, ...books(3, 3), { vbid: 'P0', body: null }]);
    await expectAll();
    harness.change([book('P7', 4)]);
    await expectAll();
  },

  'is not fed by two sinks of one mirror': async ({ harness, config, expectAll }) => {
    const first = { ...config, name: 'first' };
    const cursorOf = (name: string) => harness.store.sinks.get(name)?.cursor ?? -1;
    const isFed = (name: string): boolean => cursorOf(name) === harness.store.changes.lastSeq();
    harness.change(books(50, 1));
    harness.start(first);
    await harness.until('the first sink has confirmed everything', () => isFed('first'));
    await harness.stop();
    // A store that does not keep its position cannot tell who feeds it.
    if ((await positionOf(config)) === null) return;
    harness.change(books(20, 2));
    harness.start(config, { sinks: [config, first] });
    const hasFailed = (): boolean => (harness.store.sinks.get(SINK_NAME)?.error ?? null) !== null;
    await harness.until('both sinks were opened', () => isFed('first') && (hasFailed() || isFed(SINK_NAME)));
    assert.ok(!isFed(SINK_NAME), 'two sinks feed the store');
    await harness.stop();
    // Without the setting of the first sink, the store is free, and the other one continues where it is.
    harness.start(config);
    harness.store.request(({ sinks }) => sinks.setState(harness.sink().id, 'running'));
    harness.change([...books(10, 3), { vbid: 'P40', body: null }]);
    await expectAll();
  },

  'fills a new store while changes continue, then delivers those': async ({ harness, config, expectAll }) => {
    // Changes continue during the fill, and the relay is restarted several times.
    harness.change(books(900, 1));
    harness.change(books(300, 2, 200));
    harness.change(books(200, 0, 400).map(({ vbid }) => ({ vbid, body: null })));
    const asOf = harness.store.changes.lastSeq();
    const newest = new Map(harness.events().map((event) => [event.vbid, event]));
    const first = [...newest.values()].filter((event) => event.body !== null).map(({ seq }) => seq);
    const slow = wrapSink(config, smallBatches(50));
    for (let round = 0; round < 4; round++) {
      harness.start(slow);
      await harness.until('the sink moves', () => (harness.store.sinks.get(SINK_NAME)?.cursor ?? 0) > round * 250);
      harness.change(books(20, 10 + round, round * 150));
      harness.change([{ vbid: `P${600 + round}`, body: null }]);
      await harness.stop();
    }
    harness.start(slow);
    const later = harness.events(asOf).map(({ seq }) => seq);
    await expectAll([...first.sort((a, b) => a - b), ...later]);
  },

  'survives a crash between delivery and confirmation': async ({ harness, config, read, expectAll }) => {
    const slow = wrapSink(config, smallBatches(10));
    for (const versions of [books(40, 1), books(10, 2), books(15, 3)]) {
      harness.change(versions);
      await harness.crash(slow);
    }
    harness.start(slow);
    await expectAll();
    const seqs = (await read())?.seqs ?? null;
    // Each crash repeats at most one batch, which was delivered but not confirmed.
    assert.ok(seqs === null || seqs.length <= 65 + 3 * 10, `${seqs?.length} events arrived`);
  },

  'resumes after every restart': async ({ harness, config, expectAll }) => {
    for (let round = 1; round <= 5; round++) {
      harness.change(books(60, round));
      harness.start(config);
      if (round % 2 === 0) await harness.caughtUp();
      await harness.stop();
    }
    harness.start(config);
    await expectAll();
  },

  'waits while the store is unreachable': async ({ harness, config, target, expectAll }) => {
    assert.ok('read' in target, 'needs a store that can be made unreachable');
    harness.start(wrapSink(config, smallBatches(20)));
    await harness.deliver(books(50, 1));
    await target.interrupt();
    harness.change(books(50, 2));
    await harness.stop();
    harness.start(wrapSink(config, smallBatches(20)));
    await harness.until('the failure is recorded', () => harness.sink().error !== null);
    assert.equal(harness.sink().state, 'running');
    harness.change(books(30, 3));
    await target.restore();
    await expectAll();
    assert.equal(harness.sink().error, null);
  },

  'goes on when its connection ended while it was idle, in deliveries and comparisons': async (scene) => {
    const { harness, config, target, expectAll } = scene;
    assert.ok('read' in target, 'needs a store that can be made unreachable');
    harness.start(config);
    await harness.deliver(books(20, 1));
    for (let round = 2; round <= 3; round++) {
      await endIdle(harness, target);
      await harness.deliver(books(5, round));
      await endIdle(harness, target);
      const check = await comparison(harness);
      if (check.allows !== 'nothing') assert.equal(check.error, null);
    }
    await expectAll();
  },

  'gets everything although every fifth call fails': async ({ harness, config, expectAll }) => {
    harness.change(books(40, 1));
    harness.start(wrapSink(config, everyFifthFails));
    for (let round = 2; round <= 12; round++) await harness.deliver(books(5, round));
    await harness.stop();
    harness.start(config);
    await expectAll();
  },

  'parks a refused event and later ones of its product': async ({ harness, config, read, expectAll }) => {
    // Event 12 is refused until the operator skips it.
    const picky = wrapSink(config, (sink) => ({
      deliver: async (events, mark, signal) => {
        if (events.some(({ seq }) => seq === 12)) throw new SinkError('refused', 'refused by the check');
        await sink.deliver(events, mark, signal);
      },
    }));
    harness.change(books(30, 1));
    harness.start(picky);
    await harness.deliver([book('P11', 2), book('P3', 2)]);
    await harness.deliver([book('P11', 3), book('P4', 2)]);
    const states = harness.store.sinks.parked(harness.sink().id).map(({ seq, state }) => [seq, state]);
    assert.deepEqual(states, [
      [12, 'refused'],
      [31, 'waiting'],
      [33, 'waiting'],
    ]);
    const found = await read();
    assert.notEqual(found?.products.has('P11'), true);
    if (found !== null) assert.deepEqual(found.products.get('P4'), JSON.parse(book('P4', 2).body));
    const { id } = harness.sink();
    harness.store.request(({ sinks }) => sinks.skip(id, 12, Date.now()));
    await harness.until('the waiting events are delivered', () => harness.store.sinks.parked(id, 'ready').length === 0);
    harness.change(books(5, 5));
    await harness.stop();
    harness.start(picky);
    const order = harness.events().flatMap(({ seq }) => ([12, 31, 33].includes(seq) ? [] : seq));
    await expectAll([...order.filter((seq) => seq <= 34), 31, 33, ...order.filter((seq) => seq > 34)]);
  },

  'keeps the order when deliveries are slow': async ({ harness, config, expectAll }) => {
    let turn = 0;
    const slow = wrapSink(config, (sink) => ({
      ...smallBatches(25)(sink),
      deliver: async (events, mark, signal) => {
        for (let wait = 0; wait < turn % 4; wait++) await new Promise((resolve) => setImmediate(resolve));
        turn++;
        await sink.deliver(events, mark, signal);
      },
    }));
    harness.start(slow);
    for (let round = 1; round <= 10; round++) {
      harness.change(books(40, round));
      await harness.until('the sink moves', () => harness.store.sinks.get(SINK_NAME) !== undefined);
    }
    await expectAll();
  },

  'delivers many events and large ones': async ({ harness, config, expectAll }) => {
    // A batch that is full, and the next one; and products of a quarter of a megabyte.
    const long = 'ü✓"\\'.repeat(40_000);
    const sink = await config.make();
    await sink.close();
    harness.change(books(Math.min(sink.batch.events, 10_000) + 1, 1));
    harness.change(Array.from({ length: 6 }, (_, index) => book(`L${index}`, 1, { long })));
    harness.start(config);
    await expectAll();
  },

  'keeps keys that are alike apart, and numbers as they were sent': async ({ harness, config, expectProducts }) => {
    harness.start(config);
    for (const version of [1, 2]) {
      await harness.deliver(alike(version));
      await kept(expectProducts);
    }
    await harness.deliver(alike(3).flatMap(({ vbid }, nth) => (nth % 2 === 0 ? { vbid, body: null } : [])));
    await kept(expectProducts);
  },

  'lists whole what it lists in parts, and adds up what it lists': async ({ harness, config }) => {
    harness.start(config);
    await harness.deliver([...books(60, 1), ...alike(1)]);
    await harness.deliver([...books(20, 2), { vbid: 'P50', body: null }]);
    await harness.stop();
    const newest = new Map(harness.events().map((event) => [event.vbid, { ...event, id: '', text: '' }]));
    const living = [...newest.values()].filter(({ body }) => body !== null);
    const first = new Set(living.slice(0, 30).map(({ vbid }) => bucketOf(vbid)));
    const rest = new Set(living.map(({ vbid }) => bucketOf(vbid)).filter((bucket) => !first.has(bucket)));
    await onOpened(config, async (sink, opened, signal) => {
      // A store without a mark cannot compare it.
      const mark = opened ?? STRANGER;
      const { digests } = sink;
      if (sink.list === undefined) return;
      for (const listing of LISTINGS) {
        const listed = await listedBy(sink.list(listing, null, mark, signal), null);
        assert.deepEqual([...listed.keys()].sort(), living.map(({ vbid }) => vbid).sort());
        const all = new Map(listed);
        for (const buckets of [first, rest]) {
          for (const [vbid, product] of await listedBy(sink.list(listing, buckets, mark, signal), buckets)) {
            assert.deepEqual(product, all.get(vbid));
            all.delete(vbid);
          }
        }
        assert.deepEqual([...all.keys()], [], 'not in the lists of their buckets');
        if (digests === undefined) continue;
        const sums = createSums();
        for (const event of living) {
          const digest: string = digests.digestOf(event, listing);
          assert.equal(listed.get(event.vbid)?.digest, digest);
          sums.add(bucketOf(event.vbid), digest);
        }
        const added: ReadonlyMap<number, BucketSum> = (await digests.sums?.(listing, mark, signal)) ?? sums.sums;
        // Buckets without products may be missing.
        assert.deepEqual(new Map([...added].filter(([, { count }]) => count > 0)), sums.sums);
      }
    });
  },

  'redelivers on demand': async ({ harness, config, read, expectProducts, expectAll }) => {
    harness.start(config);
    harness.change(books(60, 1));
    harness.change(books(30, 2));
    harness.change([{ vbid: 'P40', body: null }]);
    await expectAll();
    const all = harness.events().map(({ seq }) => seq);

    harness.store.request(({ sinks }) => sinks.replay(harness.sink(), 49));
    await harness.caughtUp();
    let seqs = (await read())?.seqs ?? null;
    if (seqs !== null) assert.deepEqual(seqs.slice(all.length), all.slice(49));

    harness.store.request(({ sinks }) => sinks.replay(harness.sink(), null));
    await harness.caughtUp();
    seqs = (await read())?.seqs ?? null;
    // The newest change of each product, removals included: the store may still have the product.
    const newest = [...new Map(harness.events().map(({ seq, vbid }) => [vbid, seq])).values()].sort((a, b) => a - b);
    if (seqs !== null) assert.deepEqual(seqs.slice(all.length + all.length - 49), newest);
    await harness.deliver(books(5, 3));
    await expectProducts();
  },

  'has nothing at the end of a fill that should not be there, although each step fails': async (scene) => {
    const { harness, config, expectProducts } = scene;
    harness.change(books(40, 1));
    harness.start(config);
    await harness.caughtUp();
    await harness.stop();
    const gone = books(15, 1, 20).map(({ vbid }) => ({ vbid, body: null }));
    harness.change([...gone, ...books(5, 2)]);
    harness.store.request(({ sinks }) => sinks.replay(harness.sink(), null));
    await harness.crash(wrapSink(config, smallBatches(7)));
    harness.start(wrapSink(config, everyApplyFails()));
    await harness.caughtUp();
    const store = await config.make();
    await store.close();
    // A store that cannot list has got removals in its fill.
    if (store.apply !== undefined) await harness.until('the fill has ended', () => harness.sink().fillEnd !== null);
    await expectProducts();
  },

  'has what a view shows, and removes what leaves it': async (scene) => {
    const { harness, withView } = scene;
    const config = withView("body->>'version' < 3 AND vbid <> 'P1'", 'version');
    harness.change([...books(40, 1), ...books(20, 3, 40)]);
    harness.start(config);
    await expectView(scene, config);
    // Some change, some leave, some enter, and some are removed.
    harness.change([...books(10, 2), ...books(10, 3, 10), ...books(5, 1, 40), { vbid: 'P30', body: null }]);
    await expectView(scene, config);
  },

  'gets what differs when its view is changed, over crashes': async (scene) => {
    const { harness, config, withView } = scene;
    harness.change([...books(40, 1), ...books(40, 2, 40)]);
    harness.start(config);
    await harness.caughtUp();
    for (const version of [1, 2]) {
      await harness.stop();
      const viewed = wrapSink(withView(`body->>'version' = ${version}`, 'title'), smallBatches(7));
      await harness.crash(viewed);
      harness.start(viewed);
      await expectView(scene, viewed);
      harness.change(books(10, version, 35));
      await expectView(scene, viewed);
    }
  },

  'pauses and resumes': async ({ harness, config, read, expectAll }) => {
    harness.start(config);
    await harness.deliver(books(20, 1));
    harness.store.request(({ sinks }) => sinks.setState(harness.sink().id, 'paused'));
    // A batch that was already read may still be delivered; after a restart, none is.
    await harness.stop();
    harness.start(config);
    harness.change(books(20, 2));
    await harness.stop();
    assert.equal(harness.sink().cursor, 20);
    const found = await read();
    if (found !== null) assert.deepEqual(found.products.get('P1'), JSON.parse(book('P1', 1).body));
    harness.start(config);
    harness.store.request(({ sinks }) => sinks.setState(harness.sink().id, 'running'));
    await expectAll();
  },
};

const INTERRUPTING: ReadonlySet<string> = new Set([
  'waits while the store is unreachable',
  'goes on when its connection ended while it was idle, in deliveries and comparisons',
]);

export type ContractCheck = ReturnType<typeof sinkChecks>[number];

/** The checks for one kind of sink. Each one prepares a store and removes it. */
export function sinkChecks(subject: SinkSubject) {
  return Object.entries(CHECKS).map(([name, check]) => ({
    name,
    /** Whether it makes the store unreachable. */
    interrupts: INTERRUPTING.has(name),
    run: () => onScene(subject, check),
  }));
}
