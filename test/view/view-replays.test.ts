import { expect, it, onTestFinished } from 'vitest';
import { openHarness, SINK_NAME, until, type Version } from '../../src/contract/harness.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { legOf } from '../../src/store/rows/sink-legs.ts';
import { compileView, type View } from '../../src/view/view.ts';
import { memoryReceiver, QUICK } from './memory-receiver.ts';

const SHOP_1 = compileView({ where: "body->>'shop' = 1", fields: null }, { where: 'WHERE', fields: 'FIELDS' });

function book(vbid: string, shop: number, price = 1): Version {
  return { vbid, body: JSON.stringify({ vbid, shop, price }) };
}

/** A store of three products, without a view and without a position of its own. */
async function filledStore() {
  const mirror = openHarness();
  onTestFinished(() => mirror.close());
  const shop = memoryReceiver(false);
  const { store } = mirror;
  const isSettled = (view: View | null): boolean => {
    const sink = mirror.sink();
    return legOf(sink).where === (view?.where ?? null) && sink.cursor === store.changes.lastSeq();
  };
  mirror.start(shop.config(null), { clock: QUICK });
  await mirror.caughtUp();
  mirror.change([book('A', 1), book('B', 2), book('C', 1)]);
  await mirror.caughtUp();
  return {
    ...mirror,
    shop,
    keys: () => [...shop.last().products.keys()].sort(),
    viewTo: async (view: View | null): Promise<void> => {
      await mirror.stop();
      mirror.start(shop.config(view), { clock: QUICK });
      await until('the store has its view', () => isSettled(view));
    },
  };
}

it('a product whose event was skipped leaves the store when a changed view leaves it out', async () => {
  const { shop, change, caughtUp, store, sink, viewTo, keys } = await filledStore();
  shop.refused.add('B');
  change([book('B', 2, 2)]);
  await caughtUp();
  store.request(({ sinks }) => sinks.skipAll(sink().id, 0));
  shop.refused.clear();
  await viewTo(SHOP_1);
  expect(keys()).toEqual(['A', 'C']);
});

it('a store that was replayed from the first change has nothing that its next view leaves out', async () => {
  const { store, stop, viewTo, keys } = await filledStore();
  await stop();
  store.request((writer) => changeSink(writer, 'replay', SINK_NAME, 1, 0));
  await viewTo(SHOP_1);
  expect(keys()).toEqual(['A', 'C']);
});

it('a replay begins after the change at which the store got its view, or sends every product', async () => {
  const { store, change, caughtUp, viewTo, keys } = await filledStore();
  await viewTo(SHOP_1);
  const replay = (from: number): string => store.request((writer) => changeSink(writer, 'replay', SINK_NAME, from, 0));
  const at = store.changes.lastSeq();
  expect(() => replay(2)).toThrow(`--from: ${SINK_NAME} got its view at ${at}`);
  change([book('D', 1), book('E', 1)]);
  await caughtUp();
  expect(() => replay(at)).toThrow('got its view');
  replay(at + 1);
  await caughtUp();
  replay(0);
  await caughtUp();
  expect(keys()).toEqual(['A', 'C', 'D', 'E']);
});
