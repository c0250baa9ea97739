import { usageError } from '@catchword/base/errors';
import { isbnForms } from '@catchword/base/isbn';
import { LISTED, type SearchHit } from '../rows/product-rows.ts';
import type { Queries } from '../schema/queries.ts';

/** The most words of a query: each costs time. */
const MAX_WORDS = 16;
/** How many products that match are ranked, the oldest first: a word such as `a*` matches all of them. */
const MAX_RANKED = 5_000;
/** Sorts after every character of an identifier. */
const LAST = '\u{10ffff}';

/** Quotes each word, so that FTS5 does not read operators of its query language. */
function ftsQuery(words: readonly string[]): string {
  const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
  return words.map((word) => (word.endsWith('*') ? `${quoted(word.slice(0, -1))}*` : quoted(word))).join(' ');
}

/**
 * Finds living products that contain every word in title, contributors, publisher or an identifier. A word that ends in
 * `*` matches every word with that prefix. `vbid` and the two canonical ISBNs are found through their own indexes.
 * The best come first; of more than 5,000 that match, the best of the 5,000 that were added first. Their texts are cut
 * if they are long.
 */
export function createSearch({ rows }: Queries) {
  const byIdentifier = rows<[{ from: string; to: string; limit: number }], SearchHit>(
    `SELECT ${LISTED} FROM products WHERE removed_at IS NULL AND id IN (
       SELECT id FROM (SELECT id FROM products WHERE vbid BETWEEN :from AND :to LIMIT :limit)
       UNION SELECT id FROM (SELECT id FROM products WHERE print_isbn IS NOT NULL AND print_isbn BETWEEN :from AND :to LIMIT :limit)
       UNION SELECT id FROM (SELECT id FROM products WHERE e_isbn IS NOT NULL AND e_isbn BETWEEN :from AND :to LIMIT :limit)
     ) ORDER BY vbid LIMIT :limit`,
  );
  // Sorts before it reads titles, so that it reads only those that it returns.
  const byWords = rows<[{ query: string; limit: number }], SearchHit>(
    `SELECT ${LISTED} FROM
       (SELECT found.rowid AS id, found.rank AS rank FROM
          (SELECT rowid, rank FROM products_fts WHERE products_fts MATCH :query LIMIT ${MAX_RANKED}) AS found
          CROSS JOIN products ON products.id = found.rowid
        WHERE products.removed_at IS NULL ORDER BY found.rank LIMIT :limit) AS best
       CROSS JOIN products ON products.id = best.id
     ORDER BY best.rank`,
  );

  /** @param limit 1 or more. @throws CatchwordError USAGE if the text has more than 16 different words */
  return (text: string, limit: number): SearchHit[] => {
    // FTS5 ends a query at a NUL.
    const words = [...new Set(text.split(/[\s\0]+/))].filter((word) => word.replace('*', '') !== '');
    if (words.length > MAX_WORDS) {
      throw usageError(`a search for ${words.length} words takes too long`, `Search for at most ${MAX_WORDS} words.`);
    }
    const [only] = words;
    if (only === undefined) return [];
    const hits = new Map<string, SearchHit>();
    if (words.length === 1) {
      const from = only.replace(/\*$/, '');
      const forms = new Set([from, from.replaceAll('-', ''), ...isbnForms(from)]);
      for (const form of forms) {
        const to = only.endsWith('*') ? `${form}${LAST}` : form;
        for (const hit of byIdentifier({ from: form, to, limit })) hits.set(hit.vbid, hit);
      }
    }
    // FTS5 treats a word of punctuation as an empty query.
    for (const hit of byWords({ query: ftsQuery(words), limit })) hits.set(hit.vbid, hit);
    return [...hits.values()].slice(0, limit);
  };
}
