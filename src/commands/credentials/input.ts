import { type BigIntStats, fstatSync } from 'node:fs';
import { type CredentialSubmission, checkSubmission } from '../../client/credentials/submission.ts';
import { CatchwordError, messageOf } from '../../errors.ts';
import type { Source } from '../shared/input-stream.ts';
import { csvFields, cutRecords, type FileRecord } from './csv.ts';

/** A submission and where it stands in its file. */
export interface Submitted {
  readonly submission: CredentialSubmission;
  /** Bytes of the file up to its end. */
  readonly end: number;
}

/** A file is the same by whatever path it is reached. */
export type FileIdentity = Pick<BigIntStats, 'dev' | 'ino'>;

export interface CredentialInput {
  /** To be read once; `return` lets go of the file, or of stdin, which keeps the process alive. */
  readonly submissions: AsyncIterableIterator<Submitted>;
  /** Bytes; null where it is not known. */
  readonly size: number | null;
  /** Null where it is no file. */
  readonly identity: FileIdentity | null;
}

type Key = 'reference' | 'guid' | 'accessToken';

interface Header {
  /** Of each key, its place; -1 where it is not there. */
  readonly columns: Readonly<Record<Key, number>>;
  /** Columns, those without a name too. */
  readonly width: number;
}

const COLUMN = /^(reference|guid|access[-_]token)$/i;
const HINT = 'The columns reference, guid and access-token are read; one of them is needed.';
const HEADER_HINT =
  'CSV begins with its columns, of which reference, guid or access-token is needed; NDJSON, one object or text a line, is read from files called .ndjson or .jsonl, and from stdin.';

/** Of the header, where what is no CSV may well be NDJSON. */
function namesOf(record: FileRecord): string[] {
  try {
    return csvFields(record);
  } catch (cause) {
    throw new CatchwordError('USAGE', messageOf(cause), { hint: HEADER_HINT, cause });
  }
}

function headerOf(record: FileRecord): Header {
  const names = namesOf(record).map((name) => name.trim().toLowerCase().replaceAll('_', '-'));
  const columns = {
    reference: names.indexOf('reference'),
    guid: names.indexOf('guid'),
    accessToken: names.indexOf('access-token'),
  };
  const read = Object.values(columns).filter((column) => column >= 0);
  if (read.length === 0) {
    throw new CatchwordError('USAGE', 'the first line names no column that can be verified', { hint: HEADER_HINT });
  }
  const twice = read.map((column) => names[column] ?? '').find((name, at) => names.lastIndexOf(name) !== read[at]);
  if (twice === undefined) return { columns, width: names.length };
  throw new CatchwordError('USAGE', `line ${record.line}: it names the column ${twice} twice`, {
    hint: 'Leave the column away that is not to be verified.',
  });
}

/** With a field too many, nobody can tell which of them names the account. Empty ones at the end are of a spreadsheet. */
function checkWidth(fields: readonly string[], width: number, line: number): void {
  const found = fields.findLastIndex((field) => field.trim() !== '') + 1;
  if (found <= width) return;
  throw new CatchwordError('USAGE', `line ${line}: ${found} fields, and the header has ${width}`, {
    hint: 'A field with a comma in it stands in quotes.',
  });
}

/** Fields that are empty are not submitted; neither is any other column, such as an email. */
function submissionOf(line: number, fields: Readonly<Record<Key, unknown>>): CredentialSubmission {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== '');
  try {
    return checkSubmission(Object.fromEntries(given) as unknown as CredentialSubmission, line);
  } catch (error) {
    const message = messageOf(error).replace(/^credential \d+/, `line ${line}`);
    throw new CatchwordError('USAGE', message, {
      hint: given.length === 0 || !(error instanceof CatchwordError) ? HINT : (error.hint ?? HINT),
    });
  }
}

async function* fromCsv(records: AsyncIterable<FileRecord>): AsyncGenerator<Submitted, void> {
  let header: Header | undefined;
  for await (const record of records) {
    if (record.text.trim() === '') continue;
    if (header === undefined) {
      header = headerOf(record);
      continue;
    }
    const fields = csvFields(record);
    checkWidth(fields, header.width, record.line);
    const { reference, guid, accessToken } = header.columns;
    const submission = submissionOf(record.line, {
      ...{ reference: fields[reference], guid: fields[guid], accessToken: fields[accessToken] },
    });
    yield { submission, end: record.end };
  }
}

function parsed({ text, line }: FileRecord): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CatchwordError('USAGE', `line ${line}: it is no JSON`, {
      hint: 'One JSON object or string a line is needed, such as {"reference":"reader-1"}.',
    });
  }
}

async function* fromNdjson(records: AsyncIterable<FileRecord>): AsyncGenerator<Submitted, void> {
  for await (const record of records) {
    if (record.text.trim() === '') continue;
    const value = parsed(record);
    const fields = new Map<string, unknown>(
      typeof value === 'object' && value !== null ? Object.entries(value) : [['reference', value]],
    );
    const accessToken = fields.get('access-token') ?? fields.get('access_token') ?? fields.get('accessToken');
    const submission = submissionOf(record.line, {
      ...{ reference: fields.get('reference'), guid: fields.get('guid'), accessToken },
    });
    yield { submission, end: record.end };
  }
}

/** Characters. A header line is shorter, and so is a text in JSON. */
const MAX_HEAD = 1_000;

/**
 * Without an ending to go by: no CSV header begins with a brace, and none is one text in quotes that is no column's name,
 * as a bare JSON string is.
 */
function looksLikeNdjson(head: string): boolean {
  const [first = ''] = head.trimStart().split('\n');
  if (first.startsWith('{')) return true;
  const [, name] = /^"([^"\\]*(?:\\.[^"\\]*)*)"\s*$/.exec(first) ?? [];
  return name !== undefined && !COLUMN.test(name.trim());
}

async function* sniffed(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Submitted, void> {
  const chunks = stream[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  let next = await chunks.next();
  for (; next.done !== true; next = await chunks.next()) {
    head = Buffer.concat([head, next.value]);
    if (head.length > MAX_HEAD || head.toString('utf8').trimStart().includes('\n')) break;
  }
  const again = (async function* () {
    try {
      yield head;
      yield* { [Symbol.asyncIterator]: () => chunks };
    } finally {
      // Where reading ends with the head, nothing else lets go of the stream.
      await chunks.return?.();
    }
  })();
  const isJson = looksLikeNdjson(head.subarray(0, MAX_HEAD).toString('utf8'));
  yield* isJson ? fromNdjson(cutRecords(again, false)) : fromCsv(cutRecords(again, true));
}

export function isNdjson(path: string): boolean {
  return /\.(ndjson|jsonl)$/i.test(path);
}

function unreadable(name: string, cause: unknown): CatchwordError {
  return new CatchwordError('USAGE', `${name} cannot be read: ${messageOf(cause)}`, {
    hint: 'Name a file that this user may read, or - for stdin.',
    cause,
  });
}

/** What goes wrong with reading is told of by name, and apart from what is wrong with the content. */
async function* bytesOf(name: string, stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (cause) {
    throw cause instanceof CatchwordError ? cause : unreadable(name, cause);
  }
}

/** Reads the header and the first account at once: what cannot be verified at all is refused before anything is written. */
async function readAhead(submissions: AsyncGenerator<Submitted, void>): Promise<AsyncIterableIterator<Submitted>> {
  let first: IteratorResult<Submitted, void> | null = await submissions.next();
  const begun: AsyncIterableIterator<Submitted> = {
    next: async () => {
      const next = first ?? (await submissions.next());
      first = null;
      return next;
    },
    return: () => submissions.return(),
    [Symbol.asyncIterator]: () => begun,
  };
  return begun;
}

function opened(name: string, open: () => Source): Source {
  try {
    return open();
  } catch (cause) {
    throw unreadable(name, cause);
  }
}

function formatOf(path: string, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Submitted, void> {
  if (path === '-') return sniffed(bytes);
  return isNdjson(path) ? fromNdjson(cutRecords(bytes, false)) : fromCsv(cutRecords(bytes, true));
}

/**
 * What is to be verified: CSV with a header line, NDJSON where the file is called so, `-` for either from stdin.
 * Reading it throws CatchwordError USAGE naming the line.
 * @param open opens either
 * @throws CatchwordError USAGE where it cannot be read, or where its beginning is wrong
 */
export async function readCredentials(path: string, open: (path: string) => Source): Promise<CredentialInput> {
  const name = path === '-' ? 'stdin' : path;
  const source = opened(name, () => open(path));
  // Before it is read: its end closes it.
  const found = source.fd === undefined ? null : fstatSync(source.fd, { bigint: true });
  const file = found?.isFile() === true ? found : null;
  const submissions = await readAhead(formatOf(path, bytesOf(name, source)));
  return { submissions, size: file === null ? null : Number(file.size), identity: file };
}
