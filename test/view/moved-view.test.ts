import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { compileView, viewText } from '../../src/view/view.ts';
import { books, temporaryMirror } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';

const VIEW = compileView(viewText("vbid = 'P1'", undefined), { where: 'WHERE', fields: 'FIELDS' });

it.each([
  ['name', { name: 'other' }],
  ['address', { address: 'elsewhere', identity: 'elsewhere' }],
])('a store with a view gets every product when its sink gets another %s and no view', async (_what, moved) => {
  const mirror = temporaryMirror();
  const store = memory();
  onTestFinished(() => mirror.stop());
  mirror.change(books(5, 1));
  mirror.start(store.config({ view: VIEW }));
  await mirror.caughtUp();
  await mirror.stop();
  expect(store.rows.map(({ vbid }) => vbid)).toEqual(['P1']);
  const { name } = store.config(moved);
  mirror.start(store.config(moved));
  await until('the sink has all', () => mirror.store.sinks.get(name)?.cursor === mirror.store.changes.lastSeq());
  expect(new Set(store.rows.map(({ vbid }) => vbid)).size).toBe(5);
});
