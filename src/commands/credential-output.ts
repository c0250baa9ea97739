import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { z } from 'zod';
import { type CredentialResult, type CredentialSubmission, MAX_CREDENTIALS } from '../client/operations/credential.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import type { Submitted } from './credential-input.ts';
import {
  digestOfSubmitted,
  readStates,
  type States,
  type SubmittedDigest,
  stateLine,
  stateLines,
} from './credential-state.ts';
import { csvFields, csvLine, cutRecords, type FileRecord } from './csv.ts';

export type ResultFormat = 'csv' | 'ndjson';

/** Where results go; batches are written one after the other. */
export interface CredentialOutput {
  /** Told of each account before its results are written. */
  submitted(submission: CredentialSubmission): void;
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
    submitted: () => {},
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
  /** Of what the results that are kept are about. */
  readonly kept: SubmittedDigest;
}

function notOurs(path: string, line: number, what: string): CatchwordError {
  return new CatchwordError('USAGE', `${path} line ${line}: ${what}`, {
    hint: 'Results of another input are not overwritten: name another file with --out, or begin anew with --restart.',
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

/** @throws CatchwordError USAGE where the results are about other accounts than the input's first */
function checkState(path: string, line: number, states: States, read: SubmittedDigest): void {
  const digest = states.get(read.count());
  if (digest === undefined) throw notOurs(path, line, `${stateOf(path)} does not say which input it is about`);
  if (digest !== read.digest()) throw notOurs(path, line, 'it is about another input, or the input was changed since');
}

function digestOf(submitted: readonly Submitted[], digest: SubmittedDigest): SubmittedDigest {
  for (const { submission } of submitted) digest.add(submission);
  return digest;
}

/**
 * Reads an earlier run's file and the input side by side. What is kept ends with a whole batch, or with the input.
 * @param states what the earlier run noted of its input
 * @throws CatchwordError USAGE where the file is not the beginning of this input's results
 */
export async function resume(
  path: string,
  format: ResultFormat,
  input: AsyncIterator<Submitted>,
  states: States,
): Promise<Resumed> {
  let [done, bytes, headed, last, line] = [0, 0, format === 'ndjson', 0, 1];
  let pending: Submitted[] = [];
  const kept = digestOfSubmitted();
  for await (const record of cutRecords(createReadStream(path), format === 'csv', true)) {
    if (!record.whole) break;
    [last, line] = [record.end, record.line];
    if (!headed) {
      if (`${record.text}\n` !== HEADER) throw notOurs(path, 1, 'it is no result of this command');
      [headed, bytes] = [true, record.end];
      continue;
    }
    const next = await input.next();
    if (next.done === true) throw notOurs(path, line, 'it goes on where the input ends');
    if (!fits(keysOf(path, record, format), next.value.submission)) {
      throw notOurs(path, line, 'it is about another account than the input at this place');
    }
    pending.push(next.value);
    if (pending.length < MAX_CREDENTIALS) continue;
    checkState(path, line, states, digestOf(pending, kept));
    [done, bytes, pending] = [kept.count(), record.end, []];
  }
  if (pending.length === 0) return { done, bytes, open: [], kept };
  const next = await input.next();
  if (next.done !== true) return { done, bytes, open: [...pending, next.value], kept };
  // All of the input has its result.
  checkState(path, line, states, digestOf(pending, kept));
  return { done: kept.count(), bytes: last, open: [], kept };
}

function unwritable(path: string, error: unknown): CatchwordError {
  return new CatchwordError('USAGE', `${path} cannot be written: ${messageOf(error)}`, {
    hint: 'Name a file on a disk with room, in a directory that this user may write to.',
  });
}

/** Opening a pipe would wait for its reader, and a mode set on a device, such as /dev/null, is everybody's. */
async function openRegular(path: string): Promise<FileHandle> {
  const refuse = (): CatchwordError =>
    new CatchwordError('USAGE', `${path} is no regular file`, {
      hint: 'Name another file with --out, or leave it away to print the results.',
    });
  const found = await stat(path).catch(() => null);
  if (found?.isFile() === false) throw refuse();
  const file = await open(path, 'a+', 0o600).catch((error: unknown) => {
    throw unwritable(path, error);
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw refuse();
}

/** Beside the results: what they are about, in digests. Results do not name accounts that were submitted by token. */
export function stateOf(path: string): string {
  return `${path}.state`;
}

/** It holds tokens, or what is made of them: for this user alone, whoever made it. */
async function keepBytes(file: FileHandle, bytes: number): Promise<void> {
  await file.chmod(0o600);
  await file.truncate(bytes);
}

/**
 * A file for this user alone (mode 0600), which goes on where an earlier run of the same input ended; and beside it
 * `<path>.state`, by which that is known.
 * @param restart whether an earlier run's results are thrown away
 * @throws CatchwordError USAGE
 */
export async function toFile(
  path: string,
  format: ResultFormat,
  input: AsyncIterator<Submitted>,
  restart = false,
): Promise<CredentialOutput & Resumed> {
  const written = async <Value>(work: Promise<Value>): Promise<Value> =>
    await work.catch((error: unknown) => {
      throw unwritable(path, error);
    });
  const file = await openRegular(path);
  let state: FileHandle | undefined;
  const close = async (): Promise<void> => {
    await file.close();
    await state?.close();
  };
  try {
    state = await openRegular(stateOf(path));
    if (restart) await written(keepBytes(file, 0));
    const states = await written(readStates(state));
    const resumed = await resume(path, format, input, states);
    const { bytes, done, kept } = resumed;
    await written(keepBytes(file, bytes));
    const lines = stateLines(states, done);
    await written(keepBytes(state, lines.length));
    if (bytes === 0 && format === 'csv') await written(file.appendFile(HEADER));
    const noted = state;
    return {
      ...resumed,
      submitted: (submission) => kept.add(submission),
      write: async (results) => {
        // First: results that no state tells of could not be gone on with.
        await written(noted.appendFile(stateLine(kept)));
        await written(file.appendFile(results.map((result) => lineOf(result, format)).join('')));
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
