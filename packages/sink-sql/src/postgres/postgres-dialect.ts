import { SinkError } from '@catchword/sink-kit/sink';
import type { Dialect } from '../sql/sql-digests.ts';
import { jsonbText, numericText } from './jsonb-text.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { LAYOUT } from './postgres-layout.ts';

/** How PostgreSQL prints values, and calculates with texts. */
export function postgresDialect(db: PostgresConnection): Dialect {
  return {
    layout: LAYOUT,
    beforeDeep: async () => {
      const [{ server_encoding: encoding = '' } = {}] = await db.query<{ server_encoding?: string }>(
        'SHOW server_encoding',
      );
      if (['UTF8', 'SQL_ASCII'].includes(encoding)) return;
      throw new SinkError(
        'misconfigured',
        `PostgreSQL: jsonb has another order of keys in ${encoding}; compare without --deep`,
      );
    },
    textSql: (column, type) =>
      `${type === LAYOUT.living.changed_at ? `(round(extract(epoch FROM ${column}) * 1000)::bigint)` : column}::text`,
    textOf: (value, type) => {
      if (type === 'numeric') return numericText(String(value));
      return type === 'jsonb' ? jsonbText(String(value)) : String(value);
    },
    md5Sql: (text) => `md5(convert_to(${text}, 'UTF8'))`,
    numberSql: (hex, digits) => `('x' || substr(${hex}, 1, ${digits}))::bit(${4 * digits})::bigint`,
  };
}
