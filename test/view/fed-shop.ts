import { onTestFinished } from 'vitest';
import { SINK_NAME, until } from '../../src/contract/harness.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { holdNumber } from '../../src/report/sink-report.ts';
import { compileView, type View, viewText } from '../../src/view/view.ts';
import { temporaryMirror } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';

/** A view of the products for which this is true. */
export function where(text: string): View {
  return compileView(viewText(text, undefined), { where: 'WHERE', fields: 'FIELDS' });
}

/** Products with a price, as JSON. */
export function shop(count: number, price: string, from = 0) {
  return Array.from({ length: count }, (_, index) => {
    const vbid = `P${from + index}`;
    return { vbid, body: `{"vbid":"${vbid}","title":"t${index}","price":${price}}` };
  });
}

/** A store in memory that got so many products, each with a price. */
export async function fedShop(count: number, view: View | null = null) {
  const mirror = temporaryMirror();
  const store = memory();
  onTestFinished(() => mirror.stop());
  mirror.change(shop(count, '1'));
  const limits = { removalLimit: () => 150 };
  mirror.start(store.config({ view }), limits);
  await mirror.caughtUp();
  return {
    mirror,
    store,
    restart: async (next: View | null) => {
      await mirror.stop();
      mirror.start(store.config({ view: next }), limits);
    },
    decide: (action: 'release' | 'release-newest' | 'resume' | 'retry') => {
      const number = action.startsWith('release') ? holdNumber(mirror.sink()) : null;
      return mirror.store.request((writer) => changeSink(writer, action, SINK_NAME, number, 0));
    },
    held: () => until('the sink is held', () => mirror.sink().state === 'held'),
    products: () => {
      const found = new Map<string, string>();
      for (const { vbid, body } of store.rows) {
        if (body === null) found.delete(vbid);
        else found.set(vbid, body);
      }
      return found;
    },
  };
}
