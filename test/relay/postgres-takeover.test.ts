import { describe, expect, it, onTestFinished } from 'vitest';
import { altered, limited, openWorkbench, SINK_NAME, until, type Workbench } from '../../src/relay/contract/harness.ts';
import { writeUnder } from '../../src/store/hold-lease.ts';
import { postgresAvailable, usePostgres } from '../support/postgres.ts';
import { books, fed, feeding } from './feeding.ts';
import { postgresTarget } from './targets.ts';

describe.skipIf(!postgresAvailable)('a table of PostgreSQL that is taken over', () => {
  const postgres = usePostgres();

  /** As `sink replay` and `sink resume` do. */
  function takeOver(bench: Workbench): void {
    bench.store.request(({ sinks }) => {
      sinks.replay(bench.sink().id, 0, true);
      sinks.setState(bench.sink().id, 'running');
    });
  }

  function stopped(bench: Workbench): Promise<void> {
    return until('it stops', () => bench.store.sinks.get(SINK_NAME)?.state === 'stopped');
  }

  /** The table of a first mirror with 50 books and a shop's own column, and a second mirror that is to feed it. */
  async function twoMirrors(options = '') {
    const first = await fed(postgresTarget(postgres.port, options), 50);
    await first.bench.stop();
    const { table } = first.target;
    await postgres.client.query(`ALTER TABLE ${table} ADD COLUMN shelf text; UPDATE ${table} SET shelf = 'A' || vbid`);
    const { bench, config } = await feeding(Promise.resolve({ ...first.target, remove: async () => {} }));
    return { table, target: first.target, bench, config };
  }

  /** Three orders: two of books that the second mirror knows, one of a book that it does not. */
  async function orders(table: string, onDelete: string): Promise<string> {
    const name = `${table}_orders`;
    await postgres.client.query(`CREATE TABLE ${name} (book text REFERENCES ${table} ON DELETE ${onDelete})`);
    await postgres.client.query(`INSERT INTO ${name} VALUES ('P1'), ('P2'), ('P40')`);
    onTestFinished(async () => {
      await postgres.client.query(`DROP TABLE ${name}`);
    });
    return name;
  }

  async function living(table: string): Promise<string[]> {
    const { rows } = await postgres.client.query<{ vbid: string }>(
      `SELECT vbid FROM ${table} WHERE removed_at IS NULL ORDER BY vbid`,
    );
    return rows.map(({ vbid }) => vbid);
  }

  it('keeps its rows until they are replaced, with their own columns and what refers to them', async () => {
    const { table, bench, config } = await twoMirrors();
    const name = await orders(table, 'CASCADE');
    bench.change(books(3, 2));
    bench.start(config);
    await stopped(bench);
    expect(await living(table)).toHaveLength(50);
    let fewest = 50;
    await postgres.client.query(`CREATE TABLE ${table}_seen (count bigint);
      CREATE FUNCTION ${table}_look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO ${table}_seen SELECT count(*) FROM ${table}; RETURN NULL; END $$;
      CREATE TRIGGER look AFTER INSERT OR UPDATE OR DELETE ON ${table} EXECUTE FUNCTION ${table}_look()`);
    takeOver(bench);
    await until('the rest is removed', async () => (await living(table)).length === 3);
    for (const { count } of (await postgres.client.query(`SELECT count FROM ${table}_seen`)).rows) {
      fewest = Math.min(fewest, Number(count));
    }
    expect(fewest).toBe(50);
    expect((await postgres.client.query(`SELECT book FROM ${name} ORDER BY book`)).rows).toEqual([
      { book: 'P1' },
      { book: 'P2' },
      { book: 'P40' },
    ]);
    const { rows } = await postgres.client.query(`SELECT body, shelf FROM ${table} WHERE vbid = 'P2'`);
    expect(rows).toEqual([{ body: { vbid: 'P2', version: 2 }, shelf: 'AP2' }]);
  });

  it('deletes what the mirror does not have with removals=delete, and nothing else', async () => {
    const { table, bench, config } = await twoMirrors('&removals=delete');
    const name = await orders(table, 'CASCADE');
    bench.change(books(3, 2));
    bench.start(config);
    await stopped(bench);
    takeOver(bench);
    await until('the rest is removed', async () => (await living(table)).length === 3);
    expect((await postgres.client.query(`SELECT book FROM ${name} ORDER BY book`)).rows).toEqual([
      { book: 'P1' },
      { book: 'P2' },
    ]);
  });

  it('names the foreign key that keeps a row, and goes on delivering', async () => {
    const { table, bench, config } = await twoMirrors('&removals=delete');
    await orders(table, 'RESTRICT');
    bench.change(books(3, 2));
    bench.start(config);
    await stopped(bench);
    takeOver(bench);
    await until('the failure is noted', () => bench.sink().error?.includes('PostgreSQL') ?? false);
    expect(bench.sink().error).toContain('violates foreign key constraint');
    bench.change(books(4, 3));
    await bench.caughtUp();
    expect(bench.sink().state).toBe('running');
    expect(await living(table)).toContain('P3');
  });

  it('does not blame an event that was refused before for a foreign key that keeps a row', async () => {
    const { table, bench, config } = await twoMirrors('&removals=delete');
    await orders(table, 'RESTRICT');
    bench.change([...books(3, 2), { vbid: 'NUL', body: '{"vbid":"NUL","title":"a\\u0000b"}' }]);
    bench.start(config);
    await stopped(bench);
    takeOver(bench);
    await until('the failure is noted', () => bench.sink().error?.includes('removals=tombstone') ?? false);
    expect(bench.store.sinks.parked(bench.sink().id)).toMatchObject([{ vbid: 'NUL', state: 'refused' }]);
    expect(bench.sink()).toMatchObject({ state: 'running', retryAt: expect.any(Number) });
  });

  it('parks a removal with the reason of PostgreSQL', async () => {
    const { bench, target } = await fed(postgresTarget(postgres.port, '&removals=delete'), 41);
    await orders(target.table, 'RESTRICT');
    bench.change([
      { vbid: 'P3', body: null },
      { vbid: 'P1', body: null },
      { vbid: 'P4', body: null },
    ]);
    await bench.caughtUp();
    expect(bench.store.sinks.parked(bench.sink().id)).toMatchObject([
      { vbid: 'P1', reason: expect.stringMatching(/violates foreign key constraint .*\(23503\)$/) },
    ]);
    expect(await living(target.table)).toHaveLength(39);
  });

  it('removes nothing before the mirror is complete', async () => {
    const { table, target } = await twoMirrors();
    const bench = openWorkbench({ isComplete: false });
    onTestFinished(() => bench.close());
    const { config } = await feeding(Promise.resolve({ ...target, remove: async () => {} }));
    bench.change(books(3, 2));
    bench.start(config);
    await stopped(bench);
    takeOver(bench);
    await bench.caughtUp();
    bench.change(books(4, 3));
    await bench.caughtUp();
    expect(await living(table)).toHaveLength(50);
    bench.change(books(5, 4));
    writeUnder(bench.store.keeperLease, Date.now(), (writer) => writer.advanceWatermark(1, 1));
    await until('the rest is removed', async () => (await living(table)).join() === 'P0,P1,P2,P3,P4');
  });

  it('keeps the row of a product whose event is parked', async () => {
    const { table, bench, config } = await twoMirrors();
    bench.change(books(3, 2));
    bench.change([{ vbid: 'P40', body: '{"vbid":"P40","title":"a\\u0000b"}' }]);
    bench.start(config);
    await stopped(bench);
    takeOver(bench);
    await until('the rest is removed', async () => (await living(table)).length === 4);
    expect(await living(table)).toEqual(['P0', 'P1', 'P2', 'P40']);
  });

  it('continues a fill that was interrupted, and removes what it did not deliver', async () => {
    const { table, bench, config } = await twoMirrors();
    bench.change(books(400, 2).slice(30));
    bench.start(config);
    await stopped(bench);
    await bench.stop();
    takeOver(bench);
    for (let round = 0; round < 2; round++) await bench.crash(altered(config, limited(3)));
    expect(await living(table)).toContain('P0');
    bench.start(config);
    await until('the rest is removed', async () => (await living(table)).length === 370);
    const { rows } = await postgres.client.query(`SELECT count(*)::int FROM ${table} WHERE body ->> 'version' = '2'`);
    expect(rows).toEqual([{ count: 370 }]);
  });

  /** Of this mirror, but written under numbers that it lost when it was restored from a backup. */
  it.each([
    ['is ahead', (table: string) => `UPDATE catchword_cursor SET cursor = 90 WHERE table_name = 'public.${table}'`],
    [
      'was recorded later',
      (table: string) => `UPDATE catchword_cursor SET at = 7 WHERE table_name = 'public.${table}'`,
    ],
  ])('replaces what a later state of the mirror delivered, whose cursor %s', async (_, lose) => {
    const { bench, target, config } = await fed(postgresTarget(postgres.port), 5);
    await bench.stop();
    const { table } = target;
    await postgres.client.query(lose(table));
    await postgres.client.query(
      `UPDATE ${table} SET seq = 90, body = '{"vbid":"P1","of":"a lost future"}' WHERE vbid = 'P1'`,
    );
    await postgres.client.query(`INSERT INTO ${table} (vbid, body, seq, changed_at) VALUES ('GHOST', '{}', 80, now())`);
    bench.start(config);
    await stopped(bench);
    expect(bench.sink().error).toContain('a later state of this mirror');
    takeOver(bench);
    await until('the ghost is removed', async () => !(await living(table)).includes('GHOST'));
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('stops at rows without a cursor that this mirror never wrote, until the operator takes them over', async () => {
    const { table, bench, config } = await twoMirrors();
    await postgres.client.query(`DELETE FROM catchword_cursor WHERE table_name = 'public.${table}'`);
    bench.change(books(3, 2));
    bench.start(config);
    await stopped(bench);
    expect(await living(table)).toHaveLength(50);
    takeOver(bench);
    await until('the rest is removed', async () => (await living(table)).length === 3);
  });

  it('begins with an empty table of another mirror without asking', async () => {
    const { table, bench, config } = await twoMirrors();
    await postgres.client.query(`TRUNCATE ${table}`);
    bench.start(config);
    await until('it is open', () => bench.store.sinks.get(SINK_NAME)?.opened ?? false);
    bench.change(books(3, 2));
    await bench.caughtUp();
    expect(await living(table)).toEqual(['P0', 'P1', 'P2']);
  });
});
