import { describe, expect, it } from 'vitest';
import { messageOf } from '../../src/base/errors.ts';
import { hastyClock, openHarness, SINK_NAME, until, type Version } from '../../src/relay/contract/harness.ts';
import type { Mark, SinkEvent } from '../../src/relay/sink.ts';
import type { SinkConfig } from '../../src/relay/sink-config.ts';
import { viewAt } from '../../src/relay/store-contents.ts';
import { compileView, type View, viewText } from '../../src/view/view.ts';

const VIEWS: readonly (View | null)[] = [
  null,
  ...(
    [
      ["body->>'shop' = 1", undefined],
      [undefined, 'title'],
      ["body->>'shop' = 1", 'title, price'],
      ["title <> 'a'", "json_object('t', title)"],
    ] as const
  ).map(([where, fields]) => compileView(viewText(where, fields), { where: 'WHERE', fields: 'FIELDS' })),
];

/** Waits a millisecond where the relay waits. */
const QUICK = { ...hastyClock, sleep: (ms: number, signal?: AbortSignal) => hastyClock.sleep(Math.min(ms, 1), signal) };

/** A seeded generator of numbers (mulberry32). */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

interface Content {
  readonly products: ReadonlyMap<string, string>;
  /** As a receiver has it that drops the events whose ids it knows. */
  readonly deduplicated: ReadonlyMap<string, string>;
  readonly known: ReadonlySet<string>;
  readonly mark: Mark | null;
}

function applied(content: ReadonlyMap<string, string>, events: readonly SinkEvent[]): Map<string, string> {
  const next = new Map(content);
  for (const { vbid, body } of events) {
    if (body === null) next.delete(vbid);
    else next.set(vbid, body);
  }
  return next;
}

/** A store that keeps what it had after each delivery, so that it can be set back, as from a backup. */
function receiver(keepsMark: boolean) {
  const texts = new Map<string, string>();
  const contradictions: string[] = [];
  const empty: Content = { products: new Map(), deduplicated: new Map(), known: new Set(), mark: null };
  let contents: Content[] = [empty];
  const last = (): Content => contents.at(-1) ?? empty;
  /** Whether a session that was opened since has delivered everything. */
  let hasEnded = false;
  return {
    last,
    contradictions,
    hasEnded: () => hasEnded,
    deliveries: () => contents.length - 1,
    setBack: (deliveries: number): void => {
      hasEnded = false;
      contents = contents.slice(0, Math.max(1, contents.length - deliveries));
    },
    config: (view: View | null): SinkConfig => ({
      name: SINK_NAME,
      kind: 'memory',
      address: 'memory',
      identity: 'memory',
      refused: 'park',
      view,
      errorText: messageOf,
      make: async () => ({
        batch: { events: 3, chars: 1_000_000 },
        open: async (mark) => (keepsMark ? (last().mark ?? { ...mark, cursor: 0, at: 0, late: 0 }) : null),
        deliver: async (events, mark) => {
          for (const { id, text } of events) {
            if ((texts.get(id) ?? text) !== text) contradictions.push(`${texts.get(id)} and ${text}`);
            texts.set(id, text);
          }
          const { products, deduplicated, known } = last();
          const fresh = events.filter(({ id }) => !known.has(id));
          contents.push({
            products: applied(products, events),
            deduplicated: applied(deduplicated, fresh),
            known: new Set([...known, ...fresh.map(({ id }) => id)]),
            mark,
          });
        },
        fillEnds: async () => {
          hasEnded = true;
        },
        close: async () => {},
        check: async () => 'exists',
      }),
    }),
  };
}

function product(random: (below: number) => number): Version {
  const vbid = `P${random(8)}`;
  if (random(6) === 0) return { vbid, body: null };
  const body = { vbid, shop: random(2), title: 'ab'[random(2)], price: random(3), other: random(3) };
  return { vbid, body: JSON.stringify(body) };
}

async function history(seed: number, steps: number, keepsMark: boolean): Promise<void> {
  const random = randomOf(seed);
  const mirror = openHarness();
  const { store } = mirror;
  const shop = receiver(keepsMark);
  let view = VIEWS[random(VIEWS.length)] ?? null;
  const log: string[] = [];

  function isSettled(): boolean {
    const row = store.sinks.get(SINK_NAME);
    if (row === undefined) return false;
    const current = viewAt(store.sinks.views(row.id), row.generation);
    const isWanted =
      (current?.where ?? null) === (view?.where ?? null) && (current?.fields ?? null) === (view?.fields ?? null);
    return isWanted && shop.hasEnded() && row.state === 'running' && row.cursor === store.changes.lastSeq();
  }

  function check(): void {
    const wanted = new Map<string, string>();
    for (const { vbid, body } of store.products.all()) {
      const seen = view === null ? body : view.of(vbid, body);
      if (seen !== null) wanted.set(vbid, seen);
    }
    const sorted = (content: ReadonlyMap<string, string>): unknown =>
      Object.fromEntries([...content].map(([vbid, body]) => [vbid, JSON.parse(body) as unknown]));
    const { products, deduplicated } = shop.last();
    const what = `seed ${seed}: ${log.join('; ')}`;
    expect(sorted(products), what).toEqual(sorted(wanted));
    expect(sorted(deduplicated), `${what} (deduplicated)`).toEqual(sorted(wanted));
    expect(shop.contradictions, what).toEqual([]);
  }

  const changes = (): void => mirror.change(Array.from({ length: 1 + random(6) }, () => product(random)));
  const actions: readonly (readonly [string, () => void | Promise<void>])[] = [
    ['change', changes],
    ['change twice', () => [changes(), changes()][0]],
    [
      'another view',
      async () => {
        await mirror.stop();
        view = VIEWS[random(VIEWS.length)] ?? null;
        log.push(`view ${VIEWS.indexOf(view)}`);
        mirror.start(shop.config(view), { clock: QUICK });
      },
    ],
    [
      'another view, interrupted',
      async () => {
        await mirror.stop();
        view = VIEWS[random(VIEWS.length)] ?? null;
        log.push(`view ${VIEWS.indexOf(view)} until`);
        const before = shop.deliveries();
        mirror.start(shop.config(view), { clock: QUICK });
        const many = 1 + random(2);
        await until('something is delivered', () => shop.deliveries() >= before + many || isSettled());
        await mirror.stop();
        view = VIEWS[random(VIEWS.length)] ?? null;
        log.push(`view ${VIEWS.indexOf(view)}`);
        mirror.start(shop.config(view), { clock: QUICK });
      },
    ],
    [
      'set back',
      async () => {
        if (!keepsMark) return;
        await mirror.stop();
        shop.setBack(1 + random(6));
        log.push(`to delivery ${shop.deliveries()}`);
        mirror.start(shop.config(view), { clock: QUICK });
      },
    ],
    [
      'change and replay',
      () => {
        changes();
        const row = store.sinks.get(SINK_NAME);
        if (row !== undefined) store.request(({ sinks }) => sinks.replay(row.id, 0, true));
      },
    ],
    [
      'prune',
      () => {
        const row = store.sinks.get(SINK_NAME);
        const upTo = Math.max(store.changes.prunedTo(), row?.cursor ?? 0);
        const leased = store.keeperLease.acquire(Date.now());
        leased.write((writer) => writer.changes.prune(upTo));
        leased.release();
      },
    ],
    [
      'crash',
      async () => {
        await mirror.stop();
        changes();
        const before = shop.deliveries();
        mirror.start(shop.config(view), { clock: QUICK });
        await until('something is delivered', () => shop.deliveries() > before || isSettled());
        await mirror.stop();
        mirror.start(shop.config(view), { clock: QUICK });
      },
    ],
  ];
  try {
    changes();
    mirror.start(shop.config(view), { clock: QUICK });
    for (let step = 0; step < steps; step++) {
      const [name, act] = actions[random(actions.length)] ?? actions[0] ?? ['', () => {}];
      log.push(name);
      await act();
      if (random(3) > 0) {
        await until(`the sink is settled (seed ${seed}: ${log.join('; ')})`, isSettled);
        check();
      }
    }
    await until(`the sink is settled (seed ${seed}: ${log.join('; ')})`, isSettled);
    check();
  } finally {
    await mirror.close();
  }
}

describe('a store with a view', () => {
  it.each([true, false])('has V of the mirror, after any history (keeps its position: %s)', async (keepsMark) => {
    for (let seed = 1; seed <= Number(process.env.SEEDS ?? 12); seed++) await history(seed, 25, keepsMark);
  });
});
