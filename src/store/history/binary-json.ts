import { createQueries } from '../schema/queries.ts';
import { openSqlite } from '../schema/statements.ts';

/**
 * Returns what converts JSON into SQLite's binary form, without a file. Statements that read such a value do not parse it:
 * a page is read by two or three of them, in the thread that writes the mirror.
 */
export function createBinaryJson(): (text: string) => Uint8Array<ArrayBuffer> {
  const convert = createQueries(openSqlite(':memory:')).value<[text: string], Buffer<ArrayBuffer>>('SELECT jsonb(?)');
  return (text) => {
    const binary = convert(text);
    if (binary === null) throw new TypeError('the text is not JSON');
    return binary;
  };
}
