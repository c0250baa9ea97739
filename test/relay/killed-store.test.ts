// @module-tag slow

import { connectMariadb, mariadbAvailable, startMariadb } from '@catchword/testing/mariadb';
import { describe, expect, it, onTestFinished } from 'vitest';
import { smallBatches, type Version, wrapSink } from '../../src/contract/harness.ts';
import { configAt, temporaryMirror } from './feeding.ts';

const KILLS = 5;
const PRODUCTS = 2_000;

function version(at: number, round: number): Version {
  const vbid = `P${at}`;
  if (round > 0 && (at + round) % 17 === 0) return { vbid, body: null };
  const prices = ['USD', 'EUR'].map((currency) => ({ currency, value: at + round }));
  const body = {
    vbid,
    title: `Book ${at}, ${round}`,
    contributors: [{ name: 'Zoë' }],
    variants: [{ sku: 's', prices }],
  };
  return { vbid, body: JSON.stringify(body) };
}

describe.skipIf(!mariadbAvailable)('MariaDB that is killed while a relay delivers', { tags: ['stores'] }, () => {
  // 0: the server loses up to a second of commits.
  it.each([0, 1])('has each change once, with innodb_flush_log_at_trx_commit=%i', async (flushes) => {
    const server = await startMariadb({ settings: [`--innodb-flush-log-at-trx-commit=${flushes}`] });
    onTestFinished(() => server.stop());
    const run = async (sql: string): Promise<Record<string, unknown>[]> => {
      const client = await connectMariadb(server.port, { bigIntAsNumber: true, autoJsonMap: false });
      try {
        return await client.query(sql);
      } finally {
        await client.end();
      }
    };
    const harness = temporaryMirror();
    const config = configAt(`mysql://root@127.0.0.1:${server.port}/shop?table=killed`);
    // Several for each round, so that a kill is between them or in one.
    await harness.resume(wrapSink(config, smallBatches(400)), [version(0, 0)]);
    // Fails if a change is applied twice.
    await run('CREATE TABLE arrived (vbid varchar(9), seq bigint, PRIMARY KEY (vbid, seq)) ENGINE = InnoDB');
    for (const change of ['INSERT', 'UPDATE']) {
      await run(`CREATE TRIGGER note_${change} AFTER ${change} ON killed FOR EACH ROW
        INSERT INTO arrived VALUES (NEW.vbid, NEW.seq)`);
    }
    let interrupted = 0;
    for (let round = 0; round < KILLS; round++) {
      harness.change(Array.from({ length: PRODUCTS }, (_, at) => version(at, round)));
      const before = harness.sink().cursor;
      await harness.until('the relay delivers', () => harness.sink().cursor > before);
      await server.kill('SIGKILL');
      if (harness.sink().cursor < harness.store.changes.lastSeq()) interrupted++;
      await server.restart();
    }
    await harness.caughtUp();
    expect(interrupted).toBeGreaterThan(KILLS / 2);
    expect(harness.parked()).toEqual([]);

    const newest = [...new Map(harness.events().map((event) => [event.vbid, event])).values()];
    const rows = await run('SELECT vbid, seq, IF(removed_at IS NULL, body, NULL) AS body FROM killed');
    expect(new Map(rows.map((row) => [row.vbid, row]))).toEqual(
      new Map(newest.map(({ vbid, seq, body }) => [vbid, { vbid, seq, body }])),
    );
    const living = newest.flatMap(({ vbid, body }) =>
      body === null ? [] : [{ vbid, ...(JSON.parse(body) as { title: string }) }],
    );
    const parts =
      await run(`SELECT vbid, title, count(DISTINCT p.id) AS prices, sum(value = substring_index(title, ', ', -1) + substring(vbid, 2)) AS equal,
      (SELECT count(*) FROM killed_contributors AS c WHERE c.vbid = killed.vbid) AS people
      FROM killed JOIN killed_prices AS p USING (vbid) GROUP BY vbid`);
    expect(new Map(parts.map((row) => [row.vbid, { ...row, equal: Number(row.equal) }]))).toEqual(
      new Map(living.map(({ vbid, title }) => [vbid, { vbid, title, prices: 2, equal: 2, people: 1 }])),
    );
  });
});
