import type { KnownProducts, Neighbours } from '@catchword/catalog/unchanged-page';
import { createQueries } from '../schema/queries.ts';
import { openSqlite } from '../schema/statements.ts';
import { createReadTransaction } from '../schema/transaction.ts';
import { LAST_SEQ } from './changes.ts';

/** Numbers as a JSON array, which costs less to read than rows. */
function numbers(text: string | null): readonly number[] {
  return text === null ? [] : (JSON.parse(text) as number[]);
}

export type KnownProductsFile = ReturnType<typeof openKnownProducts>;

/** Opens a mirror, which `openStore` has checked, only to compare pages with it. Loads little: its thread starts quickly. */
export function openKnownProducts(path: string) {
  const sqlite = openSqlite(path, { readonly: true, fileMustExist: true });
  const transact = createReadTransaction(sqlite);
  const { tuple, number, value } = createQueries(sqlite);
  const lastSeq = number(`SELECT ${LAST_SEQ}`);
  const find = number<[{ vbid: string; body: Uint8Array }]>(
    `SELECT CASE WHEN body = CAST(:body AS TEXT) AND removed_at IS NULL THEN id ELSE -id END
     FROM products WHERE vbid = :vbid`,
  );
  // `+ 0`, because SQLite prepares a statement again at each call if a parameter alone is its limit.
  const after = tuple<[id: number, limit: number], [string, string, Buffer | null, string | null]>(
    `SELECT json_group_array(id), json_group_array(octet_length(body)), CAST(group_concat(body, ',') AS BLOB),
       json_group_array(id) FILTER (WHERE withdrawn)
     FROM (SELECT id, body, withdrawn FROM products WHERE id > ? AND removed_at IS NULL ORDER BY id LIMIT ? + 0)`,
  );
  const products = {
    find: (vbid: string, body: Uint8Array): number => find({ vbid, body }),
    after: (id: number, limit: number): Neighbours => {
      const [ids, lengths, texts, withdrawn] = after(id, limit) ?? ['[]', '[]', null, null];
      return {
        ids: numbers(ids),
        lengths: numbers(lengths),
        texts: texts ?? new Uint8Array(),
        withdrawn: numbers(withdrawn),
      };
    },
  };
  return {
    incarnation: value<[], string>('SELECT incarnation FROM mirror WHERE id = 1')(),
    /** Calls `work` with the mirror as of one moment. */
    read: <T>(work: (mirror: KnownProducts) => T): T => transact(() => work({ ...products, seq: lastSeq() })),
    close: () => void sqlite.close(),
  };
}
