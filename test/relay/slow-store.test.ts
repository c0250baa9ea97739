// @module-tag slow
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { SinkError } from '@catchword/sink-kit/sink';
import { listen } from '@catchword/testing/listen';
import { pgbouncerAvailable, startPgbouncer } from '@catchword/testing/pgbouncer';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { describe, expect, it, onTestFinished } from 'vitest';
import { smallBatches, until, wrapSink } from '../../src/contract/harness.ts';
import { books, configAt, feeding, numbers, type TestMirror } from './feeding.ts';
import { memory } from './memory.ts';
import { readableLog } from './readable-log.ts';
import { jsonlTarget, postgresTarget } from './targets.ts';

const timedOut = (): SinkError => new SinkError('unavailable', 'no answer', { timedOut: true });

/** A file that refuses some events, and does not answer in time if it gets more than `most` events at once. */
async function slowFile(most: number, refused: readonly number[] = []) {
  const scene = await feeding(jsonlTarget());
  const asked: number[] = [];
  const config = wrapSink(scene.config, (sink) => ({
    ...smallBatches(100)(sink),
    deliver: async (events, mark, signal) => {
      asked.push(events.length);
      if (events.length > most) throw timedOut();
      if (events.some(({ seq }) => refused.includes(seq))) throw new SinkError('refused', 'refused by the test');
      await sink.deliver(events, mark, signal);
    },
  }));
  return { ...scene, config, asked };
}

function parked(harness: TestMirror): number[] {
  return harness.store.sinks.parked(harness.sink().id).map(({ seq }) => seq);
}

describe('a store that does not answer in time', () => {
  it('gets fewer events at once until they pass, and more again when it is faster', async () => {
    const { harness, target, config, asked } = await slowFile(10);
    await harness.resume(config, books(200, 1));
    expect(asked.slice(0, 5)).toEqual([100, 50, 25, 12, 6]);
    expect((await target.read()).seqs).toEqual(numbers(1, 200));
    expect(parked(harness)).toEqual([]);
    await harness.stop();
  });

  it('tries larger batches less often, the more often they fail', async () => {
    const { harness, config, asked } = await slowFile(10);
    await harness.resume(config, books(3_000, 1));
    const failed = asked.filter((events) => events > 10).length;
    expect(failed / asked.length).toBeLessThan(0.1);
    // Nearly as many events at once as the store bears.
    expect(3_000 / (asked.length - failed)).toBeGreaterThan(5);
  });

  it('loses no event and parks none if it bears one at a time', async () => {
    const { harness, target, config } = await slowFile(1);
    await harness.resume(config, books(150, 1));
    expect((await target.read()).seqs).toEqual(numbers(1, 150));
    expect(parked(harness)).toEqual([]);
  });

  it('still parks exactly the events that it refuses', async () => {
    const { harness, target, config } = await slowFile(7, [12, 60, 61]);
    await harness.resume(config, books(200, 1));
    expect(parked(harness)).toEqual([12, 60, 61]);
    expect((await target.read()).seqs).toEqual(numbers(1, 200).filter((seq) => ![12, 60, 61].includes(seq)));
  });

  it('each of many refused events is found without full batches', async () => {
    const refused = numbers(1, 400).filter((seq) => seq % 20 === 7);
    const { harness, target, config, asked } = await slowFile(100, refused);
    await harness.resume(config, books(400, 1));
    expect(parked(harness)).toEqual(refused);
    expect((await target.read()).seqs).toHaveLength(380);
    // With full batches, 20 searches would deliver about 200 events each.
    expect(asked.reduce((sum, events) => sum + events, 0)).toBeLessThan(2_000);
    expect(asked.at(-1)).toBeGreaterThan(1);
  });

  it('the error and the log show the size of the next batch', async () => {
    const { harness, config } = await slowFile(0);
    const { lines, log } = readableLog();
    harness.change(books(3, 1));
    harness.start(config, { log });
    await until('a single event was tried', () => harness.sink().error?.includes('single event') ?? false);
    await harness.stop();
    const slow = lines.filter(({ code }) => code === 'SINK_UNAVAILABLE').map(({ reason }) => reason);
    expect(slow.slice(0, 2)).toEqual([
      'no answer. The next batch has at most 1 event instead of 3',
      'no answer. It does not take a single event either',
    ]);
    expect(harness.sink().state).toBe('running');
    expect(parked(harness)).toEqual([]);
  });

  it('other failures make no batch smaller', async () => {
    const store = memory({ events: 50, chars: 1_000_000 });
    const { harness } = await feeding(jsonlTarget());
    harness.start(store.config());
    await harness.deliver(books(50, 1));
    store.isDown = true;
    harness.change(books(100, 2));
    await until('it fails', () => harness.sink().error !== null);
    store.isDown = false;
    await harness.caughtUp();
    expect(store.calls.slice(1)).toMatchObject([{ events: 50 }, { events: 50 }]);
  });

  it('a webhook whose time for an answer grows with the events gets everything', async () => {
    const seen = new Set<number>();
    const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      let body = '';
      for await (const piece of request.setEncoding('utf8')) body += String(piece);
      const events = JSON.parse(body) as { sequence: string }[];
      await delay(events.length * 40);
      if (response.destroyed) return;
      for (const { sequence } of events) seen.add(Number(sequence));
      response.writeHead(204).end();
    };
    const server = createServer((request, response) => void receive(request, response));
    const port = await listen(server);
    const { harness } = await feeding(jsonlTarget());
    const url = `webhook+http://127.0.0.1:${port}/#allow=private&timeout=1`;
    await harness.resume(configAt(url), books(120, 1));
    expect([...seen].sort((a, b) => a - b)).toEqual(numbers(1, 120));
    expect(parked(harness)).toEqual([]);
  });
});

describe.skipIf(!postgresAvailable)('a slow table of PostgreSQL', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  async function slowTable(options: string) {
    const scene = await feeding(postgresTarget(postgres.port, options));
    const { table } = scene.target;
    await scene.harness.resume(scene.config, books(1, 1));
    await scene.harness.stop();
    const slow = (events: string): Promise<unknown> =>
      postgres.client.query(`CREATE OR REPLACE FUNCTION ${table}_wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          PERFORM pg_sleep(0.002); RETURN coalesce(NEW, OLD); END $$;
        CREATE OR REPLACE TRIGGER wait BEFORE ${events} ON ${table} FOR EACH ROW EXECUTE FUNCTION ${table}_wait()`);
    return { ...scene, slow };
  }

  it('with 2 ms a row and a statement_timeout of 1.5 s gets everything', async () => {
    const { harness, target, config, slow } = await slowTable('&statement_timeout=1500');
    await slow('INSERT OR UPDATE');
    await harness.resume(config, books(2_500, 2));
    expect((await target.read()).products).toEqual(harness.living());
    expect(parked(harness)).toEqual([]);
  });

  it.skipIf(!pgbouncerAvailable)(
    'with 2 ms a row and a query_timeout of PgBouncer gets everything',
    { tags: ['stores'] },
    async () => {
      const { harness, target, slow } = await slowTable('');
      const pooler = await startPgbouncer(postgres.port, ['query_timeout = 1']);
      onTestFinished(() => pooler.stop());
      await slow('INSERT OR UPDATE');
      await harness.resume(configAt(target.url.replace(/:\d+\//, `:${pooler.port}/`)), books(2_000, 2));
      expect((await target.read()).products).toEqual(harness.living());
    },
  );

  it.each([
    ['25006', "RAISE EXCEPTION 'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006'"],
    ['57P01', 'PERFORM pg_terminate_backend(pg_backend_pid())'],
    ['53100', "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'"],
    ['42501', "RAISE EXCEPTION 'permission denied' USING ERRCODE = '42501'"],
  ])('a table that fails with %s whatever its size gets the same batch again', async (code, failure) => {
    const { harness, target, config } = await slowTable('');
    const { lines, log } = readableLog();
    await postgres.client.query(`CREATE FUNCTION ${target.table}_fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        ${failure}; RETURN NEW; END $$;
      CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON ${target.table} EXECUTE FUNCTION ${target.table}_fail()`);
    harness.change(books(60, 2));
    harness.start(config, { log });
    const failures = () => lines.filter(({ msg }) => msg === 'sink failed, retrying');
    await until('it fails a few times', () => failures().length > 7);
    for (const { reason } of failures()) {
      expect(reason).toContain(`(${code})`);
      expect(reason).not.toMatch(/next batch|single event/);
    }
    await postgres.client.query(`DROP TRIGGER fail ON ${target.table}`);
    await harness.caughtUp();
    expect(lines.filter(({ msg }) => msg === 'sink gets full batches again')).toEqual([]);
  });

  it.each(['delete', 'tombstone'])('loses the rows that a fill did not deliver, with removals=%s', async (removals) => {
    const { harness, target, config, slow } = await slowTable(`&statement_timeout=400&removals=${removals}`);
    await postgres.client.query(`INSERT INTO ${target.table} (vbid, body, seq, changed_at)
        SELECT 'Q' || n, '{}', 1, now() FROM generate_series(1, 600) AS n`);
    await slow('UPDATE OR DELETE');
    harness.replay(0, true);
    harness.start(config);
    await until('the rows are removed', async () => (await target.read()).products.size === 1);
    await until('the error is cleared', () => harness.sink().error === null);
  });
});
