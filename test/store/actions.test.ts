import { expect, it } from 'vitest';
import type { NewAction } from '../../src/store/rows/decision-rows.ts';
import { openedStore } from './opened-store.ts';

function open() {
  const store = openedStore();
  const add = (given: Partial<NewAction> = {}): void => {
    const row = { at: 1, who: 'a test', action: 'pause', target: 'shop', argument: null, endedAt: null, ...given };
    store.request(({ actions }) => actions.add({ state: 'done', outcome: 'shop is paused', ...row }));
  };
  return { store, add };
}

it('the store keeps the newest 10,000 decisions, and all that wait', () => {
  const { store, add } = open();
  store.request(() => {
    add({ state: 'asked', outcome: null });
    for (let number = 0; number < 10_004; number++) add();
  });
  const ids = store.actions.list(20_000).map(({ id }) => id);
  expect(ids).toHaveLength(10_001);
  expect(ids.at(0)).toBe(10_005);
  expect(ids.slice(-2)).toEqual([6, 1]);
  expect(store.actions.list(1)[0]?.id ?? 0).toBe(10_005);
});

it('a decision ends once', () => {
  const { store, add } = open();
  add({ state: 'asked', outcome: null });
  add({ state: 'asked', outcome: null });
  const end = (outcome: string) =>
    store.request(({ actions }) => actions.end(1, { state: 'done', outcome, endedAt: 5 }));
  expect(end('once')).toBe(true);
  expect(end('twice')).toBe(false);
  expect(store.actions.get(1)).toMatchObject({ outcome: 'once', endedAt: 5 });
  expect(store.actions.asked().map(({ id }) => id)).toEqual([2]);
});

it('decisions about a run are listed apart from decisions about a sink of the same name', () => {
  const { store, add } = open();
  add({ target: '12' });
  add({ action: 'approve', target: '12' });
  add({ action: 'approve', target: '1' });
  expect(store.actions.of('12', ['approve', 'reject'], 10).map(({ id }) => id)).toEqual([2]);
  expect(store.actions.of('12', ['pause'], 10).map(({ id }) => id)).toEqual([1]);
  expect(store.actions.list(2).map(({ id }) => id)).toEqual([3, 2]);
  expect(store.actions.list(5, { before: 3 }).map(({ id }) => id)).toEqual([2, 1]);
});
