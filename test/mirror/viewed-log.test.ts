import { systemClock } from '@catchword/base/clock';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { openHarness } from '../../src/contract/harness.ts';
import { parseEvent } from '../../src/events/events.ts';
import { createChangeFeed } from '../../src/http/change-feed.ts';
import { createReadSteps, inThisThread } from '../../src/http/read-steps.ts';
import { openMirror } from '../../src/mirror/mirror.ts';
import { findPosition } from '../../src/store/history/log-position.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { Store } from '../../src/store/store.ts';
import { compileView, viewText } from '../../src/view/view.ts';
import '../support/property-seed.ts';

const VIEWS = [
  { where: "body->>'shop' = 1", fields: 'title' },
  { where: "body->>'price' > 1 OR title IS NULL" },
  { fields: "json_object('t', title, 'cheap', body->>'price' < 2)" },
  { where: "abs(CASE title WHEN 'b' THEN -9223372036854775808 ELSE 1 END) = 1", fields: 'shop, price' },
];

interface Step {
  readonly kind: 'change' | 'remove' | 'prune' | 'page' | 'stream' | 'node';
  readonly nth: number;
  readonly members: Readonly<Record<string, unknown>>;
}

const STEP: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('change', 'change', 'change', 'change', 'remove', 'prune', 'page', 'stream', 'node'),
  nth: fc.nat(2),
  members: fc.record(
    { shop: fc.constantFrom(0, 1), title: fc.constantFrom('a', 'b'), price: fc.constantFrom(1, 2) },
    { requiredKeys: [] },
  ),
});

/** A reader that keeps what its events say, and the position that it was given last. */
function createReader() {
  const products = new Map<string, string>();
  const ids = new Map<string, string>();
  return {
    products,
    position: '0',
    take(text: string): void {
      const { id, data } = parseEvent(text);
      // No id names two contents.
      expect(ids.get(id) ?? text).toBe(text);
      ids.set(id, text);
      if (data.op === 'removed') products.delete(data.vbid);
      else products.set(data.vbid, JSON.stringify(data.product));
    },
  };
}

type Reader = ReturnType<typeof createReader>;

/** One reading of each kind: at most about so many events, from the reader's position. @returns whether it has all */
function readingOf(store: Store, options: (typeof VIEWS)[number]) {
  const view = compileView(viewText(options.where, options.fields), { where: 'w', fields: 'f' });
  const here = createReadSteps(store, 'https://catalog.example', systemClock);
  const feed = createChangeFeed(store, here, inThisThread(here), systemClock, 1);
  const viewed = { given: options, digest: view.digest, streams: 0 };
  const mirror = openMirror(store.path);
  const seqOf = (position: string): number => {
    const found = findPosition(store, position, view.digest);
    if ('code' in found) throw new Error(`${position}: ${found.code}`);
    return found.seq;
  };
  return {
    view,
    close: () => mirror.close(),
    page: async (reader: Reader, most: number): Promise<boolean> => {
      const pieces = feed.page(seqOf(reader.position), most, {}, viewed);
      let text = '';
      for await (const piece of pieces) text += piece;
      const page = JSON.parse(text) as { events: unknown[]; next: number; last: number; next_id: string };
      for (const event of page.events) reader.take(JSON.stringify(event));
      reader.position = page.next_id;
      return page.next === page.last;
    },
    stream: async (reader: Reader): Promise<boolean> => {
      const batch = await feed.batch(seqOf(reader.position), viewed);
      for (const [, id = '', , data] of batch?.bytes.toString().matchAll(/id: (.*)\n(data: (.*)\n)?\n/g) ?? []) {
        if (data !== undefined) reader.take(data);
        reader.position = id;
      }
      return batch === null;
    },
    node: async (reader: Reader, most: number): Promise<boolean> => {
      let left = most;
      for await (const text of mirror.changeTexts({ ...options, after: reader.position })) {
        reader.take(text);
        reader.position = parseEvent(text).id;
        if (--left === 0) return false;
      }
      return true;
    },
  };
}

it('a reader with a view that folds its events has what the view yields, over pruned logs and resumptions', {
  tags: ['slow'],
}, async () => {
  const history = async (view: (typeof VIEWS)[number], steps: readonly Step[]): Promise<void> => {
    const { store, change, close } = openHarness();
    onTestFinished(close);
    const reading = readingOf(store, view);
    const readers = { page: createReader(), stream: createReader(), node: createReader() };
    try {
      for (const { kind, nth, members } of steps) {
        const vbid = `P${nth}`;
        if (kind === 'change') change([{ vbid, body: JSON.stringify({ vbid, ...members }) }]);
        else if (kind === 'remove') change([{ vbid, body: null }]);
        else if (kind === 'prune') {
          const to = Math.max(store.changes.prunedTo(), store.changes.lastSeq() - nth);
          writeUnder(store.keeperLease, Date.now(), ({ changes }) => changes.prune(to));
        } else await reading[kind](readers[kind], 1 + nth);
      }
      const wanted = [...store.products.all()].flatMap(({ vbid, body }) => {
        const seen = reading.view.of(vbid, body);
        return seen === null ? [] : [[vbid, JSON.stringify(JSON.parse(seen))] as const];
      });
      for (const kind of ['page', 'stream', 'node'] as const) {
        while (!(await reading[kind](readers[kind], 2)));
        expect({ kind, products: readers[kind].products }).toEqual({ kind, products: new Map(wanted) });
      }
    } finally {
      reading.close();
      await close();
    }
  };
  const steps = fc.array(STEP, { minLength: 5, maxLength: 40, size: 'max' });
  await fc.assert(fc.asyncProperty(fc.constantFrom(...VIEWS), steps, history), {
    numRuns: Number(process.env.CATCHWORD_TEST_RUNS ?? 60),
  });
});
