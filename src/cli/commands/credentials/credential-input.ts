import { pipeline, Readable } from 'node:stream';
import { usageError } from '@catchword/base/errors';
import { type CredentialSubmission, checkSubmission, KEYS } from 'catchword-client/credentials/submission';
import { CsvError, parse } from 'csv-parse';

/** Characters. A quote that is not closed would make one row of the whole file. */
const MAX_ROW = 2 ** 20;

/** Spreadsheets write a semicolon where the comma is the decimal separator, and tabs in text files. */
const DELIMITERS = [',', ';', '\t'];

/** Delimiter for lines that are one field each, without quotes. The parser needs one, so join the fields with it. */
const NO_DELIMITER = '\0';

/** @returns the delimiter that occurs most often outside of quotes */
function delimiterOf(header: string): string {
  const bare = header.replace(/"[^"]*"/g, '');
  const counts = DELIMITERS.map((delimiter) => bare.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ',';
}

/** Parses CSV (RFC 4180) with LF as the only line break. `line` is the line on which a row begins, from 1. */
async function* rowsIn(texts: AsyncIterable<string>, delimiter: string) {
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
    if (!(error instanceof CsvError)) throw error;
    const what = error.code === 'CSV_MAX_RECORD_SIZE' ? `is longer than ${MAX_ROW} characters` : 'is not valid CSV';
    const hint = 'Put fields that contain quotes in quotes, double the inner ones, and close each one.';
    throw usageError(`line ${Number(error.lines)} ${what}`, hint, error);
  }
}

function keyOf(column: string): (typeof KEYS)[number] | undefined {
  const name = column.replace(/[-_\s]/g, '').toLowerCase();
  return KEYS.find((key) => key.toLowerCase() === name);
}

type Keys = readonly ReturnType<typeof keyOf>[];

/** Decodes UTF-8, drops the byte order mark, and turns CRLF and CR into LF. */
async function* textOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let last = '';
  for await (const chunk of bytes) {
    const text = last + decoder.decode(chunk, { stream: true });
    // The LF of a CRLF may be in the next chunk.
    last = text.endsWith('\r') ? '\r' : '';
    yield text.slice(0, text.length - last.length).replace(/\r\n?/g, '\n');
  }
  yield last.replace('\r', '\n') + decoder.decode();
}

/** Omits columns that are not a key, such as an email, and empty fields. */
function submissionOf(line: number, keys: Keys, values: readonly unknown[], unchecked: boolean): CredentialSubmission {
  const given = keys.flatMap((key, at) => {
    const value = values[at];
    if (key === undefined || value === undefined || value === null || value === '') return [];
    if (typeof value !== 'string' || !value.includes('\ufffd')) return [[key, value]];
    throw usageError(`line ${line}: the text is not UTF-8`, 'Save the file as UTF-8 (in Excel: "CSV UTF-8").');
  });
  if (given.length > 0) {
    return checkSubmission(Object.fromEntries(given) as CredentialSubmission, `line ${line}`, unchecked);
  }
  throw usageError(`line ${line}: the account has no key`, 'Fill in a reference, guid or access-token, or remove it.');
}

/** @throws CatchwordError USAGE if two names are the same key, because only one of them can be submitted */
function keysOf(names: readonly string[], line: number, what: 'columns' | 'fields'): Keys {
  const keys = names.map(keyOf);
  const twice = keys.find((key, at) => key !== undefined && keys.indexOf(key) < at);
  if (twice === undefined) return keys;
  throw usageError(`line ${line}: two ${what} are named ${twice}`, 'Rename the one that is not to be verified.');
}

function headerOf(fields: readonly string[], line: number): Keys {
  const keys = keysOf(fields, line, 'columns');
  if (keys.some((key) => key !== undefined)) return keys;
  const hint = 'Begin CSV, in UTF-8, with the names of its columns. Name a file of JSON lines .ndjson or .jsonl.';
  throw usageError(`line ${line}: no column is named reference, guid or access-token`, hint);
}

async function* fromCsv(
  texts: AsyncIterable<string>,
  delimiter: string,
  unchecked: boolean,
): AsyncGenerator<CredentialSubmission, void> {
  let header: Keys | undefined;
  for await (const { fields, line } of rowsIn(texts, delimiter)) {
    // Spreadsheets write empty fields at the end of rows, and empty rows.
    const width = fields.findLastIndex((field) => field.trim() !== '') + 1;
    if (width === 0) continue;
    if (header === undefined) header = headerOf(fields, line);
    else if (width <= header.length) yield submissionOf(line, header, fields, unchecked);
    else {
      const hint = 'Quote fields that contain the delimiter.';
      throw usageError(`line ${line}: ${width} fields, but the header has ${header.length}`, hint);
    }
  }
}

function fromJson(text: string, line: number, unchecked: boolean): CredentialSubmission {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw usageError(`line ${line}: invalid JSON`, 'Write lines such as {"reference":"reader-1"}.', cause);
  }
  const fields = typeof value === 'object' && value !== null ? value : { reference: value };
  return submissionOf(line, keysOf(Object.keys(fields), line, 'fields'), Object.values(fields), unchecked);
}

export function isNdjson(path: string): boolean {
  return /\.(ndjson|jsonl)$/i.test(path);
}

/**
 * Reads accounts from CSV with a header line, from NDJSON if the file is named so, or from either of them on stdin (`-`).
 * @throws CatchwordError USAGE naming the line
 */
export async function* submissionsIn(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  unchecked: boolean,
): AsyncGenerator<CredentialSubmission, void> {
  const texts = textOf(bytes);
  let head = '';
  while (head.length < MAX_ROW && !head.trimStart().includes('\n')) {
    const next = await texts.next();
    if (next.done === true) break;
    head += next.value;
  }
  const whole = (async function* () {
    yield head;
    yield* texts;
  })();
  const [first = ''] = head.trimStart().split('\n', 1);
  const isJson = path === '-' ? first.startsWith('{') : isNdjson(path);
  if (!isJson) yield* fromCsv(whole, delimiterOf(first), unchecked);
  else {
    for await (const { fields, line } of rowsIn(whole, NO_DELIMITER)) {
      const text = fields.join(NO_DELIMITER);
      if (text.trim() !== '') yield fromJson(text, line, unchecked);
    }
  }
}
