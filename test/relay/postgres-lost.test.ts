import { Writable } from 'node:stream';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { until, type Workbench } from '../../src/relay/contract/harness.ts';
import { postgresAvailable, usePostgres } from '../support/postgres.ts';
import { books, fed, feeding, movable } from './feeding.ts';
import { postgresTarget } from './targets.ts';

const CURSOR = 'catchword_cursor';

/** A log whose lines a test reads. */
function listening() {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write: (line, _encoding, done) => {
      lines.push(JSON.parse(String(line)) as Record<string, unknown>);
      done();
    },
  });
  return { lines, log: pino({ level: 'info' }, stream) };
}

describe.skipIf(!postgresAvailable)('a table of PostgreSQL that lost its rows', () => {
  const postgres = usePostgres();

  function rowsOf(table: string): Promise<number> {
    return postgres.client.query(`SELECT FROM ${table}`).then(
      ({ rowCount }) => rowCount ?? 0,
      () => 0,
    );
  }

  async function isWhole(bench: Workbench, table: string): Promise<void> {
    const { size } = bench.living();
    await until('all rows are there', async () => (await rowsOf(table)) === size);
    await bench.caughtUp();
    const { rows } = await postgres.client.query<{ vbid: string; body: unknown }>(`SELECT vbid, body FROM ${table}`);
    expect(new Map(rows.map(({ vbid, body }) => [vbid, body]))).toEqual(bench.living());
    expect(bench.sink().state).toBe('running');
  }

  const where = (table: string): string => `WHERE table_name = 'public.${table}'`;
  const losses: [string, (table: string) => string][] = [
    ['truncated', (table) => `TRUNCATE ${table}`],
    ['dropped', (table) => `DROP TABLE ${table}`],
    ['deleted from, row by row', (table) => `DELETE FROM ${table}`],
    ['dropped together with its cursor', (table) => `DROP TABLE ${table}; DELETE FROM ${CURSOR} ${where(table)}`],
    ['robbed of its cursor', (table) => `DELETE FROM ${CURSOR} ${where(table)}`],
    [
      'put back to an earlier state with its cursor',
      (table) => `DELETE FROM ${table} WHERE seq > 10; UPDATE ${CURSOR} SET cursor = 10, at = 0 ${where(table)}`,
    ],
  ];
  it.each(losses)('is filled again when it is %s while it is fed', async (_, sql) => {
    const { bench, target } = await fed(postgresTarget(postgres.port), 30);
    await postgres.client.query(sql(target.table));
    bench.change(books(1, 2));
    await isWhole(bench, target.table);
  });

  it.each(losses)('is filled again when it is %s while nothing changes', async (_, sql) => {
    const { bench, target, config } = await feeding(postgresTarget(postgres.port));
    const { clock, advance } = movable();
    bench.change(books(30, 1));
    bench.start(config, { clock });
    await bench.caughtUp();
    await postgres.client.query(sql(target.table));
    const seen = bench.sink().delivered;
    advance(299_000);
    advance(2_000);
    await until('it is sent again', () => bench.sink().delivered > seen);
    await isWhole(bench, target.table);
  });

  it.each(losses)('is filled again when it is %s while nothing feeds it', async (_, sql) => {
    const { bench, target, config } = await fed(postgresTarget(postgres.port), 30);
    await bench.stop();
    await postgres.client.query(sql(target.table));
    bench.start(config);
    await until('it is sent again', () => bench.sink().delivered > 30);
    await isWhole(bench, target.table);
  });

  it('says so in the log, with the reason', async () => {
    const { bench, target, config } = await feeding(postgresTarget(postgres.port));
    const { lines, log } = listening();
    bench.change(books(5, 1));
    bench.start(config, { log });
    await bench.caughtUp();
    await postgres.client.query(`TRUNCATE ${target.table}`);
    bench.change(books(1, 2));
    await isWhole(bench, target.table);
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 50,
        code: 'SINK_REFILLED',
        sink: 'contract',
        confirmed: 5,
        reason: `table ${target.table} is empty, and had rows`,
        msg: 'every product is sent to the store again',
      }),
    );
  });

  it('gets each product once, as it is now', async () => {
    const { bench, target } = await fed(postgresTarget(postgres.port), 10);
    for (let version = 2; version <= 5; version++) bench.change(books(10, version));
    await bench.caughtUp();
    await postgres.client.query(`TRUNCATE ${target.table}`);
    bench.change(books(1, 6));
    await isWhole(bench, target.table);
    expect(bench.sink().delivered).toBe(50 + 10);
  });

  it('is left alone when all its products were removed, at each opening', async () => {
    const { bench, target, config } = await fed(postgresTarget(postgres.port, '&removals=delete'), 5);
    bench.change(books(5, 1).map(({ vbid }) => ({ vbid, body: null })));
    await bench.caughtUp();
    expect(await rowsOf(target.table)).toBe(0);
    const { lines, log } = listening();
    for (let round = 0; round < 2; round++) {
      await bench.stop();
      bench.start(config, { log });
      await until('it is open', () => lines.filter(({ msg }) => msg === 'sink is open').length > round);
    }
    bench.change([{ vbid: 'P9', body: '{"vbid":"P9"}' }]);
    await bench.caughtUp();
    expect(bench.sink().delivered).toBe(11);
    expect(lines.filter(({ level }) => Number(level) > 30)).toEqual([]);
  });

  it('is left alone when a fill had nothing to deliver, at each opening', async () => {
    const { bench, target, config } = await fed(postgresTarget(postgres.port), 5);
    bench.change(books(5, 1).map(({ vbid }) => ({ vbid, body: null })));
    await bench.caughtUp();
    await postgres.client.query(`TRUNCATE ${target.table}`);
    await bench.stop();
    const { lines, log } = listening();
    const opened = (count: number) =>
      until('it is open', () => lines.filter(({ msg }) => msg === 'sink is open').length === count);
    bench.start(config, { log });
    await opened(1);
    const at = `SELECT cursor FROM ${CURSOR} ${where(target.table)}`;
    await until('the fill has ended', async () => (await postgres.client.query(at)).rows[0]?.cursor === '10');
    await bench.stop();
    bench.start(config, { log });
    await opened(2);
    expect(lines.filter(({ level }) => level === 50)).toHaveLength(1);
  });
});
