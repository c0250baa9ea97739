import type { SinkEvent } from '@catchword/sink-kit/sink';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { smallBatches, until, wrapSink } from '../../src/contract/harness.ts';
import { legOf } from '../../src/store/rows/sink-legs.ts';
import { compared } from './compared.ts';
import {
  books,
  configAt,
  fed,
  fedBefore,
  feederAt,
  feeding,
  fillEnded,
  NEVER,
  numbers,
  temporaryMirror,
} from './feeding.ts';
import { KINDS, type TargetKind } from './target-kinds.ts';

/* What happens to stores besides deliveries, a row for each, over all kinds that can do what it needs (`can` of target-kinds.ts). */

type Row = readonly [
  name: string,
  needs: TargetKind['can'],
  run: (prepared: Prepared, kind: TargetKind) => Promise<void>,
];
type Prepared = ReturnType<TargetKind['prepare']>;

const REPLAY = 'To send every product again: npx catchword sink replay contract --from beginning';

/** A store of 30 products that has lost all of them, and its position. */
async function emptied(prepared: Prepared) {
  const scene = await fedBefore(prepared, 30);
  const store = await scene.config.make();
  await store.drop?.(NEVER);
  await store.close();
  return scene;
}

const ROWS: readonly Row[] = [
  [
    'that another mirror has fed stays as it is until it is taken over',
    ['mark'],
    async (prepared, { can }) => {
      const { target, config } = await fedBefore(prepared, 30);
      const before = await target.read();
      const other = temporaryMirror();
      other.change(books(10, 2));
      await other.stopped(config);
      expect(other.sink().error).toContain('was fed by another mirror');
      expect(await target.read()).toEqual(before);
      await other.stop();
      other.takeOver();
      await other.crash(wrapSink(config, smallBatches(4)));
      // A fill that ended in its middle has removed nothing.
      if (can.includes('apply')) expect((await target.read()).products).toHaveLength(30);
      other.start(config);
      await other.caughtUp();
      await fillEnded(other, config);
      await other.stop();
      await other.resume(config, books(2, 3));
      const { seqs, products } = await target.read();
      if (can.includes('apply')) expect(products).toEqual(other.living());
      // Events of both mirrors stay.
      else expect(seqs).toEqual([...numbers(1, 30), ...numbers(1, 12)]);
    },
  ],
  [
    'that lost everything gets every product again',
    ['mark', 'refill'],
    async (prepared) => {
      const { harness, target, config } = await emptied(prepared);
      await harness.resume(config, [...books(1, 2), { vbid: 'P7', body: null }]);
      await fillEnded(harness, config);
      await until('every product is there', async () => (await target.read()).products.size === 29);
      expect((await target.read()).products).toEqual(harness.living());
    },
  ],
  [
    'that lost everything before its view was changed gets all that the new one shows',
    ['mark', 'refill'],
    async (prepared) => {
      const { harness, target } = await emptied(prepared);
      const changed = configAt(target.url, target.secret, { where: "vbid <> 'P7'" });
      harness.start(changed);
      await harness.until('the view is changed', () => legOf(harness.sink()).where !== null);
      await harness.caughtUp();
      await fillEnded(harness, changed);
      const expected = new Map(harness.living());
      expected.delete('P7');
      expect((await target.read()).products).toEqual(expected);
    },
  ],
  [
    'that got nothing by its view gets only what another one shows',
    ['events'],
    async (prepared) => {
      const { harness, target } = await feeding(prepared);
      const viewed = (where: string) => configAt(target.url, target.secret, { where });
      harness.change(books(30, 1));
      harness.start(viewed("vbid = 'none'"));
      await harness.caughtUp();
      await harness.stop();
      harness.start(viewed("vbid IN ('P7', 'P8')"));
      await harness.until('the view is changed', () => legOf(harness.sink()).where?.includes('P7') === true);
      await harness.caughtUp();
      expect((await target.read()).seqs).toEqual([8, 9]);
    },
  ],
  [
    'is repaired where its products were changed, removed and added',
    ['mark', 'list', 'apply'],
    async (prepared) => {
      const { harness, target, config } = await fed(prepared, 30);
      await harness.deliver([...books(3, 2), { vbid: 'P9', body: null }]);
      await harness.stop();
      // As another program does it, but with the mark: some stores notice any other one.
      const store = await config.make();
      const { generation, cursor } = harness.sink();
      const believed = { incarnation: feederAt(harness), generation, cursor, at: 0, late: 0 };
      const mark = (await store.open(believed, cursor, NEVER)) ?? believed;
      const put = (vbid: string, seq: number): SinkEvent => {
        const body = JSON.stringify({ vbid, tampered: 1 });
        return { id: 'x:1', seq, at: 1, op: 'created', text: '', vbid, body };
      };
      await store.apply?.([put('P2', cursor), put('FOREIGN', 1)], ['P4'], mark, NEVER);
      await store.close();
      harness.start(config);
      const found = { differing: 1, missing: 1, extra: 1, error: null };
      expect(await compared(harness)).toMatchObject({ ...found, allows: 'repair' });
      expect(await compared(harness, { repair: true })).toMatchObject({ ...found, repaired: 3 });
      expect((await target.read()).products).toEqual(harness.living());
    },
  ],
  [
    'of events is not repaired, and gets the next ones',
    ['list', 'events'],
    async (prepared) => {
      const { harness, target } = await fed(prepared, 3);
      const error = `this store cannot be repaired: events are only added to it. ${REPLAY}`;
      expect(await compared(harness, { repair: true })).toMatchObject({ error });
      await harness.deliver(books(1, 2));
      expect(await compared(harness)).toMatchObject({ same: 3, error: null, allows: 'comparison' });
      expect(harness.sink()).toMatchObject({ error: null, retryAt: null });
      expect((await target.read()).products).toEqual(harness.living());
    },
  ],
];

for (const kind of KINDS) {
  const { name, isAvailable, tags, variants, can, start, prepare } = kind;
  const rows = ROWS.filter(([, needs]) => needs.every((one) => can.includes(one)));
  describe.skipIf(!isAvailable || rows.length === 0)(`a store of ${name}`, { tags: [...tags] }, () => {
    let server: Awaited<ReturnType<TargetKind['start']>>;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server?.stop());

    for (const [what, , run] of rows)
      it(`a store of ${name} ${what}`, () => run(prepare(server.port, variants.at(-1) ?? ''), kind));
  });
}
