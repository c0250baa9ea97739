// @module-tag service

import { CatchwordError } from '@catchword/base/errors';
import { churn, createCatalog } from '@catchword/sandbox/catalog/changing-catalog';
import type { TimeRange } from '@catchword/sandbox/catalog/product-states';
import { LIST_ORDERS, type SandboxOptions } from '@catchword/sandbox/options';
import { withdrawnIn } from '@catchword/testing/sandbox-for';
import fc from 'fast-check';
import { expect, it } from 'vitest';

const DAY_MS = 86_400_000;
const START = Date.UTC(2026, 0, 1);

function make(given: Pick<SandboxOptions, 'items'> & { order?: SandboxOptions['order'] }) {
  const time = { now: START };
  const options = { order: 'id', seed: 1, withdrawnForMs: 10 * DAY_MS, ...given } as const;
  const catalog = createCatalog(options, { now: () => time.now });
  const list = (range: TimeRange | null, offset = 0, limit = 1_000_000) => {
    const { count, products } = catalog.list(range, offset, limit);
    const found = products.map(({ index, version, withdrawn }) => ({ index, version, withdrawn }));
    return { count, found, indices: found.map(({ index }) => index) };
  };
  return { catalog, time, list };
}

const since = (from: number): TimeRange => ({ from, until: Number.POSITIVE_INFINITY });

it('the changing catalog lists products in order of creation, and has no updates at the start', () => {
  const { list } = make({ items: 5 });
  expect(list(null).indices).toEqual([0, 1, 2, 3, 4]);
  expect(list(null, 3, 10).indices).toEqual([3, 4]);
  expect(list(null, 9, 10)).toMatchObject({ count: 5, indices: [] });
  expect(list(since(START - 29 * DAY_MS)).count).toBe(0);
  expect(list(since(START - 31 * DAY_MS)).count).toBe(5);
});

it('the changing catalog returns a withdrawn product in deltas and by lookup for ten days, but not in the list', () => {
  const { catalog, time, list } = make({ items: 3 });
  time.now += 1000;
  expect(catalog.mutate({ remove: 1 })).toEqual({ created: 0, updated: 0, removed: 1, living: 2 });
  const [gone] = list(since(START)).found;
  expect(gone).toMatchObject({ version: 0, withdrawn: true });
  expect(list(null).indices).not.toContain(gone?.index);
  expect(catalog.find(gone?.index ?? -1)).toMatchObject({ withdrawn: true, updatedAt: START + 1000 });
  time.now += 10 * DAY_MS;
  expect(list(since(START)).count).toBe(0);
  expect(catalog.find(gone?.index ?? -1)).toBeNull();
  expect(list(null).count).toBe(2);
});

it('the changing catalog includes both ends of a range', () => {
  const { catalog, time, list } = make({ items: 3 });
  for (const at of [10, 20, 30]) {
    time.now = START + at;
    catalog.mutate({ create: 1 });
  }
  expect(list({ from: START + 10, until: START + 20 }).indices).toEqual([3, 4]);
  expect(list({ from: START + 11, until: START + 29 }).indices).toEqual([4]);
  expect(list({ from: START + 21, until: START + 20 }).count).toBe(0);
});

it('the changing catalog changes fewer products if there are not enough', () => {
  const { catalog } = make({ items: 3 });
  expect(catalog.mutate({ remove: 10, update: 10, create: 2 })).toEqual({
    created: 2,
    updated: 0,
    removed: 3,
    living: 2,
  });
  expect(() => catalog.mutate({ create: 20_000_000 })).toThrow(CatchwordError);
});

it('the changing catalog chooses what changes by the seed', () => {
  const deltaAfter = (seed: number) => {
    const { catalog, list } = make({ items: 1000 });
    catalog.mutate({ update: 5, remove: 5, seed });
    return list(since(START)).indices;
  };
  expect(deltaAfter(3)).toEqual(deltaAfter(3));
  expect(deltaAfter(3)).not.toEqual(deltaAfter(4));
});

it('the changing catalog changes thousands at once', () => {
  const { catalog, list } = make({ items: 5000 });
  catalog.mutate({ remove: 1500 });
  expect(catalog.mutate({ update: 3000 })).toMatchObject({ updated: 3000, living: 3500 });
  const changed = list(since(START)).found;
  expect(changed.filter(({ version, withdrawn }) => version === 1 && !withdrawn)).toHaveLength(3000);
  expect(new Set(changed.map(({ index }) => index)).size).toBe(4500);
});

it('the changing catalog never sets the time of an update back', () => {
  const { catalog, time, list } = make({ items: 3 });
  time.now = START + 100;
  catalog.mutate({ create: 1 });
  time.now = START + 50;
  catalog.mutate({ create: 1 });
  expect(list(since(START + 100)).indices).toEqual([3, 4]);
});

it('the changing catalog agrees with a simple model after any changes, in every order', { tags: ['slow'] }, () => {
  const step = fc.record({
    passMs: fc.constantFrom(0, 1, 1000, 4 * DAY_MS),
    create: fc.nat(4),
    update: fc.nat(6),
    remove: fc.nat(4),
  });
  const orders = fc.constantFrom(...LIST_ORDERS);
  fc.assert(
    fc.property(fc.nat(2100), orders, fc.array(step, { maxLength: 12 }), (items, order, steps) => {
      const { catalog, time, list } = make({ items, order });
      const everything = since(Number.NEGATIVE_INFINITY);
      let model = Array.from({ length: items }, (_, index) => ({ index, version: 0, withdrawn: false, at: -1 }));
      for (const { passMs, ...mutation } of steps) {
        time.now += passMs;
        model = model.filter(({ withdrawn, at }) => !withdrawn || at + 10 * DAY_MS > time.now);
        const known = new Map(model.map((product) => [product.index, product]));
        catalog.mutate(mutation);
        // The model learns from the catalog's delta which products were chosen.
        const changed = list(everything)
          .found.filter(({ index, version, withdrawn }) => {
            const before = known.get(index);
            return before?.version !== version || before.withdrawn !== withdrawn;
          })
          .map((product) => ({ ...product, at: time.now }));
        expect(changed.filter(({ withdrawn }) => withdrawn).length).toBeLessThanOrEqual(mutation.remove);
        expect(changed.length).toBeLessThanOrEqual(mutation.create + mutation.update + mutation.remove);
        const indices = new Set(changed.map(({ index }) => index));
        model = [...model.filter(({ index }) => !indices.has(index)), ...changed];
      }

      const shown = model.map(({ index, version, withdrawn }) => ({ index, version, withdrawn }));
      expect(list(everything).found).toEqual(shown);
      const listed = shown.filter(({ withdrawn }) => !withdrawn);
      if (order === 'id') listed.sort((a, b) => a.index - b.index);
      if (order === 'updated-desc') listed.reverse();
      expect(list(null)).toMatchObject({ count: listed.length, found: listed });
      for (const offset of [1, 700, 1024, 2000]) {
        expect(list(null, offset, 300).found).toEqual(listed.slice(offset, offset + 300));
      }
      const recent = model.filter(({ at }) => at >= START + 1000);
      expect(list(since(START + 1000)).indices).toEqual(recent.map(({ index }) => index));
      for (const product of shown.slice(0, 50)) expect(catalog.find(product.index)).toMatchObject(product);
    }),
    { numRuns: 200 },
  );
});

it('the changing catalog churns at the requested pace', async () => {
  const { catalog, time } = make({ items: 1000 });
  const stop = new AbortController();
  const clock = {
    now: () => time.now,
    random: () => 0,
    sleep: async (ms: number) => {
      time.now += ms;
      if (time.now >= START + 10_000) stop.abort();
    },
  };
  await churn((mutation) => catalog.mutate(mutation), { perSecond: 30, seed: 1, clock, signal: stop.signal });
  const { count } = catalog.list(since(START), 0, 1000);
  expect(withdrawnIn(catalog)).toBeGreaterThan(50);
  expect(count).toBeGreaterThan(200);
  expect(count).toBeLessThanOrEqual(300);
});

it('the changing catalog continues to churn after a change that could not be journaled', async () => {
  const stop = new AbortController();
  let asked = 0;
  const mutate = () => {
    if (++asked === 3) stop.abort();
    throw new CatchwordError('CONFIG_INVALID', 'ENOSPC: no space left on device');
  };
  const time = { now: START };
  const sleep = async (ms: number) => {
    time.now += ms;
  };
  const clock = { now: () => time.now, random: () => 0, sleep };
  await churn(mutate, { perSecond: 10, seed: 1, clock, signal: stop.signal });
  expect(asked).toBe(3);
});
