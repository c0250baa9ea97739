import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { describe, expect, it } from 'vitest';
import { until } from '../../../src/contract/harness.ts';
import { books, fed, feeding, movable, type TestMirror } from '../../../test/relay/feeding.ts';
import { readableLog } from '../../../test/relay/readable-log.ts';
import { postgresTarget } from '../../../test/relay/targets.ts';

const CURSOR = 'catchword_cursor';

describe.skipIf(!postgresAvailable)('a table of PostgreSQL that lost its rows', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  function rowsOf(table: string): Promise<number> {
    return postgres.client.query(`SELECT FROM ${table}`).then(
      ({ rowCount }) => rowCount ?? 0,
      () => 0,
    );
  }

  async function expectComplete(harness: TestMirror, table: string): Promise<void> {
    const { size } = harness.living();
    await until('all rows are there', async () => (await rowsOf(table)) === size);
    await harness.caughtUp();
    const { rows } = await postgres.client.query<{ vbid: string; body: unknown }>(`SELECT vbid, body FROM ${table}`);
    expect(new Map(rows.map(({ vbid, body }) => [vbid, body]))).toEqual(harness.living());
    expect(harness.sink().state).toBe('running');
  }

  /** A sink that has got 30 products; a test moves the clock of its relay. */
  async function watched() {
    const scene = await feeding(postgresTarget(postgres.port));
    const { clock, advance } = movable();
    scene.harness.change(books(30, 1));
    scene.harness.start(scene.config, { clock });
    await scene.harness.caughtUp();
    return { ...scene, advance };
  }
  type Scene = Awaited<ReturnType<typeof watched>>;

  const where = (table: string): string => `WHERE table_name = 'public.${table}'`;
  const losses: [string, (table: string) => string][] = [
    ['truncated', (table) => `TRUNCATE ${table}`],
    ['dropped', (table) => `DROP TABLE ${table}`],
    ['emptied by DELETE', (table) => `DELETE FROM ${table}`],
    ['dropped together with its cursor', (table) => `DROP TABLE ${table}; DELETE FROM ${CURSOR} ${where(table)}`],
    ['without its cursor row', (table) => `DELETE FROM ${CURSOR} ${where(table)}`],
    [
      'restored to an earlier state with its cursor',
      (table) => `DELETE FROM ${table} WHERE seq > 10; UPDATE ${CURSOR} SET cursor = 10, at = 0 ${where(table)}`,
    ],
  ];
  /** Loses the rows at some moment, and continues. */
  const moments: Record<string, (scene: Scene, lose: () => Promise<unknown>) => Promise<unknown>> = {
    'during delivery': async ({ harness }, lose) => {
      await lose();
      harness.change(books(1, 2));
    },
    'while nothing changes': async ({ advance }, lose) => {
      await lose();
      advance(301_000);
    },
    'while the relay is stopped': async ({ harness, config }, lose) => {
      await harness.stop();
      await lose();
      harness.start(config);
    },
  };
  const cases = Object.keys(moments).flatMap((moment) => losses.map(([loss, sql]) => [loss, moment, sql] as const));

  it.each(cases)('a table is refilled when it is %s %s', async (_, moment, sql) => {
    const scene = await watched();
    const { harness, target } = scene;
    const seen = harness.sink().delivered;
    await moments[moment]?.(scene, () => postgres.client.query(sql(target.table)));
    await until('the products are delivered again', () => harness.sink().delivered > seen);
    await expectComplete(harness, target.table);
  });

  it('the log says why a table is refilled', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    const { lines, log } = readableLog();
    harness.change(books(5, 1));
    harness.start(config, { log });
    await harness.caughtUp();
    await postgres.client.query(`TRUNCATE ${target.table}`);
    harness.change(books(1, 2));
    await expectComplete(harness, target.table);
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 50,
        code: 'SINK_REFILLED',
        sink: 'contract',
        confirmed: 5,
        reason: `table ${target.table} is empty but had rows`,
        msg: 'every product is sent to the store again',
      }),
    );
  });

  it('a table that lost its rows gets each current product once', async () => {
    const { harness, target } = await fed(postgresTarget(postgres.port), 10);
    for (let version = 2; version <= 5; version++) await harness.deliver(books(10, version));
    await postgres.client.query(`TRUNCATE ${target.table}`);
    harness.change(books(1, 6));
    await expectComplete(harness, target.table);
    expect(harness.sink().delivered).toBe(50 + 10);
  });

  it('a table is not refilled when all its products were removed', async () => {
    const { harness, target, config } = await fed(postgresTarget(postgres.port, '&removals=delete'), 5);
    await harness.deliver(books(5, 1).map(({ vbid }) => ({ vbid, body: null })));
    expect(await rowsOf(target.table)).toBe(0);
    const { lines, log } = readableLog();
    for (let round = 0; round < 2; round++) {
      await harness.stop();
      harness.start(config, { log });
      await until('it is open', () => lines.filter(({ msg }) => msg === 'sink is open').length > round);
    }
    await harness.deliver([{ vbid: 'P9', body: '{"vbid":"P9"}' }]);
    expect(harness.sink().delivered).toBe(11);
    expect(lines.filter(({ level }) => Number(level) > 30)).toEqual([]);
  });

  it('a table is refilled only once when a fill had nothing to deliver', async () => {
    const { harness, target, config } = await fed(postgresTarget(postgres.port), 5);
    await harness.deliver(books(5, 1).map(({ vbid }) => ({ vbid, body: null })));
    await postgres.client.query(`TRUNCATE ${target.table}`);
    await harness.stop();
    const { lines, log } = readableLog();
    const opened = (count: number) =>
      until('it is open', () => lines.filter(({ msg }) => msg === 'sink is open').length === count);
    harness.start(config, { log });
    await opened(1);
    const at = `SELECT cursor FROM ${CURSOR} ${where(target.table)}`;
    await until('the fill has ended', async () => (await postgres.client.query(at)).rows[0]?.cursor === '10');
    await harness.stop();
    harness.start(config, { log });
    await opened(2);
    expect(lines.filter(({ level }) => level === 50)).toHaveLength(1);
  });
});
