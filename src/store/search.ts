import type { Database } from 'better-sqlite3';
import { isbnForms } from '../catalog/isbn.ts';

export interface SearchHit {
  readonly vbid: string;
  readonly title: string | null;
  readonly publisher: string | null;
  readonly format: string | null;
  readonly printIsbn: string | null;
  readonly eIsbn: string | null;
}

/**
 * Finds living products that contain every word in title, contributors, publisher or an identifier. A word that ends in
 * `*` matches every word with that prefix.
 * @param limit 1 or more
 */
export type Search = (words: string, limit: number) => SearchHit[];

const COLUMNS =
  'products.vbid, products.title, products.publisher, products.format, products.print_isbn AS printIsbn, products.e_isbn AS eIsbn';
/** Sorts after every character of an identifier. */
const LAST = '\u{10ffff}';

/** Quotes each word, so that FTS5 does not read operators of its query language. */
function ftsQuery(words: readonly string[]): string {
  return words
    .map((word) => {
      const prefix = word.endsWith('*');
      const bare = (prefix ? word.slice(0, -1) : word).replaceAll('"', '""');
      return `"${bare}"${prefix ? '*' : ''}`;
    })
    .join(' ');
}

/**
 * Finds `vbid` and the two canonical ISBNs through their own indexes. They are not in the full-text index, which a lean
 * catalog therefore does not need at all.
 */
export function createSearch(sqlite: Database): Search {
  const byIdentifier = sqlite.prepare<Record<string, unknown>, SearchHit>(
    `SELECT ${COLUMNS} FROM products WHERE removed_at IS NULL AND id IN (
       SELECT id FROM (SELECT id FROM products WHERE vbid BETWEEN :from AND :to LIMIT :limit)
       UNION SELECT id FROM (SELECT id FROM products WHERE print_isbn IS NOT NULL AND print_isbn BETWEEN :from AND :to LIMIT :limit)
       UNION SELECT id FROM (SELECT id FROM products WHERE e_isbn IS NOT NULL AND e_isbn BETWEEN :from AND :to LIMIT :limit)
     ) ORDER BY vbid LIMIT :limit`,
  );
  const byWords = sqlite.prepare<Record<string, unknown>, SearchHit>(
    `SELECT ${COLUMNS} FROM products_fts JOIN products ON products.id = products_fts.rowid
     WHERE products_fts MATCH :query AND products.removed_at IS NULL ORDER BY products_fts.rank LIMIT :limit`,
  );

  return (text, limit) => {
    const words = text.split(/\s+/).filter((word) => word.replace('*', '') !== '');
    const [only] = words;
    if (only === undefined) return [];
    const hits = new Map<string, SearchHit>();
    if (words.length === 1) {
      const from = only.replace(/\*$/, '');
      const forms = new Set([from, from.replaceAll('-', ''), ...isbnForms(from)]);
      for (const form of forms) {
        const to = only.endsWith('*') ? `${form}${LAST}` : form;
        for (const hit of byIdentifier.all({ from: form, to, limit })) hits.set(hit.vbid, hit);
      }
    }
    // FTS5 treats a word of punctuation as an empty query.
    for (const hit of byWords.all({ query: ftsQuery(words), limit })) hits.set(hit.vbid, hit);
    return [...hits.values()].slice(0, limit);
  };
}
