import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { eventText } from '../../src/catalog/event.ts';
import { openWorkbench, type Version } from '../../src/relay/contract/harness.ts';
import { createHistory } from '../../src/store/history.ts';
import { writeUnder } from '../../src/store/hold-lease.ts';
import { keepStatements } from '../../src/store/statements.ts';

const FIELDS = ['title', 'price', 'tags', 'a/b', '~', '__proto__'];

/** A product with some of the fields, nested and escaped ones among them; undefined removes it. */
const contents = fc.option(
  fc.dictionary(
    fc.constantFrom(...FIELDS),
    fc.oneof(fc.string(), fc.double({ noNaN: true }), fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 })),
  ),
  { freq: 4 },
);

const histories = fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), contents), { minLength: 1, maxLength: 60 });

/** Applies a history, and keeps by itself what every product was after each change. */
function live(versions: readonly (readonly [number, Record<string, unknown> | null])[]) {
  const bench = openWorkbench();
  const states: Map<string, unknown>[] = [new Map()];
  for (const [number, content] of versions) {
    const vbid = `P${number}`;
    const body = content === null ? null : JSON.stringify({ vbid, ...content });
    const before = bench.store.changes.lastSeq();
    const known = states.at(-1)?.get(vbid);
    if (body !== null && JSON.stringify(known) === body) continue;
    bench.change([{ vbid, body } satisfies Version]);
    if (bench.store.changes.lastSeq() === before) continue;
    const next = new Map(states.at(-1));
    if (body === null) next.delete(vbid);
    else next.set(vbid, JSON.parse(body));
    states.push(next);
  }
  return { bench, states };
}

it('shows for every change what the product was then, in events and in SQL, however often it changed since', async () => {
  await fc.assert(
    fc.asyncProperty(histories, fc.integer({ min: 1, max: 7 }), async (versions, limit) => {
      const { bench, states } = live(versions);
      try {
        const history = createHistory(bench.store);
        const sqlite = new Database(bench.store.path, { readonly: true });
        const rows = keepStatements(sqlite).prepare('SELECT before, changed FROM change_log ORDER BY seq').all();
        sqlite.close();
        let seq = 0;
        for (;;) {
          const changes = history.after(seq, limit);
          if (changes.length === 0) break;
          for (const change of changes) {
            expect(change.seq).toBe(++seq);
            const body = states[seq]?.get(change.vbid);
            expect(change.body === null ? undefined : JSON.parse(change.body)).toEqual(body);
            const at = history.asOf(change.vbid, seq);
            expect(at?.change).toMatchObject({ seq, op: change.op });
            if (change.op !== 'removed') expect(JSON.parse(at?.body ?? 'null')).toEqual(body);
            if (change.op === 'removed') {
              expect(JSON.parse(change.before ?? '')).toEqual(states[seq - 1]?.get(change.vbid));
            }
            const { data } = JSON.parse(eventText(change, 'i', 's')) as { data: Record<string, unknown> };
            const row = rows[seq - 1] as { before: string | null; changed: string };
            expect(JSON.parse(row.before ?? 'null')).toEqual(data.before);
            expect(JSON.parse(row.changed)).toEqual(data.changed);
          }
        }
        expect(seq).toBe(states.length - 1);
      } finally {
        await bench.close();
      }
    }),
    { numRuns: 60 },
  );
});

it('tells the products as of a change, also after the log was pruned', async () => {
  await fc.assert(
    fc.asyncProperty(histories, fc.nat(), fc.nat(), fc.integer({ min: 1, max: 7 }), async (versions, a, b, limit) => {
      const { bench, states } = live(versions);
      try {
        const last = states.length - 1;
        const asOf = a % (last + 1);
        const pruned = b % (asOf + 1);
        writeUnder(bench.store.keeperLease, Date.now(), ({ changes }) => changes.prune(pruned));
        const history = createHistory(bench.store);
        const found = new Map<string, unknown>();
        for (let seq = 0; seq < asOf; ) {
          const { changes, to } = history.newest(seq, asOf, asOf, limit);
          for (const { vbid, body } of changes) {
            expect(found.has(vbid)).toBe(false);
            found.set(vbid, body === null ? null : JSON.parse(body));
          }
          expect(to).toBeGreaterThan(seq);
          seq = to;
        }
        const living = [...found].filter(([, body]) => body !== null);
        expect(new Map(living)).toEqual(states[asOf]);
        // From there on every change is there, and exact.
        for (const { seq, vbid, body } of history.after(asOf, 1000)) {
          expect(body === null ? undefined : JSON.parse(body)).toEqual(states[seq]?.get(vbid));
        }
        expect(history.after(asOf, 1000)).toHaveLength(last - asOf);
      } finally {
        await bench.close();
      }
    }),
    { numRuns: 60 },
  );
});

it('reads a product that changed a thousand times without going back a thousand times for each', async () => {
  const bench = openWorkbench();
  try {
    const history = createHistory(bench.store);
    for (let version = 0; version < 1_000; version++)
      bench.change([{ vbid: 'P', body: `{"vbid":"P","v":${version}}` }]);
    const bodies: (string | null)[] = [];
    for (let seq = 0; seq < 1_000; seq += 100) bodies.push(...history.after(seq, 100).map(({ body }) => body));
    expect(bodies).toEqual(Array.from({ length: 1_000 }, (_, version) => `{"vbid":"P","v":${version}}`));
  } finally {
    await bench.close();
  }
});
