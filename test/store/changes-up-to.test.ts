import type { RecordedChange } from '@catchword/catalog/event';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { openHarness } from '../../src/contract/harness.ts';
import { changesUpTo } from '../../src/store/history/history.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { temporaryMirror } from '../relay/feeding.ts';

const RUNS = process.env.CI === undefined ? 15 : 60;
/** More than are read in one step. */
const PRODUCTS = 230;

type Harness = ReturnType<typeof openHarness>;
type Write = readonly [product: number, version: number | null];

const writes = fc.array(fc.tuple(fc.nat(PRODUCTS - 1), fc.option(fc.nat(3), { freq: 4 })), { maxLength: 40 });

function apply({ change }: Harness, made: readonly Write[]): void {
  const versions = made.map(([product, version]) => ({
    vbid: `P${product}`,
    body:
      version === null ? null : JSON.stringify({ vbid: `P${product}`, title: `version ${version}`, price: version }),
  }));
  change(versions);
}

/** The living products, as a reader of the current table has them. */
function living({ store }: Harness): Map<string, unknown> {
  return new Map([...store.products.all()].map(({ vbid, body }) => [vbid, JSON.parse(body)]));
}

function collect(steps: Iterable<readonly RecordedChange[]>, between: () => void = () => {}): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const changes of steps) {
    for (const { vbid, body } of changes) {
      expect(found.has(vbid)).toBe(false);
      if (body !== null) found.set(vbid, JSON.parse(body));
    }
    between();
  }
  return found;
}

it('changesUpTo gives the products as of a change while the mirror changes, and leads on to another', {
  tags: ['slow'],
}, () => {
  fc.assert(
    fc.property(writes, writes, fc.array(writes, { maxLength: 4 }), (before, after, meanwhile) => {
      const harness = openHarness();
      try {
        const { store } = harness;
        apply(
          harness,
          Array.from({ length: PRODUCTS }, (_, product): Write => [product, 0]),
        );
        apply(harness, before);
        const then = living(harness);
        const seq = store.changes.lastSeq();
        // The log before the position may be pruned.
        writeUnder(store.keeperLease, Date.now(), ({ changes }) => changes.prune(seq));
        apply(harness, after);
        const left = [...meanwhile];
        expect(collect(changesUpTo(store, seq), () => apply(harness, left.shift() ?? []))).toEqual(then);
        const now = store.changes.lastSeq();
        for (const changes of changesUpTo(store, now, seq)) {
          for (const { vbid, body } of changes) {
            if (body === null) then.delete(vbid);
            else then.set(vbid, JSON.parse(body));
          }
        }
        expect(then).toEqual(living(harness));
        expect(collect(changesUpTo(store, now))).toEqual(then);
        expect(collect(changesUpTo(store, 0)).size).toBe(0);
      } finally {
        void harness.close();
      }
    }),
    { numRuns: RUNS },
  );
});

it('changesUpTo refuses a position that was pruned, also while it is read', () => {
  const mirror = temporaryMirror();
  const { store } = mirror;
  apply(
    mirror,
    Array.from({ length: PRODUCTS }, (_, product): Write => [product, 0]),
  );
  const seq = store.changes.lastSeq();
  const steps = changesUpTo(store, seq);
  expect(steps.next().value).toHaveLength(100);
  apply(mirror, [[PRODUCTS - 1, 1]]);
  const prune = (): void => writeUnder(store.keeperLease, Date.now(), ({ changes }) => void changes.prune(seq + 1));
  prune();
  const error = expect.objectContaining({
    code: 'NOT_FOUND',
    hint: expect.stringContaining(`up to ${seq + 1} were pruned`),
  });
  expect(() => steps.next()).toThrow(error);
  expect(() => collect(changesUpTo(store, seq))).toThrow(error);
  expect(() => collect(changesUpTo(store, seq, 0))).toThrow(error);
  expect(collect(changesUpTo(store, seq + 1)).size).toBe(PRODUCTS);
});
