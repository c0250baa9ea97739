import { copyFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { execute, query } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import Database from 'better-sqlite3';
import { createClient } from 'catchword-client/client';
import { expect, it, onTestFinished } from 'vitest';
import {
  type CatchwordEvent,
  type ChangesOptions,
  type Mirror,
  type MirrorProduct,
  openMirror,
} from '../../src/mirror/mirror.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf } from '../support/mirror.ts';
import { filled } from '../support/place.ts';

function open(db: string): Mirror {
  const mirror = openMirror(db);
  onTestFinished(() => mirror.close());
  return mirror;
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const codeOf = (error: unknown) => (error as { code?: string }).code;

function failure(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return codeOf(error);
  }
  return undefined;
}

it('openMirror reads what the commands print', { tags: ['slow'] }, async () => {
  const { db, settings, directory, sandbox } = await filled({ items: 300, details: true });
  sandbox.catalog.mutate({ update: 5, seed: 1 });
  await load(settings, 'delta');
  const mirror = open(db);
  const printed = async (...args: string[]) => (await runHere(args, settings, directory)).stdout.trimEnd();

  const texts = await all(mirror.changeTexts());
  expect(texts.join('\n')).toBe(await printed('changes'));
  expect(await all(mirror.changes())).toEqual(texts.map((text) => JSON.parse(text) as CatchwordEvent));
  expect((await all(mirror.changes({ after: 300 }))).map(({ data }) => data.op)).toEqual(Array(5).fill('updated'));

  const hits = mirror.search('hist*', { limit: 3 });
  expect(hits).toHaveLength(3);
  const found = JSON.parse(await printed('search', 'hist*', '--json')) as { vbid: string }[];
  expect(hits.map(({ vbid }) => vbid)).toEqual(found.slice(0, 3).map(({ vbid }) => vbid));

  const known = mirror.get(hits[0]?.vbid ?? '') as MirrorProduct;
  expect(JSON.parse(await printed('product', known.vbid, '--json'))).toMatchObject({
    title: known.title,
    print_isbn: known.printIsbn,
    first_seen_at: known.firstSeenAt.toISOString(),
    changed_at: known.changedAt.toISOString(),
    changed_seq: known.changedSeq,
    body: known.product,
  });
  // Typed, and fields that have no type are kept.
  expect(known.product.title).toBe(known.title);
  expect(known.product.variants?.[0]?.prices?.[0]?.currency).toMatch(/^[A-Z]{3}$/);
  expect(known.body).toBe(catalogOf(db).get(known.vbid));
  expect(known.eIsbn === null ? known.vbid : mirror.get(known.eIsbn)?.vbid).toBe(known.vbid);
  expect(mirror.get('unknown')).toBeUndefined();

  expect(mirror.lastSeq()).toBe(305);
  const status = JSON.parse(await printed('status', '--json')) as { incarnation: string };
  expect(mirror.status()).toMatchObject({
    path: db,
    incarnation: status.incarnation,
    products: 300,
    lastSeq: 305,
    completeAt: expect.any(Date) as Date,
    lastRun: { id: 2, kind: 'delta', state: 'complete', error: null },
  });
});

it('openMirror returns every product once, in batches', async () => {
  const { db, sandbox, settings } = await filled({ items: 1_050, withdrawnForMs: 0 });
  sandbox.catalog.mutate({ remove: 3, seed: 1 });
  await load(settings, 'full');
  const mirror = open(db);
  const batches = await all(mirror.products({ batch: 200 }));
  expect(batches.map(({ length }) => length)).toEqual([200, 200, 200, 200, 200, 47]);
  const bodies = batches.flat().map(({ vbid, body }) => [vbid, body] as const);
  expect(new Map(bodies)).toEqual(catalogOf(db));
  const rest = await all(mirror.products({ after: batches[4]?.at(-1)?.vbid ?? '' }));
  expect(rest).toEqual([batches[5]]);
  const [removed] = query<{ vbid: string }>(db, `SELECT vbid FROM change_log WHERE op = 'removed'`);
  expect(mirror.get(removed?.vbid ?? '')).toBeUndefined();
});

it('openMirror gives an exact copy to a reader that reads all products and then what changed meanwhile', async () => {
  const { db, settings, sandbox } = await filled({ items: 600, withdrawnForMs: 0 });
  const mirror = open(db);
  const copy = new Map<string, string>();
  const start = mirror.lastSeq();
  let batches = 0;
  for await (const batch of mirror.products({ batch: 100 })) {
    for (const { vbid, body } of batch) copy.set(vbid, body);
    batches++;
    sandbox.catalog.mutate({ update: 20, remove: 1, create: 2, seed: batches });
    await load(settings, 'full');
  }
  expect(batches).toBeGreaterThan(5);
  for await (const { data } of mirror.changes({ after: start })) {
    if (data.op === 'removed') copy.delete(data.vbid);
    else copy.set(data.vbid, JSON.stringify(data.product));
  }
  const living = [...catalogOf(db)].map(([vbid, body]) => [vbid, JSON.parse(body) as unknown]);
  expect(new Map([...copy].map(([vbid, body]) => [vbid, JSON.parse(body) as unknown]))).toEqual(new Map(living as []));
});

it('openMirror follows a mirror that is being written, until its signal or the reader ends it', async () => {
  const { db, settings, sandbox } = await filled({ items: 20 });
  const mirror = open(db);
  const ending = new AbortController();
  const seen: string[] = [];
  const following = (async () => {
    for await (const { sequence } of mirror.changes({ after: 18, follow: true, signal: ending.signal })) {
      seen.push(sequence);
      if (seen.length === 2) {
        sandbox.catalog.mutate({ update: 3, seed: 1 });
        await load(settings, 'delta');
      }
      if (seen.length === 5) ending.abort();
    }
  })();
  await following;
  expect(seen.map(Number)).toEqual([19, 20, 21, 22, 23]);
  // While it waits, too.
  const waiting = new AbortController();
  const next = mirror.changes({ after: 23, follow: true, signal: waiting.signal }).next();
  waiting.abort();
  expect(await next).toEqual({ done: true, value: undefined });
  const closed = mirror.changes({ after: 23, follow: true }).next();
  mirror.close();
  await expect(closed).rejects.toMatchObject({ code: 'INTERRUPTED' });
});

it('openMirror leaves no transaction open between batches, and does not write', async () => {
  const { db, settings, sandbox } = await filled({ items: 300 });
  const mirror = open(db);
  const products = mirror.products({ batch: 10 });
  await products.next();
  const changes = mirror.changes();
  await changes.next();
  sandbox.catalog.mutate({ update: 100, seed: 1 });
  await load(settings, 'delta');
  // An open snapshot would keep the log from being emptied.
  const writer = new Database(db);
  const emptied = writer.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all();
  writer.close();
  expect(emptied).toEqual([{ busy: 0, log: 0, checkpointed: 0 }]);
  const before = statSync(db, { bigint: true });
  expect(mirror.search('history')).toBeDefined();
  expect((await all(changes)).length).toBe(399);
  mirror.close();
  expect(statSync(db, { bigint: true })).toMatchObject({ mtimeNs: before.mtimeNs, size: before.size });
});

it('openMirror keeps every digit in the texts', async () => {
  const { db } = await filled({ items: 1 });
  execute(db, `UPDATE products SET body = json_insert(body, '$.x', 0)`);
  execute(db, `UPDATE products SET body = replace(body, '"x":0', '"x":12345678901234567890.10')`);
  const mirror = open(db);
  const [[product] = []] = await all(mirror.products());
  expect(product?.body).toContain('"x":12345678901234567890.10');
  expect((await all(mirror.changeTexts()))[0]).toContain('"x":12345678901234567890.10');
});

it('openMirror rejects a mirror that it cannot read, and invalid options', async () => {
  const { db } = await filled({ items: 10 });
  expect(failure(() => openMirror(join(temporaryDirectory(), 'none.db')))).toBe('NOT_FOUND');
  expect(failure(() => openMirror(temporaryDirectory()))).toBe('MIRROR_UNUSABLE');
  const mirror = open(db);
  for (const after of [11, -1, 1.5, Number.NaN, 'latest', '', '1 ', null as unknown as number])
    await expect(mirror.changes({ after }).next(), String(after)).rejects.toMatchObject({ code: 'USAGE' });
  for (const batch of [0, 10_001, 0.5])
    await expect(mirror.products({ batch }).next()).rejects.toMatchObject({ code: 'USAGE' });
  expect(failure(() => mirror.search('a', { limit: 0 }))).toBe('USAGE');
  // As a caller in JavaScript may pass it.
  const isbn = 9788074089008 as unknown as string;
  for (const work of [() => openMirror(isbn), () => mirror.get(isbn), () => mirror.search(isbn)])
    expect(failure(work)).toBe('USAGE');
  await expect(mirror.products({ after: isbn }).next()).rejects.toMatchObject({ code: 'USAGE' });
  const wrong = [{ since: new Date('yesterday') }, { op: 'updated' }, { field: 'variants' }, { op: ['gone'] }];
  for (const options of wrong as ChangesOptions[])
    await expect(mirror.changes(options).next(), JSON.stringify(options)).rejects.toMatchObject({ code: 'USAGE' });
  expect(failure(() => mirror.search('a b c d e f g h i j k l m n o p q'))).toBe('USAGE');
  const [first] = await all(mirror.changes());
  expect(await all(mirror.changes({ after: first?.id ?? '' }))).toHaveLength(9);
  const other = first?.id.replace(/^./, (digit) => (digit === 'a' ? 'b' : 'a')) ?? '';
  await expect(mirror.changes({ after: other }).next()).rejects.toMatchObject({ code: 'MIRROR_REPLACED' });
  mirror.close();
  for (const work of [() => mirror.get('A'), () => mirror.status(), () => mirror.lastSeq(), () => mirror.search('a')])
    expect(failure(work)).toBe('INTERRUPTED');
  mirror.close();
});

it('openMirror recognizes the id of a change that was lost when a backup was restored', async () => {
  const { db, settings, sandbox } = await filled({ items: 20 });
  const restored = join(temporaryDirectory(), 'catalog.db');
  const lost = open(db);
  execute(db, `VACUUM INTO '${restored}'`);
  sandbox.catalog.mutate({ update: 4, seed: 1 });
  await load(settings, 'delta');
  const [last] = (await all(lost.changes({ after: 20 }))).slice(-1);
  const kept = (await all(lost.changes())).find(({ sequence }) => Number(sequence) === 20);
  sandbox.catalog.mutate({ create: 9, seed: 2 });
  await load({ ...settings, CATCHWORD_DB: restored }, 'full');
  const mirror = open(restored);
  expect(mirror.lastSeq()).toBeGreaterThan(Number(last?.sequence));
  await expect(all(mirror.changes({ after: last?.id ?? '' }))).rejects.toMatchObject({ code: 'MIRROR_REPLACED' });
  expect(await all(mirror.changes({ after: kept?.id ?? '' }))).toHaveLength(mirror.lastSeq() - 20);
});

it('openMirror notices a restore into the open file, also if the log has grown since', async () => {
  const { db } = await filled({ items: 20 });
  const mirror = open(db);
  expect(mirror.lastSeq()).toBe(20);
  // As SQLite's `.restore` does, and then a run of another process.
  execute(db, `UPDATE eras SET id = 'another'; INSERT INTO changes (at, run_id, op, product_id) VALUES (1, 1, 1, 1)`);
  expect(failure(() => mirror.lastSeq())).toBe('MIRROR_REPLACED');
});

it('openMirror notices that another file took the place of the mirror', async () => {
  const [one, two] = [await filled({ items: 20 }), await filled({ items: 30 })];
  const mirror = open(one.db);
  const changes = mirror.changes({ follow: true });
  for (let count = 0; count < 20; count++) await changes.next();
  const next = changes.next();
  copyFileSync(two.db, `${one.db}.new`);
  renameSync(`${one.db}.new`, one.db);
  await expect(next).rejects.toMatchObject({
    code: 'MIRROR_REPLACED',
    hint: expect.stringMatching(/open.*again/) as string,
  });
  expect(failure(() => mirror.get('A'))).toBe('MIRROR_REPLACED');
  mirror.close();
  expect(open(one.db).status().products).toBe(30);
});

it('openMirror gives each product as the client of the service does, and when it changed', async () => {
  const { db, sandbox } = await filled({ items: 20, details: true });
  const client = createClient({ baseUrl: sandbox.url, apiKey: 'SANDBOXKEY', accessToken: 'sandboxtoken' });
  onTestFinished(() => client.close());
  const mirror = open(db);
  for await (const { products } of client.catalog.products()) {
    expect(products).toHaveLength(20);
    for (const item of products) {
      const { firstSeenAt, changedAt, changedSeq, ...same } = mirror.get(item.vbid) as MirrorProduct;
      expect(item).toEqual(same);
      expect(item.product.variants?.[0]?.prices?.[0]?.currency).toMatch(/^[A-Z]{3}$/);
      expect([firstSeenAt, changedAt, changedSeq]).toEqual([expect.any(Date), expect.any(Date), expect.any(Number)]);
    }
  }
});

it('a mirror reads products and changes as a view shows them', async () => {
  const { db, settings, directory, sandbox } = await filled({ items: 300, details: true, withdrawnForMs: 0 });
  const mirror = open(db);
  const [middle] = (await all(mirror.products())).flat().slice(150);
  const where = `vbid >= '${middle?.vbid}'`;
  const selected = query<{ vbid: string; body: string }>(
    db,
    `SELECT vbid, body FROM catalog WHERE ${where} ORDER BY vbid`,
  );
  expect(selected.length).toBeGreaterThan(0);
  const whole = (await all(mirror.products({ where, batch: 7 }))).flat();
  expect(whole.map(({ vbid, body }) => ({ vbid, body }))).toEqual(selected);
  const few = (await all(mirror.products({ where, fields: 'title' }))).flat();
  expect(few.map(({ body }) => body)).toEqual(whole.map(({ vbid, title }) => JSON.stringify({ vbid, title })));
  expect(few[0]?.product).toEqual({ vbid: whole[0]?.vbid, title: whole[0]?.title });
  expect(await all(mirror.products({ where: '0' }))).toEqual([]);

  const start = mirror.lastSeq();
  sandbox.catalog.mutate({ update: 10, remove: 4, seed: 1 });
  await load(settings, 'full');
  const view = { where, fields: 'title' };
  const texts = await all(mirror.changeTexts(view));
  const args = ['changes', '--where', where, '--fields', 'title'];
  expect((await runHere(args, settings, directory)).stdout).toBe(texts.map((text) => `${text}\n`).join(''));
  const events = await all(mirror.changes(view));
  expect(events.every(({ id }) => /_[0-9a-f]{12}\.[0-9a-f]{12}:\d+$/.test(id))).toBe(true);
  // An id of an event of a view is a position, too.
  const last = events.findLast(({ sequence }) => Number(sequence) <= start);
  const later = await all(mirror.changes({ ...view, after: last?.id ?? '', op: ['removed'] }));
  expect(later).toEqual(events.filter(({ sequence, data }) => Number(sequence) > start && data.op === 'removed'));
  expect(later.length).toBeGreaterThan(0);

  const ending = new AbortController();
  const found: string[] = [];
  for await (const { id } of mirror.changes({ ...view, follow: true, signal: ending.signal })) {
    if (found.push(id) === events.length) ending.abort();
  }
  expect(found).toEqual(events.map(({ id }) => id));
});

it('a mirror rejects an invalid view with an error that names it', async () => {
  const { db, settings, directory } = await filled({ items: 3 });
  const mirror = open(db);
  for (const [options, message] of [
    [{ where: 'titel = 1' }, 'where: no such column: titel'],
    [{ fields: 'now()' }, 'fields: no such function: now'],
    [{ where: 7 }, 'where: 7 is not a text'],
    [{ fields: ' ' }, 'fields is empty'],
  ] as const) {
    const given = options as ChangesOptions;
    await expect(mirror.changes(given).next()).rejects.toMatchObject({ code: 'USAGE', message });
    await expect(mirror.products(given as object).next()).rejects.toMatchObject({ code: 'USAGE', message });
  }
  const refused = await runHere(['changes', '--where', 'titel = 1'], settings, directory);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('--where: no such column: titel');
  const failing = await runHere(['changes', '--fields', 'title || vbid'], settings, directory);
  expect(failing).toMatchObject({ code: 0, stdout: '' });
  expect(failing.stderr).toMatch(/^failures of --where or --fields: 3, last \S+: the fields are not a JSON object\n$/);
});
