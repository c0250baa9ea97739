// @module-tag stores
// @module-tag slow
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Received, SinkTarget } from '../../src/contract/checks.ts';
import { until, wrapSink } from '../../src/contract/harness.ts';
import { type SinkConfig, sinkConfig } from '../../src/relay/sink-config.ts';
import { backUp } from '../../src/store/file/back-up.ts';
import { copyHere } from '../../src/store/file/copy-subprocess.ts';
import { restore as restoreBackup } from '../../src/store/file/restore-backup.ts';
import { needsFullRun } from '../../src/store/rows/source-state.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { load } from '../support/load.ts';
import { catalogOf } from '../support/mirror.ts';
import { filled, type Place } from '../support/place.ts';
import { NEVER, relayOf } from './feeding.ts';
import { KINDS, type TargetKind } from './target-kinds.ts';
import type { Event } from './targets.ts';

/*
 * A mirror that an operator restores from a backup: catchword is stopped, the file is put back, and catchword starts
 * again. Nothing tells it. What it records from then on has the numbers of changes that its stores already have.
 */

const NAME = 'restored';

/** How a backup of a closed mirror is made, and put back over it. */
interface Way {
  readonly backUp: (db: string, copy: string) => void;
  readonly putBack: (copy: string, db: string) => void;
  /** How many products are created, and how many updated, after that. */
  readonly others: number;
}

const WAYS: Record<string, Way> = {
  'cp, under the same inode': {
    backUp: copyFileSync,
    putBack: (copy, db) => writeFileSync(db, readFileSync(copy)),
    others: 1,
  },
  'VACUUM INTO, as a new file': {
    backUp: (db, copy) => {
      const sqlite = new Database(db);
      sqlite.exec(`VACUUM INTO '${copy}'`);
      sqlite.close();
    },
    putBack: (copy, db) => {
      rmSync(db);
      copyFileSync(copy, db);
    },
    others: 30,
  },
};

function onStore<T>(db: string, work: (store: Store) => T): T {
  const store = openStore(db, { mustExist: true });
  try {
    store.walCheckpoint();
    return work(store);
  } finally {
    store.close();
  }
}

/** Runs a relay until the sink has confirmed everything, or has stopped. */
async function deliver(db: string, config: SinkConfig): Promise<string> {
  const store = openStore(db, { mustExist: true });
  const reached = { isOpen: false, ends: false };
  const noted = wrapSink(config, (sink) => ({
    open: async (...given) => {
      const opened = await sink.open(...given);
      Object.assign(reached, { isOpen: true, ends: sink.apply !== undefined });
      return opened;
    },
  }));
  const relay = relayOf(store, [noted]);
  const row = () => store.sinks.get(NAME);
  try {
    await until('the sink has everything or stops', () => {
      const { cursor, state, generation = 0, error, fillEnd } = row() ?? {};
      const hasAll = generation > 0 && error === null && cursor === store.changes.lastSeq();
      // Before the mirror is complete, no fill ends.
      const isOver = reached.isOpen && (!reached.ends || fillEnd !== null || needsFullRun(store));
      return state === 'stopped' || (hasAll && isOver);
    });
    // A fill that ended too early would do so a turn later.
    if (needsFullRun(store)) await delay(300);
    return row()?.state ?? '';
  } finally {
    await relay.stop();
    store.close();
  }
}

/** Does what `sink replay` and `sink resume` do, as the hint says. */
function takeOver(db: string): void {
  onStore(db, ({ request, sinks: { get } }) =>
    request(({ sinks }) => {
      const sink = get(NAME);
      if (sink === undefined) throw new Error('the mirror does not have the sink');
      sinks.replay(sink, null);
      sinks.setState(sink.id, 'running');
    }),
  );
}

/** Delivers changes that are lost when the backup is put back, and then others. */
async function restore({ db, settings, sandbox }: Place, config: SinkConfig, way: Way): Promise<void> {
  await deliver(db, config);
  onStore(db, () => undefined);
  way.backUp(db, `${db}.backup`);
  sandbox.catalog.mutate({ create: 8, update: 20, remove: 5, seed: 2 });
  await load(settings, 'delta');
  await deliver(db, config);
  onStore(db, () => undefined);
  for (const end of ['-wal', '-shm']) rmSync(`${db}${end}`, { force: true });
  way.putBack(`${db}.backup`, db);
  const { others } = way;
  sandbox.catalog.mutate({ create: others, update: others, remove: 5, seed: 3 });
  await load(settings, 'full');
}

function parsed(db: string): Map<string, unknown> {
  return new Map([...catalogOf(db)].map(([vbid, body]) => [vbid, JSON.parse(body) as unknown]));
}

function lastSeq(db: string): number {
  return onStore(db, ({ changes }) => changes.lastSeq());
}

/** The largest `seq` in a table, tombstones included. */
async function newestRow(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url.replace(/\?.*/, '') });
  await client.connect();
  const table = new URL(url).searchParams.get('table');
  const { rows } = await client.query<{ newest: string }>(`SELECT max(seq) AS newest FROM ${table}`);
  await client.end();
  return Number(rows[0]?.newest);
}

/** Expects that no id names two changes. */
function expectOneContentEach(events: readonly Event[]): void {
  const contents = new Map<string, string>();
  for (const event of events) {
    const content = JSON.stringify(event);
    expect(contents.get(event.id) ?? content).toBe(content);
    contents.set(event.id, content);
  }
}

/** Every event that a store has, in the order of arrival; none if it keeps only products. */
async function eventsOf({ read }: SinkTarget): Promise<readonly Event[]> {
  const { events = [] } = (await read()) as Received & { readonly events?: readonly Event[] };
  return [...events];
}

/** The receiver of docs/sink-trouble.md: it handles each id once, in the order of arrival. */
function handled(events: readonly Event[]): Map<string, unknown> {
  const products = new Map<string, unknown>();
  const seen = new Set<string>();
  for (const { id, subject, data } of events) {
    if (seen.has(id)) continue;
    seen.add(id);
    if (data.product === null) products.delete(subject);
    else products.set(subject, data.product);
  }
  return products;
}

const AVAILABLE = KINDS.filter(({ isAvailable }) => isAvailable);

/** A filled mirror, and a sink of a kind. */
async function placeFor(kind: TargetKind) {
  const server = await kind.start();
  onTestFinished(() => server.stop());
  const target = await kind.prepare(server.port, '');
  onTestFinished(() => target.remove());
  const config = sinkConfig({ env: 'SINK', name: NAME, url: target.url, secret: target.secret });
  return { ...(await filled({ items: 100 })), target, config };
}

/** Expects that the store says what the mirror says. @param had how many events the store had before */
async function expectTruth(kind: TargetKind, target: SinkTarget, db: string, had: number): Promise<readonly Event[]> {
  const mirror = parsed(db);
  const events = await eventsOf(target);
  const { products } = await target.read();
  if (kind.name === 'example') expect([...products]).toEqual(expect.arrayContaining([...mirror]));
  else expect(events.length === 0 ? products : handled(events.slice(had))).toEqual(mirror);
  expectOneContentEach(events);
  return events;
}

describe.each(Object.entries(WAYS))('a mirror restored with %s', (_how, way) => {
  it.each(AVAILABLE)('tells $name its truth, and gives no id twice', async (kind) => {
    const made = await placeFor(kind);
    const { db, target, config } = made;
    await restore(made, config, way);
    const state = await deliver(db, config);
    // A store that keeps a cursor has changes that the mirror does not have. Others do not notice.
    expect(state).toBe(kind.can.includes('mark') ? 'stopped' : 'running');
    const before = await eventsOf(target);
    // Products that only the lost changes created, and that were withdrawn before the next run, are known to no one.
    if (before.length > 0 && state === 'running')
      expect([...handled(before)]).toEqual(expect.arrayContaining([...parsed(db)]));
    takeOver(db);
    expect(await deliver(db, config)).toBe('running');
    await expectTruth(kind, target, db, before.length);
    if (kind.name === 'postgres') expect(await newestRow(target.url)).toBeLessThanOrEqual(lastSeq(db));
  });
});

/** What comes first after `catchword restore`: the run that it asks for, or, if a daemon is started at once, the relay. */
const ORDERS = ['a run', 'a relay'] as const;

describe.each(ORDERS)('a mirror that catchword restore has put back, and %s then,', (first) => {
  it.each(AVAILABLE)('tells $name its truth without a decision, and gives no id twice', async (kind) => {
    const { db, settings, sandbox, target, config } = await placeFor(kind);
    const options = { copy: copyHere, signal: NEVER };
    // One of the backups does not know the sink.
    if (first === 'a relay') await deliver(db, config);
    await backUp(db, `${db}.backup`, options);
    await deliver(db, config);
    sandbox.catalog.mutate({ create: 8, update: 20, remove: 5, seed: 2 });
    await load(settings, 'delta');
    await deliver(db, config);
    const lost = parsed(db);
    const before = await eventsOf(target);
    const { sinks } = await restoreBackup(db, `${db}.backup`, { ...options, sinks: [config] });
    expect(sinks.map(({ name }) => name)).toEqual([NAME]);
    sandbox.catalog.mutate({ create: 10, update: 10, remove: 5, seed: 3 });
    if (first === 'a relay') {
      expect(await deliver(db, config)).toBe('running');
      // A table keeps what the mirror does not know yet, until the run has completed.
      if (kind.name === 'postgres')
        expect([...(await target.read()).products.keys()]).toEqual(expect.arrayContaining([...lost.keys()]));
    }
    expect(await load(settings, 'delta')).toMatchObject({ kind: 'full', state: 'complete' });
    expect(await deliver(db, config)).toBe('running');
    const events = await expectTruth(kind, target, db, before.length);
    const after = new Set(events.slice(before.length).map(({ id }) => id));
    expect(before.filter(({ id }) => after.has(id))).toEqual([]);
  });
});
