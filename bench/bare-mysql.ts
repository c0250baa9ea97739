import { PART_NAMES } from '@catchword/catalog/fields';
import { createConnectionLife } from '@catchword/sink-kit/connection-scope';
import type { SinkEvent } from '@catchword/sink-kit/sink';
import { connect, type TextRow } from '@catchword/sink-sql/mysql/mysql-connection';
import { ensureLayout, mysqlLayout, resolveNames } from '@catchword/sink-sql/mysql/mysql-layout';
import { WRITTEN } from '@catchword/sink-sql/mysql/mysql-table';
import { rowsOf } from '@catchword/sink-sql/sql/event-rows';
import { createConnection } from 'mariadb';

interface Product {
  readonly vbid: string;
  readonly body: string;
  readonly seq: number;
}

/**
 * Creates the tables of a sink, with its indexes, and the rows that a sink would write.
 * @returns a function that inserts them by the driver's own `batch`, a transaction for each chunk
 */
export async function prepareBatches(port: number, chunks: readonly (readonly Product[])[]) {
  const login = { host: '127.0.0.1', port, user: 'root', database: 'shop' };
  const life = createConnectionLife();
  const db = await connect(login, life);
  const names = await resolveNames(db, 'floor');
  for (const name of [names.table, ...PART_NAMES.map((part) => names[part])])
    await db.query(`DROP TABLE IF EXISTS ${name}`);
  await ensureLayout(db, names);
  life.end();
  const driver = await createConnection(login);
  const { products, parts } = mysqlLayout(true);
  const insert = (table: string, columns: readonly string[]): string =>
    `INSERT INTO ${table} (${columns.map((name) => `\`${name}\``).join()}) VALUES (${columns.map(() => '?').join()})`;
  const ofProducts = insert(names.table, ['vbid', ...Object.keys(products), 'body', 'seq', 'changed_at', 'fill']);
  const textsOf = (rows: readonly TextRow[], ...more: string[]) => rows.map(({ texts }) => [...texts, ...more]);
  const batches = chunks.map((chunk) => {
    const events = chunk.map((one): SinkEvent => ({ ...one, id: '', at: 0, op: 'created', text: '' }));
    const rows = rowsOf(events, WRITTEN);
    return {
      products: textsOf(rows.living, '1'),
      parts: PART_NAMES.map((part) => [part, textsOf(rows.parts[part])] as const),
    };
  });
  return {
    feed: async (): Promise<void> => {
      for (const batch of batches) {
        await driver.beginTransaction();
        await driver.batch(ofProducts, batch.products);
        for (const [part, rows] of batch.parts) {
          if (rows.length > 0) await driver.batch(insert(names[part], Object.keys(parts[part])), rows);
        }
        await driver.commit();
      }
    },
    end: () => driver.end(),
  };
}
