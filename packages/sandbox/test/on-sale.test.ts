// @module-tag service

import { createCatalog } from '@catchword/sandbox/catalog/changing-catalog';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { createTimeline } from '@catchword/sandbox/journal/journal';
import { withdrawnIn } from '@catchword/testing/sandbox-for';
import { expect, it } from 'vitest';

it('the timeline stands still until it runs and during a change, and never goes back', () => {
  const clock = { now: () => 100 };
  const timeline = createTimeline(clock, 10);
  expect(timeline.now()).toBe(10);
  expect(timeline.during(20, () => timeline.now())).toBe(20);
  expect(timeline.now()).toBe(20);
  timeline.run();
  expect(timeline.now()).toBe(100);
  clock.now = () => 90;
  expect(timeline.during(timeline.now(), () => timeline.now())).toBe(100);
});

it.each(['id', 'updated-asc', 'updated-desc'] as const)(
  'the catalog lists the products on sale, in order %s',
  { tags: ['slow'] },
  (order) => {
    {
      const time = { now: 1_000_000 };
      const options = { items: 40, seed: 1, order, withdrawnForMs: 50 };
      const catalog = createCatalog(options, { now: () => time.now });
      const random = createRandom(order.length);
      const claimed: number[] = [];
      for (let step = 0; step < 400; step++) {
        time.now += Math.floor(random() * 12);
        if (random() < 0.2) claimed.push(catalog.claim());
        const any = claimed[Math.floor(random() * claimed.length)] ?? 0;
        const index = random() < 0.5 ? any : Math.floor(random() * 40);
        const from = time.now + Math.floor(random() * 60) - 30;
        catalog.offer(index, { from, until: random() < 0.3 ? Number.POSITIVE_INFINITY : from + random() * 80 });
        if (random() < 0.1) catalog.mutate({ remove: 1, update: 1, create: 1 });

        const states = Array.from({ length: catalog.next() }, (_, at) => catalog.find(at)).filter(
          (one) => one !== null,
        );
        const listed = states.filter(({ withdrawn }) => !withdrawn);
        const { count, products } = catalog.list(null, 0, 10_000);
        const seen = products.map((product) => product.index);
        expect(seen.length).toBe(count);
        expect([...seen].sort((a, b) => a - b)).toEqual(listed.map((state) => state.index));
        if (order === 'id') expect(seen).toEqual(listed.map((state) => state.index));
        const updates = seen.map((at) => catalog.find(at)?.updatedAt ?? 0);
        if (order === 'updated-asc') expect(updates).toEqual([...updates].sort((a, b) => a - b));
        if (order === 'updated-desc') expect(updates).toEqual([...updates].sort((a, b) => b - a));
        const since = catalog.list({ from: time.now - 20, until: Number.POSITIVE_INFINITY }, 0, 0);
        expect(since.count).toBe(states.filter(({ updatedAt }) => updatedAt >= time.now - 20).length);
        expect(withdrawnIn(catalog)).toBe(states.filter(({ withdrawn }) => withdrawn).length);
      }
    }
  },
);

it('the catalog skips a number that is taken, once', () => {
  const catalog = createCatalog({ items: 3, seed: 1, order: 'id', withdrawnForMs: 50 }, { now: () => 5 });
  catalog.skip(4);
  catalog.mutate({ create: 3 });
  const seen = catalog.list(null, 0, 10).products.map(({ index }) => index);
  expect([seen, catalog.next()]).toEqual([[0, 1, 2, 3, 5, 6], 7]);
  expect(catalog.find(4)).toBeNull();
});
