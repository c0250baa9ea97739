import { describe, expect, it } from 'vitest';
import { until } from '../../src/relay/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { postgresAvailable, usePostgres } from '../support/postgres.ts';
import { books, fed, feeding } from './feeding.ts';
import { postgresTarget } from './targets.ts';

describe.skipIf(!postgresAvailable)('postgres', () => {
  const postgres = usePostgres();

  it('keeps typed columns, the body as JSON, and the cursor beside the table', async () => {
    const { bench, target, config } = await feeding(postgresTarget(postgres.port));
    const body = JSON.stringify({
      vbid: 'V1',
      title: 'A "Title" \\ {1,2}',
      kind: { name: 'book' },
      format: 'epub',
      publisher: { name: 'Ünï' },
      identifiers: {
        print_isbn_canonical: 0x8e5156d0802,
        eisbn_canonical: '9780000000019',
      },
      price: 10.5,
    });
    bench.change([{ vbid: 'V1', body }, ...books(2, 1)]);
    bench.start(config);
    await bench.caughtUp();
    const { rows } = await postgres.client.query(`SELECT * FROM ${target.table} WHERE vbid = 'V1'`);
    expect(rows).toEqual([
      {
        vbid: 'V1',
        title: 'A "Title" \\ {1,2}',
        kind: 'book',
        format: 'epub',
        publisher: 'Ünï',
        print_isbn: '9780000000002',
        e_isbn: '9780000000019',
        body: JSON.parse(body),
        seq: '1',
        removed_at: null,
        changed_at: new Date(bench.events()[0]?.at ?? 0),
        ...{
          distributable: true,
          subtitle: null,
          contributors: null,
          language: null,
          edition: null,
          cover_url: null,
        },
        ...{
          on_sale_date: null,
          off_sale_date: null,
          fill: expect.any(String),
        },
      },
    ]);
    const { rows: cursors } = await postgres.client.query(`SELECT * FROM catchword_cursor WHERE table_name = $1`, [
      `public.${target.table}`,
    ]);
    expect(cursors).toEqual([
      {
        table_name: `public.${target.table}`,
        incarnation: bench.store.incarnation,
        generation: '1',
        cursor: '3',
        at: String(bench.events()[2]?.at),
        late: '0',
        fill: rows[0].fill,
        fill_ended: true,
        has_rows: true,
        layout: 2,
      },
    ]);
  });

  it('keeps what is removed as a tombstone, or deletes it', async () => {
    for (const [options, left] of [
      ['&removals=delete', []],
      ['', [{ vbid: 'P0', seq: '2', gone: true }]],
    ] as const) {
      const { bench, target, config } = await feeding(postgresTarget(postgres.port, options));
      bench.start(config);
      bench.change(books(1, 1));
      await bench.caughtUp();
      bench.change([{ vbid: 'P0', body: null }]);
      await bench.caughtUp();
      const { rows } = await postgres.client.query(
        `SELECT vbid, seq, removed_at IS NOT NULL AS gone FROM ${target.table}`,
      );
      expect(rows).toEqual(left);
      bench.change(books(1, 2));
      await bench.caughtUp();
      expect((await target.read()).products).toEqual(new Map([['P0', { vbid: 'P0', version: 2 }]]));
    }
  });

  it('parks what PostgreSQL cannot hold, and nothing else', async () => {
    const { bench, target, config } = await feeding(postgresTarget(postgres.port));
    bench.change(books(40, 1));
    bench.change([{ vbid: 'NUL', body: '{"vbid":"NUL","title":"a\\u0000b"}' }]);
    bench.change(books(40, 2));
    bench.start(config);
    await bench.caughtUp();
    expect(bench.store.sinks.parked(bench.sink().id)).toMatchObject([{ vbid: 'NUL', state: 'refused' }]);
    expect([...(await target.read()).products]).toHaveLength(40);
  });

  it('fills a table anew that was dropped', async () => {
    const { bench, target, config } = await fed(postgresTarget(postgres.port), 30);
    await bench.stop();
    await postgres.client.query(`DROP TABLE ${target.table}`);
    bench.start(config);
    bench.change(books(1, 2));
    await until('all are there', async () => (await target.read().catch(() => null))?.products.size === 30);
  });

  it('fills a table anew that was emptied', async () => {
    const { bench, target, config } = await fed(postgresTarget(postgres.port), 30);
    await bench.stop();
    await postgres.client.query(`TRUNCATE ${target.table}`);
    bench.start(config);
    bench.change(books(1, 2));
    await until('all are there', async () => (await target.read()).products.size === 30);
    await bench.caughtUp();
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('goes on with a table however the settings spell it', async () => {
    const { bench, target, config } = await fed(postgresTarget(postgres.port), 5);
    await bench.stop();
    bench.change([{ vbid: 'P3', body: null }]);
    const url = target.url.replace('table=', 'table=public.');
    bench.start(sinkConfig({ env: 'SINK', name: config.name, url, secret: undefined }));
    await bench.caughtUp();
    expect((await target.read()).products).toEqual(bench.living());
  });

  it('names what a table of somebody else lacks, and continues when it is gone', async () => {
    const { bench, target, config } = await feeding(postgresTarget(postgres.port));
    await postgres.client.query(`CREATE TABLE ${target.table} (vbid integer)`);
    bench.change(books(3, 1));
    bench.start(config);
    await until('the failure is noted', () => bench.store.sinks.get('contract')?.error != null);
    expect(bench.sink()).toMatchObject({
      state: 'running',
      error: expect.stringMatching(/^PostgreSQL: table \S+ was not made by catchword: it has no column title, /),
    });
    await postgres.client.query(`DROP TABLE ${target.table}`);
    await bench.caughtUp();
    expect((await target.read()).products).toEqual(bench.living());
  });
});
