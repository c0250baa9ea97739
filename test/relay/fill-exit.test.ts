import { SinkError } from '@catchword/sink-kit/sink';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { SINK_NAME, until, wrapSink } from '../../src/contract/harness.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { type SinkConfig, sinkConfig } from '../../src/relay/sink-config.ts';
import { heldSinkText } from '../../src/report/sink-report.ts';
import { feederAt, NEVER, temporaryMirror } from './feeding.ts';
import { KINDS, type TargetKind } from './target-kinds.ts';

function titled(count: number, version = 1, from = 0) {
  return Array.from({ length: count }, (_, index) => {
    const vbid = `P${from + index}`;
    return { vbid, body: JSON.stringify({ vbid, title: `t${from + index}`, version }) };
  });
}

/** Stores whose end of a fill removes what it did not deliver. */
const ENDING = KINDS.filter(({ can }) => can.includes('mark') && can.includes('apply'));

for (const { name: kind, isAvailable, tags, variants, start, prepare } of ENDING) {
  describe.skipIf(!isAvailable)(`the end of a fill of ${kind}`, { tags: [...tags] }, () => {
    let server: Awaited<ReturnType<TargetKind['start']>>;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server.stop());

    /** A store that a sink of another name has fed with 300 products, and now this one feeds. */
    async function renamed(options: string, where?: string) {
      const target = await prepare(server.port, options);
      onTestFinished(() => target.remove());
      const mirror = temporaryMirror();
      const { secret } = target;
      const at = (name: string, view?: string): SinkConfig =>
        sinkConfig({ env: 'SINK', name, url: target.url, secret, where: view });
      mirror.change(titled(300));
      mirror.start(at('former', "title <> 'x'"));
      await until('the former sink has filled it', () => mirror.store.sinks.get('former')?.cursor === 300);
      await mirror.stop();
      const limits = { removalLimit: () => 100 };
      const start = (view = where): void => mirror.start(at(SINK_NAME, view), limits);
      start();
      return {
        ...mirror,
        target,
        start,
        decide: () => decide(mirror),
        size: async () => (await target.read()).products.size,
      };
    }

    function decide({ store }: ReturnType<typeof temporaryMirror>): string {
      return store.request((writer) => changeSink(writer, 'release', SINK_NAME, null, 0));
    }

    it.each(variants)(
      `is held before it takes products from ${kind}, and goes on when it is approved (%j)`,
      async (options) => {
        const {
          store: mirror,
          sink,
          until: wait,
          size,
          change,
          caughtUp,
          decide,
          stop,
          start,
        } = await renamed(options, "title = 't1'");
        await wait('the sink is held', () => sink().state === 'held');
        expect(sink().held).toMatchObject({ why: 'fill', removed: 299, isApproved: false });
        expect(heldSinkText(mirror, sink())).toMatchObject({
          reason: 'the end of its fill would remove 299 of 300 products; CATCHWORD_REMOVAL_LIMIT allows 100',
          advice: expect.stringContaining('npx catchword sink approve contract'),
        });
        expect(await size()).toBe(300);
        change(titled(1, 2, 1));
        await stop();
        start();
        expect(sink().state).toBe('held');
        expect(decide()).toBe('299 products that the fill of contract did not deliver may be removed');
        await caughtUp();
        await until('the store has the view', async () => (await size()) === 1);
        await wait('it is over', () => sink().held === null);
      },
    );

    it(`is not held for the products with parked events, which it leaves in ${kind}`, async () => {
      const target = await prepare(server.port, variants[0] ?? '');
      onTestFinished(() => target.remove());
      const mirror = temporaryMirror();
      const { change, caughtUp, parked, replay, start, stop } = mirror;
      const config = sinkConfig({ env: 'SINK', name: SINK_NAME, url: target.url, secret: target.secret });
      const picky = wrapSink(config, (sink) => ({
        deliver: async (events, mark, signal) => {
          if (events.some(({ body }) => body?.includes('"version":2'))) throw new SinkError('refused', 'poison');
          await sink.deliver(events, mark, signal);
        },
      }));
      const limits = { removalLimit: () => 5 };
      const size = async () => (await target.read()).products.size;
      change(titled(300));
      start(config, limits);
      await caughtUp();
      await until('the store is filled', async () => (await size()) === 300);
      await stop();
      // The fill delivers nothing of 15 products; another one has gone.
      change([...titled(15, 2), { vbid: 'P299', body: null }]);
      replay(0, true);
      start(picky, limits);
      await until('the fill has ended', () => mirror.sink().state === 'held' || mirror.sink().fillEnd !== null);
      await stop();
      expect(await size()).toBe(299);
      expect(mirror.sink()).toMatchObject({ state: 'running', held: null });
      expect(parked()).toHaveLength(15);
    });

    it(`takes a foreign product from ${kind}, brings back a missing one, and leaves the others`, async () => {
      const target = await prepare(server.port, variants[0] ?? '');
      onTestFinished(() => target.remove());
      const mirror = temporaryMirror();
      const { change, caughtUp, start, stop, sink: row } = mirror;
      const config = sinkConfig({ env: 'SINK', name: SINK_NAME, url: target.url, secret: target.secret });
      change(titled(30));
      start(config);
      await caughtUp();
      await until('the first fill has ended', () => row().fillEnd !== null);
      await stop();
      // As another program changes it: before the store has got anything after the end of its fill, it is compared again.
      const store = await config.make();
      const { generation, cursor } = row();
      const believed = { incarnation: feederAt(mirror), generation, cursor, at: 0, late: 0 };
      const mark = (await store.open(believed, cursor, NEVER)) ?? believed;
      const foreign = { id: 'x:1', seq: 1, at: 1, op: 'created', text: '', vbid: 'FOREIGN', body: '{}' } as const;
      await store.apply?.([foreign], ['P3'], mark, NEVER);
      await store.close();
      expect((await target.read()).products).toHaveLength(30);
      start(config);
      await until('the fill has ended again', async () => !(await target.read()).products.has('FOREIGN'));
      expect((await target.read()).products).toEqual(mirror.living());
    });

    it(`takes nothing from ${kind} that lacks a product after it was sent once more`, async () => {
      const target = await prepare(server.port, variants[0] ?? '');
      onTestFinished(() => target.remove());
      const mirror = temporaryMirror();
      const config = sinkConfig({ env: 'SINK', name: SINK_NAME, url: target.url, secret: target.secret });
      mirror.change(titled(30));
      mirror.start(config);
      await mirror.caughtUp();
      await until('the first fill has ended', () => mirror.sink().fillEnd !== null);
      await mirror.stop();
      mirror.change([{ vbid: 'P9', body: null }]);
      mirror.replay(0, true);
      // As a store that takes two keys for one.
      const merging = wrapSink(config, (sink) => ({
        list: async function* (...given) {
          for await (const some of sink.list?.(...given) ?? []) yield some.filter(({ vbid }) => vbid !== 'P3');
        },
        ...(sink.digests && { digests: { digestOf: sink.digests.digestOf.bind(sink.digests) } }),
      }));
      await mirror.failed(merging);
      expect(mirror.sink().error).toMatch(
        /has 28 of the 29 products .* nothing is removed.* npx catchword sink replay contract --from beginning/,
      );
      await mirror.stop();
      expect((await target.read()).products).toHaveLength(30);
      mirror.start(config);
      await until('the fill has ended', () => mirror.sink().fillEnd !== null);
      expect((await target.read()).products).toEqual(mirror.living());
    });

    it(`is not held if it takes few products from ${kind}`, async () => {
      const { sink, size } = await renamed(variants[0] ?? '', "title NOT LIKE 't9%'");
      await until('the store has the view', async () => (await size()) === 289);
      expect(sink()).toMatchObject({ state: 'running', held: null });
    });
  });
}
