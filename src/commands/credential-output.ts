import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { z } from 'zod';
import { type CredentialResult, type CredentialSubmission, MAX_CREDENTIALS } from '../client/operations/credential.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import type { Submitted } from './credential-input.ts';
import { csvFields, csvLine, cutRecords, type FileRecord } from './csv.ts';

export type ResultFormat = 'csv' | 'ndjson';

/** Where results go; batches are written one after the other. */
export interface CredentialOutput {
  write(results: readonly CredentialResult[]): Promise<void>;
  close(): Promise<void>;
}

const HEADER = csvLine(['reference', 'guid', 'access_token', 'email', 'code', 'message']);

function lineOf(result: CredentialResult, format: ResultFormat): string {
  const { reference, guid } = result;
  if (format === 'csv') {
    return csvLine(
      result.ok
        ? [reference, guid, result.accessToken, result.email, null, null]
        : [reference, guid, null, null, result.code ?? 'none', result.message],
    );
  }
  const rest = result.ok
    ? { access_token: result.accessToken, email: result.email }
    : { code: result.code, message: result.message };
  return `${JSON.stringify({ ok: result.ok, reference, guid, ...rest })}\n`;
}

export function toStream(stream: NodeJS.WritableStream, format: ResultFormat): CredentialOutput {
  const put = async (text: string): Promise<void> => {
    if (!stream.write(text)) await once(stream, 'drain');
  };
  let begun = false;
  return {
    write: async (results) => {
      const head = format === 'csv' && !begun ? HEADER : '';
      begun = true;
      await put(head + results.map((result) => lineOf(result, format)).join(''));
    },
    close: async () => {},
  };
}

/** What an earlier run wrote, and what of the input is still to do. */
export interface Resumed {
  /** Results that are kept. */
  readonly done: number;
  /** Bytes that are kept. */
  readonly bytes: number;
  /** Submissions read already whose results are not kept. */
  readonly open: readonly Submitted[];
}

function notOurs(path: string, line: number, what: string): CatchwordError {
  return new CatchwordError('USAGE', `${path} line ${line}: ${what}`, {
    hint: 'Results of another input are not overwritten: name another file with --out, or remove this one.',
  });
}

const KEYS = z.object({ reference: z.string().nullable(), guid: z.string().nullable() });

function keysOf(path: string, record: FileRecord, format: ResultFormat): Pick<CredentialResult, 'reference' | 'guid'> {
  try {
    if (format === 'ndjson') return KEYS.parse(JSON.parse(record.text));
    const [reference = '', guid = ''] = csvFields(record);
    return { reference: reference || null, guid: guid || null };
  } catch {
    throw notOurs(path, record.line, 'it is no result of this command');
  }
}

function fits(kept: Pick<CredentialResult, 'reference' | 'guid'>, { reference, guid }: CredentialSubmission): boolean {
  const isSame = (a: string | undefined, b: string | null): boolean => a === undefined || b === null || a === b;
  return isSame(reference, kept.reference) && isSame(guid, kept.guid);
}

/**
 * Reads an earlier run's file and the input side by side. What is kept ends with a whole batch, or with the input.
 * @throws CatchwordError USAGE where the file is not the beginning of this input's results
 */
export async function resume(path: string, format: ResultFormat, input: AsyncIterator<Submitted>): Promise<Resumed> {
  let [done, count, bytes, headed] = [0, 0, 0, format === 'ndjson'];
  let last = 0;
  let pending: Submitted[] = [];
  for await (const record of cutRecords(createReadStream(path), format === 'csv', true)) {
    if (!record.whole) break;
    if (!headed) {
      if (`${record.text}\n` !== HEADER) throw notOurs(path, 1, 'it is no result of this command');
      headed = true;
      bytes = record.end;
      last = record.end;
      continue;
    }
    const next = await input.next();
    if (next.done === true) throw notOurs(path, record.line, 'it goes on where the input ends');
    if (!fits(keysOf(path, record, format), next.value.submission)) {
      throw notOurs(path, record.line, 'it is about another account than the input at this place');
    }
    count++;
    last = record.end;
    pending.push(next.value);
    if (count % MAX_CREDENTIALS !== 0) continue;
    [done, bytes, pending] = [count, record.end, []];
  }
  if (pending.length === 0) return { done, bytes, open: [] };
  const next = await input.next();
  // All of the input has its result.
  if (next.done === true) return { done: count, bytes: last, open: [] };
  return { done, bytes, open: [...pending, next.value] };
}

function unwritable(path: string, error: unknown): CatchwordError {
  return new CatchwordError('USAGE', `${path} cannot be written: ${messageOf(error)}`, {
    hint: 'Name a file on a disk with room, in a directory that this user may write to.',
  });
}

/** Opening a pipe would wait for its reader, and a mode set on a device, such as /dev/null, is everybody's. */
async function openRegular(path: string): Promise<FileHandle> {
  const refuse = (): CatchwordError =>
    new CatchwordError('USAGE', `--out ${path} is no regular file`, {
      hint: 'Name a file, or leave --out away to print the results.',
    });
  const found = await stat(path).catch(() => null);
  if (found?.isFile() === false) throw refuse();
  const file = await open(path, 'a', 0o600).catch((error: unknown) => {
    throw unwritable(path, error);
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw refuse();
}

/**
 * A file for this user alone (mode 0600), which goes on where an earlier run of the same input ended.
 * @throws CatchwordError USAGE
 */
export async function toFile(
  path: string,
  format: ResultFormat,
  input: AsyncIterator<Submitted>,
): Promise<CredentialOutput & Resumed> {
  const written = async <Value>(work: Promise<Value>): Promise<Value> =>
    await work.catch((error: unknown) => {
      throw unwritable(path, error);
    });
  const file = await openRegular(path);
  try {
    const resumed = await resume(path, format, input);
    // It holds tokens, whoever made it.
    await written(file.chmod(0o600));
    await written(file.truncate(resumed.bytes));
    if (resumed.bytes === 0 && format === 'csv') await written(file.appendFile(HEADER));
    return {
      ...resumed,
      write: (results) => written(file.appendFile(results.map((result) => lineOf(result, format)).join(''))),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}
