import { pgbouncerAvailable, startPgbouncer } from '@catchword/testing/pgbouncer';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import type { ServerProcess } from '@catchword/testing/server';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { books, configAt, feeding, NEVER } from '../../../test/relay/feeding.ts';
import { postgresTarget } from '../../../test/relay/targets.ts';

describe.skipIf(!postgresAvailable || !pgbouncerAvailable)('PostgreSQL behind a pooler', { tags: ['stores'] }, () => {
  const postgres = usePostgres();
  let pooler: ServerProcess;
  beforeAll(async () => {
    pooler = await startPgbouncer(postgres.port);
  });
  afterAll(() => pooler.stop());

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${pooler.port}/postgres` });
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  }

  /** A sink whose connection, to PostgreSQL, is the same as that of another application. */
  async function pooled() {
    const scene = await feeding(postgresTarget(postgres.port));
    const url = scene.target.url.replace(/:\d+\//, `:${pooler.port}/`);
    const config = configAt(url);
    return { ...scene, config, application: await connect() };
  }

  it('gets everything, after restarts as well', async () => {
    const { harness, target, config } = await pooled();
    for (let round = 1; round <= 3; round++) {
      await harness.resume(config, books(50 + round, round));
      await harness.stop();
    }
    expect((await target.read()).products).toEqual(harness.living());
    expect(await (await config.make()).check(NEVER)).toContain('can be written');
  });

  it('leaves no setting to other applications', async () => {
    const { harness, target, config, application } = await pooled();
    await harness.resume(config, books(5, 1));
    await postgres.client.query(`CREATE TABLE ${target.table}_seen (setting text);
      CREATE FUNCTION ${target.table}_look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO ${target.table}_seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
      CREATE CONSTRAINT TRIGGER look AFTER INSERT ON ${target.table} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION ${target.table}_look()`);
    await harness.deliver(books(7, 2));
    const { rows: own } = await postgres.client.query(`SELECT DISTINCT setting FROM ${target.table}_seen`);
    expect(own).toEqual([{ setting: 'off' }]);
    const { rows } = await application.query(`SELECT name, setting FROM pg_settings WHERE source = 'session'
      AND name NOT IN ('client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')`);
    expect(rows).toEqual([]);
    expect((await application.query('SELECT name FROM pg_prepared_statements')).rows).toEqual([]);
  });

  it('a sink behind a pooler does not follow the search_path of another application', async () => {
    const { harness, target, config, application } = await pooled();
    const { table } = target;
    await application.query(`CREATE SCHEMA shop_${table}; CREATE TABLE shop_${table}.${table} (id integer);
      SET search_path = shop_${table}`);
    await harness.resume(config, books(5, 1));
    expect((await target.read()).products).toEqual(harness.living());
    await application.query('RESET search_path');
  });
});
