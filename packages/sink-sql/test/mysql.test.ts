import { join } from 'node:path';
import { createConnectionLife } from '@catchword/sink-kit/connection-scope';
import type { SinkEvent } from '@catchword/sink-kit/sink';
import { connect, MysqlError } from '@catchword/sink-sql/mysql/mysql-connection';
import { ensureLayout, resolveNames } from '@catchword/sink-sql/mysql/mysql-layout';
import { isTooMuch, mysqlTables } from '@catchword/sink-sql/mysql/mysql-table';
import { connectMariadb, mariadbAvailable, useMariadb } from '@catchword/testing/mariadb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until, type Version } from '../../../src/contract/harness.ts';
import { books, configAt, fed, feeding } from '../../../test/relay/feeding.ts';
import { mysqlTarget } from '../../../test/relay/targets.ts';

const ITEM = {
  vbid: 'P1',
  title: 'Die Brücke',
  subtitle: 'x'.repeat(70_000),
  publisher: { name: 'Verlag' },
  identifiers: { eisbn_canonical: '9783161484100', other: ['4711', '4712'] },
  contributors: ['Ann Ale', { name: 'Bob Bär', type: 'editor' }],
  sales_rights: ['US', 'WORLD'],
  variants: [{ sku: 'S1', duration: 'perpetual', prices: [{ type: 'list', currency: 'USD', value: '10.50' }] }],
};
/** As a source writes it: with numbers that JavaScript would write in another way. */
const BODY = JSON.stringify(ITEM).replace('"vbid"', '"weight": 10.50, "serial":12345678901234567890,"vbid"');

describe.skipIf(!mariadbAvailable)('MariaDB', { tags: ['stores'] }, () => {
  const maria = useMariadb({ settings: ['--max-allowed-packet=1M'] });
  const rows = (sql: string) => maria.client.query<Record<string, unknown>[]>(sql);
  const target = (options = '') => mysqlTarget(maria.server.port, options);
  const deliver = async (versions: readonly Version[], options = '') => {
    const scene = await feeding(target(options));
    scene.harness.start(scene.config);
    await scene.harness.deliver(versions);
    return { ...scene, table: scene.target.table };
  };

  it('a product of MariaDB has its columns, its parts and its JSON, byte by byte', async () => {
    const { table } = await deliver([{ vbid: 'P1', body: BODY }]);
    const [row] = await rows(`SELECT * FROM ${table}`);
    expect(row).toMatchObject({
      vbid: 'P1',
      title: ITEM.title,
      subtitle: ITEM.subtitle,
      publisher: 'Verlag',
      e_isbn: '9783161484100',
      distributable: 1,
      contributors: 'Ann Ale; Bob Bär',
      sales_rights: '["US","WORLD"]',
      body: BODY,
      seq: 1,
      removed_at: null,
    });
    expect(row?.changed_at).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/);
    expect(await rows(`SELECT vbid, sku, value, currency, variant_distributable FROM ${table}_prices`)).toEqual([
      { vbid: 'P1', sku: 'S1', value: 10.5, currency: 'USD', variant_distributable: 1 },
    ]);
    expect(await rows(`SELECT position, name, type FROM ${table}_contributors ORDER BY id`)).toEqual([
      { position: 1, name: 'Ann Ale', type: null },
      { position: 2, name: 'Bob Bär', type: 'editor' },
    ]);
    expect(await rows(`SELECT form, value FROM ${table}_identifiers ORDER BY value`)).toMatchObject([
      { form: 'other', value: '4711' },
      { value: '4712' },
      { form: 'eisbn_canonical', value: '9783161484100' },
    ]);
    const words = "MATCH (title, subtitle, publisher, contributors) AGAINST ('brucke' IN BOOLEAN MODE)";
    expect(await rows(`SELECT vbid FROM ${table} WHERE ${words}`)).toEqual([{ vbid: 'P1' }]);
  });

  it('a removed product of MariaDB keeps its row and loses its parts', async () => {
    const { harness, table } = await deliver([{ vbid: 'P1', body: BODY }]);
    await harness.deliver([{ vbid: 'P1', body: null }]);
    const [row] = await rows(`SELECT removed_at IS NOT NULL AS gone, seq, title FROM ${table}`);
    expect(row).toEqual({ gone: 1, seq: 2, title: ITEM.title });
    for (const part of ['prices', 'contributors', 'identifiers']) {
      expect(await rows(`SELECT * FROM ${table}_${part}`)).toEqual([]);
    }
  });

  it('an event that MariaDB rejects is parked without its body in the reason', async () => {
    const { harness, table } = await deliver(books(2, 1));
    await maria.client.query(`ALTER TABLE ${table} ADD CONSTRAINT nice CHECK (title <> 'bad')`);
    await harness.deliver([{ vbid: 'P1', body: '{"vbid":"P1","title":"bad","secret":"Wkv"}' }]);
    const [parked] = harness.parked();
    expect(parked?.reason).toMatch(/^MySQL: CONSTRAINT `nice` failed for .* \(4025\)$/);
    expect(JSON.stringify(parked?.reason)).not.toContain('Wkv');
  });

  it('max_allowed_packet limits a request, and a product beyond it is parked', async () => {
    const long = (vbid: string, length: number) => ({
      vbid,
      body: JSON.stringify({ vbid, description: 'ü'.repeat(length) }),
    });
    const { harness, target: store } = await deliver(Array.from({ length: 10 }, (_, at) => long(`P${at}`, 200_000)));
    expect((await store.read()).products).toEqual(harness.living());
    await harness.deliver([long('HUGE', 600_000)]);
    expect(harness.parked()).toMatchObject([
      { vbid: 'HUGE', reason: expect.stringMatching(/^MySQL: a row takes \d+ bytes, more than max_allowed_packet/) },
    ]);
  });

  it('a lock that MariaDB does not grant in time leaves no transaction open', async () => {
    const life = createConnectionLife();
    onTestFinished(() => life.end());
    const login = { host: '127.0.0.1', port: maria.server.port, user: 'root', database: 'shop' };
    const db = await connect(login, life);
    const names = await resolveNames(db, 'waiting');
    await ensureLayout(db, names);
    const tables = mysqlTables(db, { table: 'waiting', names, removals: 'tombstone' });
    const start = { incarnation: 'a', generation: 1, cursor: 0, at: 0, late: 0 };
    await tables.claim(start, null);
    const event = { id: '', seq: 1, at: 0, op: 'created', vbid: 'P1', body: BODY, text: '' } as const;
    const changes = tables.changesOf([event satisfies SinkEvent]);
    expect(await tables.deliver(changes, { ...start, cursor: 1 }, start, 'insert')).toBe(true);
    await db.query('SET SESSION innodb_lock_wait_timeout = 1');
    const other = await connectMariadb(maria.server.port);
    onTestFinished(() => other.end());
    await other.query('START TRANSACTION');
    await other.query("SELECT * FROM waiting WHERE vbid = 'P1' FOR UPDATE");
    const marks = [
      { ...start, cursor: 2 },
      { ...start, cursor: 1 },
    ] as const;
    const failure = await tables.deliver(changes, ...marks, 'deliver').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(MysqlError);
    expect(failure).toMatchObject({ errno: 1205, message: 'Lock wait timeout exceeded; try restarting transaction' });
    expect(isTooMuch(failure)).toBe(true);
    expect(
      await db.query('SELECT @@in_transaction AS open, @@wait_timeout = @@global.wait_timeout AS patient'),
    ).toEqual([{ open: 0, patient: 1 }]);
    await other.query('ROLLBACK');
    expect(await tables.deliver(changes, ...marks, 'deliver')).toBe(true);
  });

  it('a connection that is killed in MariaDB, and a server that returns, cost nothing', async () => {
    await maria.client.query("CREATE USER sink@'127.0.0.1'; GRANT ALL ON shop.* TO sink@'127.0.0.1'");
    const { harness, target: store } = await feeding(target());
    await harness.resume(configAt(store.url.replace('root@', 'sink@')), books(20, 1));
    await maria.client.query('KILL USER sink');
    await harness.deliver(books(20, 2));
    await store.interrupt();
    harness.change(books(20, 3));
    await harness.failed();
    await store.restore();
    await harness.caughtUp();
    const [{ count } = {}] = await rows(`SELECT count(*) AS count FROM ${store.table} WHERE body LIKE '%"version":3%'`);
    expect(count).toBe(20);
  });

  it.each(['DELETE FROM %', 'TRUNCATE %', "DELETE FROM catchword_cursor WHERE table_name = 'shop.%'"])(
    'a table of MariaDB is filled again after %j',
    async (change) => {
      const { harness, target: store } = await fed(target(), 5);
      await maria.client.query(change.replace('%', store.table));
      await harness.deliver([{ vbid: 'P2', body: '{"vbid":"P2","version":9}' }]);
      await until('all are there', async () => (await store.read()).products.size === 5);
      expect((await store.read()).products).toEqual(harness.living());
    },
  );

  it('a sink notices that another process moved its cursor in MariaDB', async () => {
    const { harness, target: store } = await fed(target(), 5);
    await maria.client.query(`UPDATE catchword_cursor SET late = 7 WHERE table_name = 'shop.${store.table}'`);
    harness.change(books(5, 2));
    await harness.failed();
    expect(harness.sink().error).toContain(`another process moved the cursor of ${store.table}`);
  });

  it('a table of MariaDB that catchword did not make is rejected, unless its comment says so', async () => {
    const { harness, config, target: store } = await feeding(target());
    const { client } = maria;
    await client.query(`CREATE TABLE ${store.table} (id int)`);
    await harness.failed(config);
    expect(harness.sink().error).toMatch(/catchword did not create table shop\.\S+: it lacks the columns vbid, title/);
    const other = await fed(target(), 2);
    await other.harness.stop();
    await client.query(`DROP TABLE ${store.table}; RENAME TABLE ${other.target.table} TO ${store.table};
      ALTER TABLE ${store.table} COMMENT ''; DELETE FROM catchword_cursor`);
    await until('it is rejected', () => /rows of another application/.test(harness.sink().error ?? ''));
    await client.query(`ALTER TABLE ${store.table} MODIFY vbid varchar(255) COLLATE utf8mb4_bin,
      COMMENT 'catchword made this table: it replaces and removes rows'`);
    await until('it is rejected', () => /takes some keys for the same one/.test(harness.sink().error ?? ''));
  });

  it('the check of MariaDB creates nothing, and changes nothing in a table in use', async () => {
    const check = async (url: string) => {
      const sink = await configAt(url).make();
      try {
        return await sink.check(AbortSignal.timeout(30_000));
      } finally {
        await sink.close();
      }
    };
    const { url, remove } = await target();
    onTestFinished(remove);
    expect(await check(url.replace(/table=\w+/, 'table=fresh'))).toBe(
      'table fresh can be created (only the right to it was checked, because MySQL cannot undo CREATE TABLE)',
    );
    expect(await rows("SHOW TABLES LIKE 'fresh%'")).toEqual([]);
    await expect(check(url.replace(/table=\w+/, 'table=nowhere.fresh'))).rejects.toThrow("Unknown database 'nowhere'");
    const { harness, target: store } = await fed(target(), 3);
    const state = async () => [
      await rows(`SELECT * FROM ${store.table}`),
      await rows('SELECT * FROM catchword_cursor'),
    ];
    const before = await state();
    expect(await check(store.url)).toMatch(/^rows of table \S+ can be written and removed \(tried in a transaction/);
    expect(await state()).toEqual(before);
    await maria.client.query(
      "CREATE USER shop@'127.0.0.1' IDENTIFIED BY 'Wkv8642'; GRANT SELECT ON shop.* TO shop@'127.0.0.1'",
    );
    const poor = store.url.replace('root@', 'shop:Wkv8642@').replace(store.table, 'poor');
    const failure = await check(poor).catch((error: Error) => error.message);
    expect(failure).toMatch(
      /may not create tables\. Run as their owner:\nCREATE DATABASE IF NOT EXISTS `shop`;\nCREATE TABLE `shop`.`poor`/,
    );
    const statements = String(failure).split('owner:\n')[1] ?? '';
    await maria.client.query(statements);
    expect(await check(poor)).toMatch(/^rows of table poor can be written/);
    const wrong = await check(poor.replace('Wkv8642', 'Wrong8642')).catch((error: Error) => error.message);
    expect(wrong).toMatch(
      /^MySQL: Access denied for user 'shop'@'127\.0\.0\.1' \(using password: YES\) \(1045\)\. If the server demands TLS, /,
    );
    await harness.deliver(books(2, 2));
  });

  it('a sink reaches MariaDB at its socket', async () => {
    const { harness, target: store } = await feeding(target());
    const socket = encodeURIComponent(join(maria.server.directory, 'socket'));
    await harness.resume(configAt(`mysql://root@localhost/shop?table=${store.table}&socket=${socket}`), books(3, 1));
    expect((await store.read()).products).toEqual(harness.living());
  });
});
