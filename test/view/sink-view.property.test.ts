import { CatchwordError } from '@catchword/base/errors';
import { createLog } from '@catchword/base/log';
import { describe, expect, it } from 'vitest';
import { openHarness, SINK_NAME, until, type Version } from '../../src/contract/harness.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { legOf } from '../../src/store/rows/sink-legs.ts';
import type { SinkRow } from '../../src/store/rows/sink-rows.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { pruneLog } from '../../src/sync/prune-log.ts';
import { compileView, type View, viewText } from '../../src/view/view.ts';
import { memoryReceiver, QUICK, randomOf } from './memory-receiver.ts';

const VIEWS: readonly (View | null)[] = [
  null,
  ...(
    [
      ["body->>'shop' = 1", undefined],
      [undefined, 'title'],
      ["body->>'shop' = 1", 'title, price'],
      ["title <> 'a'", "json_object('t', title)"],
      // Fails for some products, which then count as not matching.
      ["json(CASE body->>'price' WHEN 2 THEN 'x' ELSE '1' END) = '1'", undefined],
      [undefined, "CASE body->>'other' WHEN 1 THEN title ELSE json_object('t', title) END"],
    ] as const
  ).map(([where, fields]) => compileView(viewText(where, fields), { where: 'WHERE', fields: 'FIELDS' })),
];

function product(random: (below: number) => number): Version {
  const vbid = `P${random(8)}`;
  if (random(6) === 0) return { vbid, body: null };
  const body = { vbid, shop: random(2), title: 'ab'[random(2)], price: random(3), other: random(3) };
  return { vbid, body: JSON.stringify(body) };
}

/** A mirror, a relay and a store with a view, and what happened to them. */
function openScene(seed: number, keepsMark: boolean) {
  const random = randomOf(seed);
  const mirror = openHarness();
  const { store } = mirror;
  const shop = memoryReceiver(keepsMark);
  const log: string[] = [];
  let view = VIEWS[random(VIEWS.length)] ?? null;

  const isWanted = ({ where, fields }: { where: string | null; fields: string | null }): boolean =>
    where === (view?.where ?? null) && fields === (view?.fields ?? null);

  function isSettled(): boolean {
    const row = store.sinks.get(SINK_NAME);
    if (row?.state !== 'running' || row.cursor !== store.changes.lastSeq() || !shop.isOpen()) return false;
    if (keepsMark && row.fillEnd === null) return false;
    return isWanted(legOf(row)) && store.sinks.parked(row.id, 'ready').length === 0;
  }

  const what = (): string => `seed ${seed}: ${log.join('; ')}`;
  const settled = (): Promise<void> => until(`the sink is settled (${what()})`, isSettled);

  /** Products of which the store lacks an event that it refused. */
  function refused(): Set<string> {
    const parked = store.sinks.parked(mirror.sink().id);
    const { newest } = shop.last();
    const lacks = parked.filter(({ state, vbid, seq }) =>
      state === 'skipped' ? (newest.get(vbid) ?? 0) <= seq : state !== 'delivered',
    );
    return new Set(lacks.map(({ vbid }) => vbid));
  }

  function check(): void {
    const ignored = refused();
    const wanted = new Map<string, string>();
    for (const { vbid, body } of store.products.all()) {
      const seen = view === null ? body : view.of(vbid, body);
      if (seen !== null) wanted.set(vbid, seen);
    }
    const parsed = (content: ReadonlyMap<string, string>): unknown =>
      Object.fromEntries(
        [...content].flatMap(([vbid, body]) => (ignored.has(vbid) ? [] : [[vbid, JSON.parse(body) as unknown]])),
      );
    const { products, deduplicated } = shop.last();
    expect(parsed(products), what()).toEqual(parsed(wanted));
    expect(parsed(deduplicated), `${what()} (deduplicated)`).toEqual(parsed(wanted));
    expect(shop.contradictions, what()).toEqual([]);
  }

  let removalLimit = Number.POSITIVE_INFINITY;

  return {
    ...mirror,
    random,
    shop,
    log,
    what,
    isSettled,
    isWanted,
    settled,
    refused,
    check,
    view: () => view,
    row: () => store.sinks.get(SINK_NAME),
    changes: (): void => mirror.change(Array.from({ length: 1 + random(6) }, () => product(random))),
    chooseView: (chosen = VIEWS[random(VIEWS.length)] ?? null): void => {
      view = chosen;
      log.push(`view ${VIEWS.indexOf(view)}`);
    },
    /** Starts a relay with the present view. */
    begin: (limit = Number.POSITIVE_INFINITY): void => {
      removalLimit = limit;
      mirror.start(shop.config(view), { clock: QUICK, removalLimit: () => removalLimit });
    },
    /** Lets a changed product leave again. */
    allowAll: (): void => {
      removalLimit = Number.POSITIVE_INFINITY;
      const { id, held } = store.sinks.get(SINK_NAME) ?? {};
      if (held?.why === 'run') store.request(({ sinks }) => sinks.approveRuns(id ?? 0));
      if (held?.why === 'fill') store.request(({ sinks }) => sinks.approveHeld(id ?? 0));
    },
  };
}

type Scene = ReturnType<typeof openScene>;

/** Ends the relay after a delivery or two. */
async function interrupt({ shop, isSettled, random, begin, stop }: Scene): Promise<void> {
  const before = shop.deliveries();
  const many = 1 + random(2);
  begin();
  await until('something is delivered', () => shop.deliveries() >= before + many || isSettled());
  await stop();
}

/** Changes the view where nothing may be removed: a sink that is held gets nothing, until somebody decides. */
async function hold(scene: Scene): Promise<void> {
  const { shop, store, random, row, view, log, what } = scene;
  await scene.settled();
  await scene.stop();
  const before = view();
  const deliveries = shop.deliveries();
  const ignored = scene.refused();
  const had = [...shop.last().products.keys()].filter((vbid) => !ignored.has(vbid));
  const isHeld = (): boolean => row()?.state === 'held';
  const isJudged = (): boolean =>
    (isHeld() && (heldHas(scene, row()) || row()?.held?.why !== 'view')) || scene.isSettled();
  scene.chooseView();
  scene.begin(0);
  await until(`the view is judged (${what()})`, isJudged);
  if (!isHeld()) {
    expect(
      had.filter((vbid) => !shop.last().products.has(vbid)),
      what(),
    ).toEqual([]);
    return;
  }
  scene.changes();
  if (random(2) === 0) {
    log.push('held');
    await scene.stop();
    scene.chooseView();
    scene.begin(0);
    await until(`the other view is judged (${what()})`, isJudged);
  }
  // A view that removes nothing is delivered, and the changes after it may be held.
  if (!isHeld() || row()?.held?.why !== 'view') return;
  expect(shop.deliveries(), what()).toBe(deliveries);
  const { id } = scene.sink();
  if (random(2) === 0) {
    log.push('approved');
    store.request(({ sinks }) => sinks.approveHeld(id));
    return;
  }
  log.push('put back');
  await scene.stop();
  scene.chooseView(before);
  scene.begin(0);
}

/** Whether it is the wanted view that is held. */
function heldHas({ isWanted }: Scene, row: SinkRow | undefined): boolean {
  const held = row === undefined ? null : row.held;
  return held?.why === 'view' && isWanted(held);
}

const ACTIONS: Readonly<Record<string, (scene: Scene) => void | Promise<void>>> = {
  change: ({ changes }) => changes(),
  'change twice': ({ changes }) => {
    changes();
    changes();
  },
  'another view': async ({ stop, chooseView, begin }) => {
    await stop();
    chooseView();
    begin();
  },
  'another view, interrupted': async (scene) => {
    await scene.stop();
    scene.chooseView();
    await interrupt(scene);
    scene.chooseView();
    scene.begin();
  },
  'a view that removes too much': hold,
  'set back': async ({ shop, stop, random, log, begin }) => {
    await stop();
    // A store without a position cannot tell that it was set back.
    if (shop.keepsMark) shop.setBack(1 + random(6));
    log.push(`to delivery ${shop.deliveries()}`);
    begin();
  },
  'change and replay': ({ changes, store, sink }) => {
    changes();
    store.request(({ sinks }) => sinks.replay(sink(), null));
  },
  'replay from a change': ({ store, sink, random, log }) => {
    const row = sink();
    const from = 1 + random(row.cursor + 1);
    log.push(`${from}`);
    try {
      store.request((writer) => changeSink(writer, 'replay', row.name, from, 0));
    } catch (error) {
      if (!(error instanceof CatchwordError)) throw error;
      log.push('not possible');
    }
  },
  prune: ({ store, row }) => {
    const upTo = Math.max(store.changes.prunedTo(), row()?.cursor ?? 0);
    writeUnder(store.keeperLease, Date.now(), (writer) => writer.changes.prune(upTo));
  },
  crash: async (scene) => {
    await scene.stop();
    scene.changes();
    await interrupt(scene);
    scene.begin();
  },
  'pause and resume': async ({ store, sink, changes, stop, chooseView, begin, random }) => {
    store.request(({ sinks }) => sinks.setState(sink().id, 'paused'));
    changes();
    if (random(2) === 0) {
      await stop();
      chooseView();
      begin();
    }
    store.request(({ sinks }) => sinks.setState(sink().id, 'running'));
  },
  'beyond the cap of the log': ({ store, sink, changes, log }) => {
    store.request(({ sinks }) => sinks.setState(sink().id, 'paused'));
    changes();
    changes();
    const leased = store.keeperLease.acquire(Date.now());
    const later = Date.now() + 1_000;
    pruneLog(store, leased, { logRetentionMs: 0, logCap: 0 }, Date.now(), createLog('silent'), later);
    leased.release();
    log.push(sink().state);
    store.request(({ sinks }) => sinks.setState(sink().id, 'running'));
  },
  'a product that is refused': ({ shop, random, changes }) => {
    shop.refused.add(`P${random(8)}`);
    changes();
  },
  'retry what was refused': ({ shop, store, sink }) => {
    shop.refused.clear();
    store.request(({ sinks }) => sinks.retry(sink().id));
  },
  'skip what was refused': ({ store, sink }) => {
    store.request(({ sinks }) => sinks.skipAll(sink().id, Date.now()));
  },
};

async function history(seed: number, steps: number, keepsMark: boolean): Promise<void> {
  const scene = openScene(seed, keepsMark);
  const { random, log, settled, check } = scene;
  const names = Object.keys(ACTIONS);
  try {
    // A sink with a view waits for the first product.
    while (scene.store.changes.lastSeq() === 0) scene.changes();
    scene.begin();
    await settled();
    for (let step = 0; step < steps; step++) {
      const name = names[random(names.length)] ?? '';
      log.push(name);
      await ACTIONS[name]?.(scene);
      scene.allowAll();
      if (random(3) === 0) continue;
      await settled();
      check();
    }
    await settled();
    check();
  } finally {
    await scene.close();
  }
}

/** The seeds of the quick run, and those of the slow one. */
const SEEDS = [
  { first: 1, last: 3, tags: [] },
  { first: 4, last: Number(process.env.SEEDS ?? 12), tags: ['slow'] },
];

for (const { first, last, tags } of SEEDS) {
  describe(`a store with a view, from seed ${first} on,`, { tags }, () => {
    it.each([true, false])(
      'has V of the mirror, after any history (keeps its position: %s)',
      { tags: ['slow'] },
      async (keepsMark) => {
        for (let seed = first; seed <= last; seed++) await history(seed, 25, keepsMark);
      },
    );
  });
}

it('a store that is emptied after a replay from a change gets its products again', async () => {
  // Its only change came before the end of its last fill.
  await history(535, 4, true);
});
