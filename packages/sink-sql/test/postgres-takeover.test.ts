import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SINK_NAME, smallBatches, until, type Version, wrapSink } from '../../../src/contract/harness.ts';
import type { SinkConfig } from '../../../src/relay/sink-config.ts';
import { writeUnder } from '../../../src/store/schema/lease.ts';
import { books, fed, fedBefore, feeding, type TestMirror, temporaryMirror } from '../../../test/relay/feeding.ts';
import { postgresTarget } from '../../../test/relay/targets.ts';

describe.skipIf(!postgresAvailable)('a table of PostgreSQL that is taken over', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  async function takeOver(harness: TestMirror, config: SinkConfig, versions: readonly Version[]): Promise<void> {
    harness.change(versions);
    await harness.stopped(config);
    harness.takeOver();
  }

  /** Prepares a table of a first mirror, with 50 books and a shop's own column, and a second mirror with the same sink. */
  async function twoMirrors(options = '') {
    const first = await fedBefore(postgresTarget(postgres.port, options), 50);
    const { table } = first.target;
    await postgres.client.query(`ALTER TABLE ${table} ADD COLUMN shelf text; UPDATE ${table} SET shelf = 'A' || vbid`);
    const { harness, config } = await feeding(Promise.resolve({ ...first.target, remove: async () => {} }));
    return { table, target: first.target, harness, config };
  }

  /** Creates three orders: two of books that the second mirror has, one of a book that it does not have. */
  async function orders(harness: TestMirror, table: string, onDelete: string): Promise<string> {
    const name = `${table}_orders`;
    await postgres.client.query(`CREATE TABLE ${name} (book text REFERENCES ${table} ON DELETE ${onDelete})`);
    await postgres.client.query(`INSERT INTO ${name} VALUES ('P1'), ('P2'), ('P40')`);
    onTestFinished(async () => {
      // A relay that still retries would lock the tables in another order.
      await harness.stop();
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

  it('keeps its rows until they are replaced, with foreign columns and references', async () => {
    const { table, harness, config } = await twoMirrors();
    const name = await orders(harness, table, 'CASCADE');
    harness.change(books(3, 2));
    await harness.stopped(config);
    expect(await living(table)).toHaveLength(50);
    let fewest = 50;
    await postgres.client.query(`CREATE TABLE ${table}_seen (count bigint);
      CREATE FUNCTION ${table}_look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO ${table}_seen SELECT count(*) FROM ${table}; RETURN NULL; END $$;
      CREATE TRIGGER look AFTER INSERT OR UPDATE OR DELETE ON ${table} EXECUTE FUNCTION ${table}_look()`);
    harness.takeOver();
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

  it('deletes only rows that the mirror does not have, with removals=delete', async () => {
    const { table, harness, config } = await twoMirrors('&removals=delete');
    const name = await orders(harness, table, 'CASCADE');
    await takeOver(harness, config, books(3, 2));
    await until('the rest is removed', async () => (await living(table)).length === 3);
    expect((await postgres.client.query(`SELECT book FROM ${name} ORDER BY book`)).rows).toEqual([
      { book: 'P1' },
      { book: 'P2' },
    ]);
  });

  it('names the foreign key that keeps a row, parks no event because of it, and continues to deliver', async () => {
    const { table, harness, config } = await twoMirrors('&removals=delete');
    await orders(harness, table, 'RESTRICT');
    await takeOver(harness, config, [...books(3, 2), { vbid: 'NUL', body: '{"vbid":"NUL","title":"a\\u0000b"}' }]);
    await until('the failure is recorded', () => harness.sink().error?.includes('removals=tombstone') ?? false);
    expect(harness.sink().error).toMatch(/PostgreSQL.*violates foreign key constraint/);
    expect(harness.parked()).toMatchObject([{ vbid: 'NUL', state: 'refused' }]);
    expect(harness.sink()).toMatchObject({ state: 'running', retryAt: expect.any(Number) });
    await harness.deliver(books(4, 3));
    expect(harness.sink().state).toBe('running');
    expect(await living(table)).toContain('P3');
  });

  it('parks a removal with the error of PostgreSQL', async () => {
    const { harness, target } = await fed(postgresTarget(postgres.port, '&removals=delete'), 41);
    await orders(harness, target.table, 'RESTRICT');
    await harness.deliver([
      { vbid: 'P3', body: null },
      { vbid: 'P1', body: null },
      { vbid: 'P4', body: null },
    ]);
    expect(harness.parked()).toMatchObject([
      { vbid: 'P1', reason: expect.stringMatching(/violates foreign key constraint .*\(23503\)$/) },
    ]);
    expect(await living(target.table)).toHaveLength(39);
  });

  it('removes nothing before the mirror is complete', async () => {
    const { table, target } = await twoMirrors();
    const harness = temporaryMirror({ isComplete: false });
    const { config } = await feeding(Promise.resolve({ ...target, remove: async () => {} }));
    await takeOver(harness, config, books(3, 2));
    await harness.caughtUp();
    await harness.deliver(books(4, 3));
    expect(await living(table)).toHaveLength(50);
    harness.change(books(5, 4));
    writeUnder(harness.store.keeperLease, Date.now(), (writer) => writer.advanceWatermark(1, 1));
    await until('the rest is removed', async () => (await living(table)).join() === 'P0,P1,P2,P3,P4');
  });

  it('keeps the row of a product whose event is parked', async () => {
    const { table, harness, config } = await twoMirrors();
    harness.change(books(3, 2));
    await takeOver(harness, config, [{ vbid: 'P40', body: '{"vbid":"P40","title":"a\\u0000b"}' }]);
    await until('the rest is removed', async () => (await living(table)).length === 4);
    expect(await living(table)).toEqual(['P0', 'P1', 'P2', 'P40']);
  });

  it('continues an interrupted fill, and removes the rows that it did not deliver', async () => {
    const { table, harness, config } = await twoMirrors();
    harness.change(books(400, 2).slice(30));
    await harness.stopped(config);
    await harness.stop();
    harness.takeOver();
    for (let round = 0; round < 2; round++) await harness.crash(wrapSink(config, smallBatches(3)));
    expect(await living(table)).toContain('P0');
    harness.start(config);
    await until('the rest is removed', async () => (await living(table)).length === 370);
    const { rows } = await postgres.client.query(`SELECT count(*)::int FROM ${table} WHERE body ->> 'version' = '2'`);
    expect(rows).toEqual([{ count: 370 }]);
  });

  /** The table has changes that the mirror lost when it was restored from a backup. */
  it.each([
    ['is ahead', (table: string) => `UPDATE catchword_cursor SET cursor = 90 WHERE table_name = 'public.${table}'`],
    [
      'was recorded later',
      (table: string) => `UPDATE catchword_cursor SET at = 7 WHERE table_name = 'public.${table}'`,
    ],
  ])('replaces rows of a later state of the mirror, whose cursor %s', async (_, lose) => {
    const { harness, target, config } = await fedBefore(postgresTarget(postgres.port), 5);
    const { table } = target;
    await postgres.client.query(lose(table));
    await postgres.client.query(
      `UPDATE ${table} SET seq = 90, body = '{"vbid":"P1","of":"a lost future"}' WHERE vbid = 'P1'`,
    );
    await postgres.client.query(`INSERT INTO ${table} (vbid, body, seq, changed_at) VALUES ('GHOST', '{}', 80, now())`);
    await harness.stopped(config);
    expect(harness.sink().error).toContain('a later state of this mirror');
    harness.takeOver();
    await until('the ghost is removed', async () => !(await living(table)).includes('GHOST'));
    expect((await target.read()).products).toEqual(harness.living());
  });

  it('stops at foreign rows without a cursor until the operator takes them over', async () => {
    const { table, harness, config } = await twoMirrors();
    await postgres.client.query(`DELETE FROM catchword_cursor WHERE table_name = 'public.${table}'`);
    harness.change(books(3, 2));
    await harness.stopped(config);
    expect(await living(table)).toHaveLength(50);
    harness.takeOver();
    await until('the rest is removed', async () => (await living(table)).length === 3);
  });

  it('fills an empty table of another mirror without a takeover', async () => {
    const { table, harness, config } = await twoMirrors();
    await postgres.client.query(`TRUNCATE ${table}`);
    harness.start(config);
    await until('it is open', () => (harness.store.sinks.get(SINK_NAME)?.generation ?? 0) > 0);
    await harness.deliver(books(3, 2));
    expect(await living(table)).toEqual(['P0', 'P1', 'P2']);
  });
});
