import { eventId, eventText } from '@catchword/catalog/event';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { openHarness, type Version } from '../../src/contract/harness.ts';
import { createHistory, productAsOf } from '../../src/store/history/history.ts';
import type { ProductRow } from '../../src/store/rows/product-rows.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { temporaryMirror } from './feeding.ts';

const RUNS = process.env.CI === undefined ? 20 : 60;
const FIELDS = ['title', 'price', 'tags', 'a/b', '~', '__proto__'];

/** A product with some of the fields; null removes it. */
const contents = fc.option(
  fc.dictionary(
    fc.constantFrom(...FIELDS),
    fc.oneof(fc.string(), fc.double({ noNaN: true }), fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 })),
  ),
  { freq: 4 },
);

const histories = fc.array(fc.tuple(fc.integer({ min: 0, max: 4 }), contents), { minLength: 1, maxLength: 60 });

/** Applies a history, and returns every product as it was after each change. */
function live(versions: readonly (readonly [number, Record<string, unknown> | null])[]) {
  const harness = openHarness();
  const states: Map<string, unknown>[] = [new Map()];
  for (const [number, content] of versions) {
    const vbid = `P${number}`;
    const body = content === null ? null : JSON.stringify({ vbid, ...content });
    const before = harness.store.changes.lastSeq();
    const known = states.at(-1)?.get(vbid);
    if (body !== null && JSON.stringify(known) === body) continue;
    harness.change([{ vbid, body } satisfies Version]);
    if (harness.store.changes.lastSeq() === before) continue;
    const next = new Map(states.at(-1));
    if (body === null) next.delete(vbid);
    else next.set(vbid, JSON.parse(body));
    states.push(next);
  }
  return { harness, states };
}

it('shows the product of every change as it was then, in events and in SQL', { tags: ['slow'] }, async () => {
  await fc.assert(
    fc.asyncProperty(histories, fc.integer({ min: 1, max: 7 }), async (versions, limit) => {
      const { harness, states } = live(versions);
      try {
        const history = createHistory(harness.store);
        const sqlite = new Database(harness.store.path, { readonly: true });
        const rows = sqlite.prepare('SELECT before, changed FROM change_log ORDER BY seq').all();
        sqlite.close();
        let seq = 0;
        for (;;) {
          const changes = history.after(seq, limit);
          if (changes.length === 0) break;
          for (const change of changes) {
            expect(change.seq).toBe(++seq);
            const body = states[seq]?.get(change.vbid);
            expect(change.body === null ? undefined : JSON.parse(change.body)).toEqual(body);
            const row = harness.store.products.get(change.vbid) as ProductRow;
            const at = productAsOf(harness.store, row, seq);
            expect([at.changedSeq, at.removedAt !== null]).toEqual([seq, change.op === 'removed']);
            if (change.op !== 'removed') expect(JSON.parse(at.body)).toEqual(body);
            if (change.op === 'removed') {
              expect(JSON.parse(change.before ?? '')).toEqual(states[seq - 1]?.get(change.vbid));
            }
            const { data } = JSON.parse(eventText(change, 'i', 's')) as { data: Record<string, unknown> };
            const logged = rows[seq - 1] as { before: string | null; changed: string };
            expect(JSON.parse(logged.before ?? 'null')).toEqual(data.before);
            expect(JSON.parse(logged.changed)).toEqual(data.changed);
          }
        }
        expect(seq).toBe(states.length - 1);
      } finally {
        await harness.close();
      }
    }),
    { numRuns: RUNS },
  );
});

it('returns the products as of a change, also after the log was pruned', { tags: ['slow'] }, async () => {
  await fc.assert(
    fc.asyncProperty(histories, fc.nat(), fc.nat(), fc.integer({ min: 1, max: 7 }), async (versions, a, b, limit) => {
      const { harness, states } = live(versions);
      try {
        const last = states.length - 1;
        const asOf = a % (last + 1);
        const pruned = b % (asOf + 1);
        writeUnder(harness.store.keeperLease, Date.now(), ({ changes }) => changes.prune(pruned));
        const history = createHistory(harness.store);
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
        // Every later change is still exact.
        for (const { seq, vbid, body } of history.after(asOf, 1000)) {
          expect(body === null ? undefined : JSON.parse(body)).toEqual(states[seq]?.get(vbid));
        }
        expect(history.after(asOf, 1000)).toHaveLength(last - asOf);
      } finally {
        await harness.close();
      }
    }),
    { numRuns: RUNS },
  );
});

/** Bodies as sources write them, with spaces, line breaks, and characters of all kinds. */
const bodies = fc.tuple(
  fc.dictionary(fc.string({ unit: 'binary' }), fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue({ maxDepth: 1 }))),
  fc.constantFrom('', '', '', ' ', '\n', '\r', '\r\n\t'),
);
const keys = fc.oneof(
  fc.constantFrom('1', '978-3'),
  fc.string({ unit: 'binary', minLength: 1 }).filter((key) => key.isWellFormed()),
);

/** Gives changes other times, runs and eras than a harness does. */
function scatter(path: string, seeds: readonly number[]): void {
  const sqlite = new Database(path);
  const last = seeds.length;
  const insertRun = `INSERT INTO runs (kind, state, started_at, selection) VALUES (?, 'complete', 0, '{}')`;
  for (const kind of ['full', 'delta', 'delta']) sqlite.prepare(insertRun).run(kind);
  for (const [index, seed] of seeds.entries()) {
    const at = [0, 1, 951_782_399_999, 1_709_164_800_000, 253_402_300_799_999, 253_402_300_800_000, seed * 997][
      seed % 7
    ];
    sqlite.prepare('UPDATE changes SET at = ?, run_id = ? WHERE seq = ?').run(at, seed % 5, index + 1);
    if (seed % 11 === 0) sqlite.prepare('INSERT OR IGNORE INTO eras VALUES (?, ?)').run(index + 1, `era${seed % last}`);
  }
  sqlite.close();
}

it('makes the same texts of events in one piece as one by one', { tags: ['slow'] }, async () => {
  const versions = fc.array(fc.tuple(keys, fc.option(bodies, { freq: 5 })), { minLength: 1, maxLength: 40 });
  const seeds = fc.infiniteStream(fc.nat());
  await fc.assert(
    fc.asyncProperty(
      versions,
      seeds,
      fc.integer({ min: 1, max: 9 }),
      fc.constantFrom(1, 700, 1_500, 1_000_000),
      fc.boolean(),
      async (all, random, limit, most, isFill) => {
        const harness = openHarness();
        try {
          for (const [vbid, content] of all) {
            const space = content?.[1] ?? '';
            const body = content && JSON.stringify({ vbid, ...content[0] }).replace('{', `{${space}`);
            harness.change([{ vbid, body }]);
          }
          const last = harness.store.changes.lastSeq();
          scatter(harness.store.path, [...random.take(last)]);
          const history = createHistory(harness.store);
          const asOf = isFill ? Math.ceil(last * 0.7) : null;
          const upTo = asOf ?? Number.MAX_SAFE_INTEGER;
          const changes = asOf === null ? history.after(0, last) : history.newest(0, asOf, asOf, last).changes;
          for (const withRemoved of asOf === null ? [true] : [true, false]) {
            let text = '';
            for (let after = 0; ; ) {
              const found = history.lines({ after, upTo, asOf, withRemoved, limit }, most, 'i', '"s"');
              const { lines } = found;
              const piece = lines?.bytes.toString() ?? '';
              text += piece;
              if (lines !== null) {
                const first = changes.find(({ seq }) => seq === lines.first);
                expect(JSON.parse(piece.slice(0, piece.indexOf('\n')))).toMatchObject({ id: lines.firstId });
                expect(lines.firstId).toBe(first && eventId('i', first));
                expect(piece.split('\n')).toHaveLength(lines.events + 1);
                expect(lines.events === 1 || lines.bytes.length <= most).toBe(true);
                const within = history.within({ after, upTo: found.to, asOf, withRemoved });
                expect(within.map((change) => `${eventText(change, 'i', '"s"')}\n`).join('')).toBe(piece);
              }
              if (found.to === after || found.to >= upTo) break;
              after = found.to;
            }
            const wanted = changes.filter(({ op }) => withRemoved || op !== 'removed');
            expect(text).toBe(wanted.map((change) => `${eventText(change, 'i', '"s"')}\n`).join(''));
          }
        } finally {
          await harness.close();
        }
      },
    ),
    { numRuns: 5 * RUNS },
  );
});

it('bounds the texts that it makes of long products', { tags: ['slow'] }, async () => {
  const harness = temporaryMirror();
  const history = createHistory(harness.store);
  const body = (vbid: string, chars: number): string => JSON.stringify({ vbid, text: 'x'.repeat(chars) });
  for (let number = 0; number < 40; number++) {
    const vbid = `P${number}`;
    harness.change([{ vbid, body: body(vbid, number === 7 ? 3_000_000 : 300_000) }]);
    // Changed products, whose texts SQLite does not make.
    if (number % 2 === 0) harness.change([{ vbid, body: body(vbid, 300_001) }]);
  }
  const read: number[] = [];
  const range = { upTo: Number.MAX_SAFE_INTEGER, asOf: null, withRemoved: true, limit: 250 };
  for (let after = 0; ; ) {
    const { lines, to } = history.lines({ ...range, after }, 2_000_000, 'i', '"s"');
    if (lines === null) break;
    if (lines.events > 1) expect(lines.bytes.length).toBeLessThanOrEqual(2_000_000);
    for (const line of lines.bytes.toString().trimEnd().split('\n')) read.push(Number(JSON.parse(line).sequence));
    after = to;
  }
  expect(read).toEqual(harness.events().map(({ seq }) => seq));
});

it('reads a product that changed a thousand times', async () => {
  const harness = temporaryMirror();
  const history = createHistory(harness.store);
  for (let version = 0; version < 1_000; version++)
    harness.change([{ vbid: 'P', body: `{"vbid":"P","v":${version}}` }]);
  const bodies: (string | null)[] = [];
  for (let seq = 0; seq < 1_000; seq += 100) bodies.push(...history.after(seq, 100).map(({ body }) => body));
  expect(bodies).toEqual(Array.from({ length: 1_000 }, (_, version) => `{"vbid":"P","v":${version}}`));
});
