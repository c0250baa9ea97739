import { pipeline, Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { usageError } from '../../errors.ts';

/** Characters. A quote that is not closed would make one row of the whole file. */
export const MAX_ROW = 2 ** 20;

/** Spreadsheets write a semicolon where the comma is the decimal separator, and tabs in text files. */
const DELIMITERS = [',', ';', '\t'];

/** For lines that are one field each, without quotes. The parser needs one, so join the fields with it. */
export const NO_DELIMITER = '\0';

/** @returns the delimiter that occurs most often outside of quotes */
export function delimiterOf(header: string): string {
  const bare = header.replace(/"[^"]*"/g, '');
  const counts = DELIMITERS.map((delimiter) => bare.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ',';
}

function invalid(error: CsvError): Error {
  const isLong = error.code === 'CSV_MAX_RECORD_SIZE';
  const what = isLong ? `is longer than ${MAX_ROW} characters` : 'is not valid CSV';
  const hint = 'Put fields that contain quotes in quotes, double the inner ones, and close each one.';
  return usageError(`line ${Number(error.lines)} ${what}`, hint, error);
}

/**
 * Parses CSV (RFC 4180). `line` is the line on which a row begins, from 1.
 * @param texts with LF as the only line break
 * @throws CatchwordError USAGE naming the line
 */
export async function* rowsIn(texts: AsyncIterable<string>, delimiter: string) {
  const format = delimiter === NO_DELIMITER ? { delimiter, quote: null } : { delimiter };
  const parser = parse({ ...format, record_delimiter: '\n', relax_column_count: true, max_record_size: MAX_ROW });
  // An error of the source reaches the parser.
  pipeline(Readable.from(texts), parser, () => {});
  let line = 1;
  try {
    for await (const fields of parser as AsyncIterable<string[]>) {
      yield { fields, line };
      line += fields.join('').split('\n').length;
    }
  } catch (error) {
    throw error instanceof CsvError ? invalid(error) : error;
  }
}
