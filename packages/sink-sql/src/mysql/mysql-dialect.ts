import { numericText } from '../postgres/jsonb-text.ts';
import type { Dialect } from '../sql/sql-digests.ts';
import type { MysqlConnection } from './mysql-connection.ts';
import { mysqlLayout } from './mysql-layout.ts';
import { WRITTEN } from './mysql-table.ts';

/** A number as both servers print a `double`: in digits from 1e-15 up to 1e15, else with an exponent that has no plus. */
export function doubleText(value: number): string {
  const [digits = '', exponent = ''] = value.toExponential().split('e');
  const power = Number(exponent);
  return power >= 15 || power < -15 ? `${digits}e${power}` : numericText(String(value));
}

/** How MySQL and MariaDB print values, and calculate with texts. */
export function mysqlDialect(db: MysqlConnection): Dialect {
  const layout = mysqlLayout(db.isMariaDb);
  const { changed_at: time } = layout.living;
  return {
    layout,
    textSql: (column) => `convert(${column} USING utf8mb4)`,
    textOf: (value, type) => {
      if (type === time) return WRITTEN.time(Number(value));
      return type === 'double' ? doubleText(Number(value)) : String(typeof value === 'boolean' ? Number(value) : value);
    },
    md5Sql: (text) => `md5(${text})`,
    numberSql: (hex, digits) => `CAST(conv(left(${hex}, ${digits}), 16, 10) AS unsigned)`,
  };
}
