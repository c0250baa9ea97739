import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/relay/contract/harness.ts';
import { compileView, type View, viewText } from '../../src/view/view.ts';
import { books, temporaryMirror } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';

function where(text: string): View {
  return compileView(viewText(text, undefined), { where: 'WHERE', fields: 'FIELDS' });
}

const [A, B, C] = [where("vbid <> 'P1'"), where("vbid <> 'P2'"), where("vbid <> 'P3'")];

/** Lets a store of 30 products go down, gives its sink these views one after the other, and lets the store come back. */
async function afterViews(first: View | null, views: readonly (View | null)[]) {
  const mirror = temporaryMirror();
  onTestFinished(() => mirror.stop());
  const store = memory();
  mirror.change(books(30, 1));
  mirror.start(store.config({ view: first }));
  await mirror.caughtUp();
  await mirror.stop();
  const rows = store.rows.length;
  store.isDown = true;
  for (const view of views) {
    mirror.start(store.config({ view }));
    await until('it is failing', () => mirror.sink().error !== null);
    await mirror.stop();
  }
  mirror.change(books(1, 2));
  store.isDown = false;
  mirror.start(store.config({ view: views.at(-1) ?? null }));
  await mirror.caughtUp();
  return store.rows.slice(rows).map(({ vbid, body }) => `${vbid} ${body === null ? 'removed' : 'sent'}`);
}

it.each<[string, View | null, readonly (View | null)[], readonly string[]]>([
  ['a view was changed and put back', A, [B, A], ['P0 sent']],
  ['its first view was taken away again', null, [B, null], ['P0 sent']],
  ['a view was changed twice and put back', A, [B, C, A], ['P0 sent']],
  ['a view was changed twice', A, [B, C], ['P1 sent', 'P3 removed', 'P0 sent']],
])('a store that was down when %s gets only what differs', async (_, first, views, expected) => {
  expect(await afterViews(first, views)).toEqual(expected);
});
