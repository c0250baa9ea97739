import type pg from 'pg';
import { publishedRow, type Row } from './filters.ts';

/** Reads the fields of a message of pgoutput: https://www.postgresql.org/docs/15/protocol-logicalrep-message-formats.html. */
function reader(bytes: Buffer) {
  let at = 0;
  const take = (size: number): Buffer => {
    at += size;
    return bytes.subarray(at - size, at);
  };
  const int = (size: number): number => take(size).readUIntBE(0, size);
  const word = (): string => {
    const text = bytes.toString('utf8', at, bytes.indexOf(0, at));
    at += Buffer.byteLength(text) + 1;
    return text;
  };
  const char = (): string => String.fromCharCode(int(1));
  const value = (): string | null => (char() === 'n' ? null : take(int(4)).toString('utf8'));
  const tuple = (): (string | null)[] => Array.from({ length: int(2) }, value);
  return { take, int, word, char, tuple };
}

/**
 * Applies the messages of a publication, as a subscriber does.
 * @returns the rows that the subscriber has, by key, at each mark; see `markSql`
 */
export async function publishedBy(client: pg.Client, slot: string, publication: string): Promise<Map<number, Row[]>> {
  const { rows } = await client.query<{ data: Buffer }>(
    `SELECT data FROM pg_logical_slot_peek_binary_changes('${slot}', NULL, NULL,
       'proto_version', '1', 'publication_names', '${publication}', 'messages', 'true')`,
  );
  let columns: string[] = [];
  const table = new Map<string, Row>();
  const marks = new Map<number, Row[]>();
  const rowOf = (values: readonly (string | null)[]): Row =>
    publishedRow(Object.fromEntries(columns.map((column, at) => [column, values[at] ?? null])));
  const keyOf = (row: Row): string => String(row.vbid);
  for (const { data } of rows) {
    const { take, int, word, char, tuple } = reader(data);
    const kind = char();
    if (kind === 'R') {
      take(4);
      word();
      word();
      take(1);
      columns = Array.from({ length: int(2) }, () => {
        take(1);
        const name = word();
        take(8);
        return name;
      });
    } else if (kind === 'M') {
      take(9);
      word();
      const sorted = [...table.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
      marks.set(Number(take(int(4)).toString()), sorted);
    } else if ('IUD'.includes(kind)) {
      take(4);
      let which = char();
      if (which !== 'N') {
        const before = rowOf(tuple());
        // A subscriber that lacks the row ignores the change.
        table.delete(keyOf(before));
        which = kind === 'D' ? '' : char();
      }
      if (which === 'N') {
        const after = rowOf(tuple());
        table.set(keyOf(after), after);
      }
    }
  }
  return marks;
}

/** Notes the number of a change among the messages of every publication. */
export function markSql(seq: number): string {
  return `SELECT pg_logical_emit_message(true, 'seq', '${seq}')`;
}
