import { beforeAll, describe, expect, it } from 'vitest';
import { openHarness } from '../../src/contract/harness.ts';
import { createHistory, productAsOf, productChanges } from '../../src/store/history/history.ts';
import type { ProductRow } from '../../src/store/rows/product-rows.ts';
import type { Reader } from '../../src/store/schema/reader.ts';

const CHANGES = 20_000;
/** As often as each record may be read: once as itself, and once for each level of the walks back. */
const READS = 4;

/** Counts the records of the log that a reader returns. */
function counted(store: Reader): { store: Reader; rows: () => number } {
  let rows = 0;
  const { changes } = store;
  function count<T>(found: T[]): T[] {
    rows += found.length;
    return found;
  }
  const reader: Reader = {
    ...store,
    changes: {
      ...changes,
      after: (...given) => count(changes.after(...given)),
      newest: (...given) => count(changes.newest(...given)),
      ofProduct: (...given) => count(changes.ofProduct(...given)),
    },
  };
  return { store: reader, rows: () => rows };
}

const bodyOf = (version: number): string => JSON.stringify({ vbid: 'P', version, title: `Book ${version % 7}` });

describe(`${CHANGES} changes of one product`, () => {
  let harness: ReturnType<typeof openHarness>;

  beforeAll(() => {
    harness = openHarness();
    harness.change(Array.from({ length: CHANGES }, (_, version) => ({ vbid: 'P', body: bodyOf(version) })));
    return () => harness.close();
  });

  const row = (): ProductRow => harness.store.products.get('P') as ProductRow;

  it.each([1, 97, 250])(
    'a product with a long history is read from the log, %d changes at a time, with a cost linear in its changes',
    (limit) => {
      const { store, rows } = counted(harness.store);
      const history = createHistory(store);
      const wrong: number[] = [];
      for (let seq = 0; seq < CHANGES; ) {
        for (const change of history.after(seq, limit)) {
          if (change.body !== bodyOf(seq)) wrong.push(change.seq);
          seq = change.seq;
        }
      }
      expect(wrong).toEqual([]);
      expect(rows()).toBeLessThan(READS * CHANGES);
    },
  );

  it('a product with a long history fills a sink as of each of its changes with a cost of one record', () => {
    const { store, rows } = counted(harness.store);
    const history = createHistory(store);
    // Changed again after the fill began: the log has all its changes.
    const asOf = CHANGES - 1;
    expect(history.newest(0, asOf, asOf, 250)).toEqual({
      changes: [expect.objectContaining({ seq: asOf, body: bodyOf(asOf - 1) })],
      to: asOf,
    });
    expect(rows()).toBeLessThan(3);
  });

  it('a product with a long history is read by readers at different places, at the same cost each', () => {
    const { store, rows } = counted(harness.store);
    const history = createHistory(store);
    for (let seq = 0; seq < CHANGES / 2; seq += 50) {
      for (const from of [seq, seq + CHANGES / 2]) {
        expect(history.after(from, 50).at(-1)?.body).toBe(bodyOf(from + 49));
      }
    }
    expect(rows()).toBeLessThan(2 * READS * CHANGES);
  });

  it('a product with a long history has a history that reads each change once', () => {
    const { store, rows } = counted(harness.store);
    const changes = createHistory(store).of('P');
    expect(changes.map(({ body }) => body)).toEqual(
      Array.from({ length: CHANGES }, (_, index) => bodyOf(CHANGES - 1 - index)),
    );
    expect(rows()).toBe(CHANGES);
  });

  it('a product with a long history has pages of its history, and former states, that read each later change once', () => {
    const { store, rows } = counted(harness.store);
    const { changes, hasOlder } = productChanges(store, row(), 101, 50);
    expect(changes.map(({ seq }) => seq)).toEqual(Array.from({ length: 50 }, (_, index) => 100 - index));
    expect(hasOlder).toBe(true);
    expect(rows()).toBeLessThan(CHANGES + 64);
    expect(productAsOf(store, row(), 5).body).toBe(bodyOf(4));
    expect(rows()).toBeLessThan(2 * (CHANGES + 64));
  });
});
