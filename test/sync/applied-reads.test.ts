import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Reader } from '../../src/store/schema/reader.ts';
import { createAppliedReads } from '../../src/sync/applied-reads.ts';

interface Read {
  readonly page: number;
  readonly moment: number;
  readonly ids: readonly number[];
}

/** The checkpoints of one pass; each is added as a run adds it. */
function checkpointsOf(reads: readonly Read[]) {
  const written: Read[] = [];
  const runs = {
    checkpoints: (_run: number, pass: number) =>
      pass === 0 ? written.map(({ page, moment }) => ({ page, perPage: 10, requestedAt: moment })) : [],
    idsOf: (_run: number, _pass: number, { page }: { page: number }) => reads[page]?.ids ?? [],
  };
  return { written, store: { runs } as unknown as Reader };
}

const read = fc.record({ moment: fc.nat(20), ids: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 5 }) });

it('applied reads show the products of later windows, in whatever order they were read, after a restart too', () => {
  fc.assert(
    fc.property(fc.array(read, { maxLength: 30 }), fc.nat(30), fc.nat(21), (made, restart, moment) => {
      const reads = made.map((one, page) => ({ ...one, page }));
      const { written, store } = checkpointsOf(reads);
      let applied = createAppliedReads(store, 1);
      for (const one of reads) {
        if (one.page === restart) applied = createAppliedReads(store, 1);
        applied.add({ pass: 0, window: { page: one.page, perPage: 10 }, from: null }, one.moment, one.ids);
        written.push(one);
      }
      const found = applied.productsAfter(0, moment);
      const later = new Set(reads.flatMap((one) => (one.moment > moment ? one.ids : [])));
      for (let id = 1; id <= 30; id++) expect(found.has(id)).toBe(later.has(id));
      expect(applied.productsAfter(1, 0).has(1)).toBe(false);
    }),
  );
});
