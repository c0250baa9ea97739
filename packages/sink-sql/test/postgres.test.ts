import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { describe, expect, it } from 'vitest';
import { smallBatches, until, wrapSink } from '../../../src/contract/harness.ts';
import { books, configAt, fed, fedBefore, feederAt, feeding, NEVER } from '../../../test/relay/feeding.ts';
import { postgresTarget } from '../../../test/relay/targets.ts';

describe.skipIf(!postgresAvailable)('postgres', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  it('a PostgreSQL without TLS is misconfigured if the address demands TLS', async () => {
    const sink = await configAt(`postgres://postgres@127.0.0.1:${postgres.port}/postgres?sslmode=require`).make();
    await expect(sink.check(NEVER)).rejects.toMatchObject({
      failure: 'misconfigured',
      message: 'PostgreSQL: The server does not support SSL connections',
    });
  });

  it('stores typed columns, the body as JSON, and the cursor', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    const body = JSON.stringify({
      vbid: 'V1',
      title: 'A "Title" \\ {1,2}',
      kind: { name: 'book' },
      format: 'epub',
      publisher: { name: 'Ünï' },
      identifiers: { print_isbn_canonical: 9780000000002, eisbn_canonical: '9780000000019' },
      price: 10.5,
    });
    await harness.resume(config, [{ vbid: 'V1', body }, ...books(2, 1)]);
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
        changed_at: new Date(harness.events()[0]?.at ?? 0),
        distributable: true,
        subtitle: null,
        contributors: null,
        language: null,
        edition: null,
        cover_url: null,
        on_sale_date: null,
        off_sale_date: null,
        sales_rights: null,
        exclude_sales_rights: null,
      },
    ]);
    const { rows: cursors } = await postgres.client.query(`SELECT * FROM catchword_cursor WHERE table_name = $1`, [
      `public.${target.table}`,
    ]);
    expect(cursors).toEqual([
      {
        table_name: `public.${target.table}`,
        incarnation: feederAt(harness),
        generation: '1',
        cursor: '3',
        at: String(harness.events()[2]?.at),
        late: '0',
        has_rows: true,
      },
    ]);
  });

  it('stores texts as they are', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    const titles = [
      'NULL',
      '{}',
      '"',
      '\\',
      '\\"\\',
      ' ',
      ',',
      "'",
      'a\tb\r\n',
      'Ünï 漢字 🙂',
      'x'.repeat(100_000),
      12.5,
      // A table has no text of a number beyond 15 digits.
      1e21,
    ];
    const bodies = titles.map((title, index) => ({
      vbid: `V${index}`,
      title,
      publisher: index % 2 === 0 ? 'P' : null,
    }));
    const versions = bodies.map((body) => ({ vbid: body.vbid, body: JSON.stringify(body) }));
    // An empty table, and one with the rows.
    await harness.resume(config, versions);
    harness.change([{ vbid: 'V0', body: null }]);
    harness.replay(0, true);
    await harness.deliver(versions.slice(0, 1));
    const { rows } = await postgres.client.query(
      `SELECT vbid, title, publisher, body FROM ${target.table} ORDER BY seq`,
    );
    const expected = bodies.map((body) => ({ ...body, title: body.title === 1e21 ? null : String(body.title), body }));
    expect(rows).toEqual([...expected.slice(1), ...expected.slice(0, 1)]);
  });

  it('keeps removed products as tombstones, or deletes them', async () => {
    for (const [options, left] of [
      ['&removals=delete', []],
      ['', [{ vbid: 'P0', seq: '2', gone: true }]],
    ] as const) {
      const { harness, target } = await fed(postgresTarget(postgres.port, options), 1);
      await harness.deliver([{ vbid: 'P0', body: null }]);
      const { rows } = await postgres.client.query(
        `SELECT vbid, seq, removed_at IS NOT NULL AS gone FROM ${target.table}`,
      );
      expect(rows).toEqual(left);
      await harness.deliver(books(1, 2));
      expect((await target.read()).products).toEqual(new Map([['P0', { vbid: 'P0', version: 2 }]]));
    }
  });

  it('stores more products than one statement writes, and parks the only one that it cannot store', {
    tags: ['slow'],
  }, async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    harness.change(books(21_000, 1));
    harness.change([{ vbid: 'P15000', body: '{"vbid":"P15000","title":"a\\u0000b"}' }]);
    const storable = () => new Map([...harness.living()].filter(([vbid]) => vbid !== 'P15000'));
    await harness.resume(config, books(12_000, 2));
    expect(harness.parked()).toMatchObject([{ vbid: 'P15000', state: 'refused' }]);
    expect((await target.read()).products).toEqual(storable());
    await harness.deliver(books(14_000, 3));
    expect((await target.read()).products).toEqual(storable());
  });

  it('parks an event although the server reports all parameters of a statement that failed', {
    tags: ['slow'],
  }, async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    const padded = books(6_000, 1).map(({ vbid }) => ({
      vbid,
      body: JSON.stringify({ vbid, title: 'x'.repeat(400) }),
    }));
    await postgres.client.query('ALTER SYSTEM SET log_parameter_max_length_on_error = -1');
    await postgres.client.query('SELECT pg_reload_conf()');
    try {
      harness.change([...padded, { vbid: 'NUL', body: '{"vbid":"NUL","zz":"a\\u0000b"}' }]);
      await harness.resume(config);
    } finally {
      await postgres.client.query('ALTER SYSTEM RESET log_parameter_max_length_on_error');
      await postgres.client.query('SELECT pg_reload_conf()');
    }
    expect(harness.parked()).toMatchObject([{ vbid: 'NUL', state: 'refused' }]);
    expect([...(await target.read()).products]).toHaveLength(6_000);
  });

  it('parks an event that a trigger rejects', async () => {
    const { harness, target, config } = await fed(postgresTarget(postgres.port), 5);
    await postgres.client.query(`
      CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF new.vbid = 'P7' THEN RAISE EXCEPTION 'not for sale'; END IF; RETURN new; END $$;
      CREATE TRIGGER reject BEFORE INSERT ON ${target.table} FOR EACH ROW EXECUTE FUNCTION reject()`);
    await harness.resume(config, books(40, 2));
    const reason = 'PostgreSQL: not for sale (P0001)';
    expect(harness.parked()).toMatchObject([{ vbid: 'P7', state: 'refused', reason }]);
    expect([...(await target.read()).products]).toHaveLength(39);
  });

  it('gets smaller batches while a lock holds them up', async () => {
    const { harness, target } = await fedBefore(postgresTarget(postgres.port), 100);
    const url = new URL(target.url);
    url.searchParams.set('lock_timeout', '100');
    await postgres.client.query(`BEGIN; SELECT FROM ${target.table} WHERE vbid = 'P60' FOR UPDATE`);
    harness.change(books(100, 2));
    harness.start(configAt(url.href));
    await until('a smaller batch fails, too', () => harness.sink().error?.includes('25 events instead of 50') ?? false);
    expect(harness.sink().error).toContain('(55P03)');
    await postgres.client.query('COMMIT');
    await harness.caughtUp();
    expect((await target.read()).products).toEqual(harness.living());
  });

  it('stores each version after a refused event, although other batches were prepared', async () => {
    const { harness, target, config } = await feeding(postgresTarget(postgres.port));
    harness.change([...books(30, 1), { vbid: 'NUL', body: '{"vbid":"NUL","title":"a\\u0000b"}' }, ...books(40, 2)]);
    await harness.resume(wrapSink(config, smallBatches(8)));
    const storable = [...harness.living()].filter(([vbid]) => vbid !== 'NUL');
    expect((await target.read()).products).toEqual(new Map(storable));
  });

  it('recognises a table however the settings spell it', async () => {
    const { harness, target } = await fedBefore(postgresTarget(postgres.port), 5);
    harness.change([{ vbid: 'P3', body: null }]);
    const url = target.url.replace('table=', 'table=public.');
    harness.start(configAt(url));
    await harness.caughtUp();
    expect((await target.read()).products).toEqual(harness.living());
  });
});
