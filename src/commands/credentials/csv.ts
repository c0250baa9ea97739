import { CatchwordError } from '../../errors.ts';
import { textOf } from '../utf8.ts';

/** A record of a file as it is cut out, before it is taken apart. */
export interface FileRecord {
  readonly text: string;
  /** Line on which it begins, from 1. */
  readonly line: number;
  /** Offset of the byte after it, its line break included. */
  readonly end: number;
  /** Whether a line break ends it; only the last can lack one. */
  readonly whole: boolean;
}

/** Bytes. For safety: a quote that does not end would make one record of the whole file. */
const MAX_RECORD = 2 ** 20;
const NEWLINE = 0x0a;
const QUOTE = 0x22;

function refuse(line: number, what: string, hint: string): CatchwordError {
  return new CatchwordError('USAGE', `line ${line}: ${what}`, { hint });
}

function lineOf(bytes: Buffer, line: number, isTorn = false): string {
  const text = (isTorn ? bytes.toString('utf8') : textOf(bytes, `line ${line}`)).replace(/\r?\n$/, '');
  return line === 1 ? text.replace(/^\ufeff/, '') : text;
}

/**
 * Cuts a stream into records, in bounded memory.
 * @param quoted whether line breaks between quotes belong to the record (CSV), or none do (NDJSON)
 * @param mayBeTorn whether the last record, where no line break ends it, may be cut short, inside a character even
 * @throws CatchwordError USAGE naming the line
 */
export async function* cutRecords(
  stream: AsyncIterable<Uint8Array>,
  quoted: boolean,
  mayBeTorn = false,
): AsyncGenerator<FileRecord, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  let [line, lineBreaks, end, inQuotes] = [1, 0, 0, false];
  for await (const chunk of stream) {
    let start = 0;
    let at = rest.length;
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    for (; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === QUOTE && quoted) inQuotes = !inQuotes;
      if (byte !== NEWLINE) continue;
      lineBreaks++;
      if (inQuotes) continue;
      const piece = bytes.subarray(start, at + 1);
      end += piece.length;
      yield { text: lineOf(piece, line), line, end, whole: true };
      [start, line] = [at + 1, lineBreaks + 1];
    }
    rest = bytes.subarray(start);
    if (rest.length > MAX_RECORD) {
      throw refuse(line, `it is longer than ${MAX_RECORD} bytes`, 'Look for a quote that does not end.');
    }
  }
  if (rest.length > 0) yield { text: lineOf(rest, line, mayBeTorn), line, end: end + rest.length, whole: false };
}

const FIELD = /("(?:[^"]|"")*"|[^",]*)(,|$)/y;

/**
 * The fields of a CSV record (RFC 4180).
 * @throws CatchwordError USAGE naming the line
 */
export function csvFields({ text, line }: Pick<FileRecord, 'text' | 'line'>): string[] {
  const fields: string[] = [];
  FIELD.lastIndex = 0;
  for (;;) {
    const match = FIELD.exec(text);
    if (match === null)
      throw refuse(line, 'it is no CSV', 'A field with a quote in it stands in quotes, its own doubled.');
    const [, field = '', separator] = match;
    fields.push(field.startsWith('"') ? field.slice(1, -1).replaceAll('""', '"') : field);
    if (separator === '') return fields;
  }
}

/** A CSV record with its line break. */
export function csvLine(fields: readonly (string | number | null)[]): string {
  const written = fields.map((field) => {
    const text = String(field ?? '');
    return /[",\r\n]/.test(text) || text.trim() !== text ? `"${text.replaceAll('"', '""')}"` : text;
  });
  return `${written.join(',')}\n`;
}
