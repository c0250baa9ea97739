import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, open, realpath, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { CredentialSubmission } from '../../client/credentials/submission.ts';
import { renameDurably } from '../../durable-names.ts';
import { CatchwordError, messageOf, systemCodeOf, usageError } from '../../errors.ts';
import { holdFile, NO_LOCKS } from '../../file-lock.ts';
import type { Source } from '../../input-stream.ts';
import { headerOf } from './rows.ts';

/*
 * Results go to `<out>.part`. Its first line records how many accounts and bytes are complete, how many accounts were not
 * verified, and a digest of the service, the API key, the format and the accounts. It has a fixed length and is written
 * again after each batch is on the disk, so a later run with the same digest resumes after the last whole batch. The rows
 * cannot show this themselves: they contain neither the service nor the token by which an account was submitted.
 *
 * At the end, everything but the first line becomes `<out>`. Until then, `<out>` keeps the results of an earlier run.
 */

export interface ResultOutput {
  /** Accounts whose results an earlier run wrote. */
  readonly done: number;
  /** How many of them were not verified. */
  readonly failed: number;
  /** The accounts still to verify. */
  readonly rest: AsyncIterable<CredentialSubmission>;
  /** @param failed how many of the accounts were not verified */
  write(text: string, accounts: number, failed: number): Promise<void>;
  /** Completes the output after the last write; not called if the run breaks off. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

const FIRST_LINE = /^catchword credentials verify ([0-9a-f]{64}) +(\d+) +(\d+) +(\d+)\n/;

function firstLineOf(digest: string, ...counts: readonly [accounts: number, bytes: number, failed: number]): string {
  return `catchword credentials verify ${digest} ${counts.map((one) => String(one).padStart(16)).join(' ')}\n`;
}

const FIRST_BYTES = firstLineOf('0'.repeat(64), 0, 0, 0).length;
const MOVE = 'Move it away, or name another file with --out.';

async function orNull<Value>(work: Promise<Value>): Promise<Value | null> {
  return await work.catch((error: unknown) => {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  });
}

/** The first bytes of a file; empty if it is missing. */
async function beginningOf(path: string): Promise<string> {
  const file = await orNull(open(path));
  try {
    const read = await file?.read(Buffer.alloc(FIRST_BYTES));
    return read?.buffer.toString('utf8', 0, read.bytesRead) ?? '';
  } finally {
    await file?.close();
  }
}

/**
 * Checks that writing results harms no other file.
 * @returns whether there are results, and the first line of the incomplete ones; null if there are none
 */
async function earlierResults(names: readonly [path: string, part: string, ...string[]], input: Source['file']) {
  const [path, part] = names;
  const files = await Promise.all(names.map((name) => orNull(stat(name, { bigint: true }))));
  const hint = 'Name another file with --out.';
  if (files.some((file) => file !== null && file.dev === input?.dev && file.ino === input.ino)) {
    throw usageError(`--out ${path} would overwrite the input`, hint);
  }
  const irregular = names.find((_name, at) => files[at]?.isFile() === false);
  if (irregular !== undefined) throw usageError(`${irregular} is not a regular file`, hint);
  const results = await beginningOf(path);
  if (results !== '' && ![headerOf('csv'), '{"ok":'].some((beginning) => results.startsWith(beginning))) {
    throw usageError(`${path} exists, and does not hold results`, MOVE);
  }
  const beginning = await beginningOf(part);
  const [, digest, accounts, bytes, failed] = FIRST_LINE.exec(beginning) ?? [];
  if (beginning !== '' && (digest === undefined || Number(bytes) > (files[1]?.size ?? 0))) {
    throw usageError(`${part} exists, and does not hold incomplete results`, MOVE);
  }
  const last =
    digest === undefined ? null : { digest, accounts: Number(accounts), bytes: Number(bytes), failed: Number(failed) };
  return { exists: results !== '', last };
}

/**
 * Opens a file for results, which only this user can read (mode 0600) and no other run writes at the same time.
 * @param restart whether to replace the results of an earlier run, as soon as there are others
 * @param scope what the results depend on besides the submissions
 * @throws CatchwordError USAGE, as the methods of the result do
 */
export async function openResultFile(
  path: string,
  restart: boolean,
  scope: readonly string[],
  submissions: AsyncIterable<CredentialSubmission>,
  input: Source['file'],
): Promise<ResultOutput> {
  if (path === '') throw usageError('--out is empty', 'Name a file, or omit --out to print the results.');
  const target = await realpath(path).catch(() => path);
  const [part, whole] = [`${target}.part`, `${target}.part.new`];
  const release = holdFile(target);
  if (release === null) {
    throw usageError(`${path} is in use by another run`, `Wait until it ends, or name another file. ${NO_LOCKS}`);
  }
  const hash = createHash('sha256').update(JSON.stringify(scope));
  const digest = (): string => hash.copy().digest('hex');
  let [accounts, bytes, failed] = [0, FIRST_BYTES, 0];
  let file: FileHandle | undefined;

  /** Accounts that were read, and are not in `accounts` yet: a batch may end before the account that was read last. */
  const pending: string[] = [];
  const rest = (async function* () {
    for await (const submission of submissions) {
      pending.push(`${JSON.stringify([submission.reference, submission.guid, submission.accessToken])}\n`);
      yield submission;
    }
  })();
  function advance(count: number): void {
    hash.update(pending.splice(0, count).join(''));
    accounts += count;
  }
  async function begin(): Promise<void> {
    const { exists, last } = await earlierResults([path, part, whole], input);
    if (restart) return;
    if (last === null || last.accounts === 0) {
      if (!exists) return;
      const hint = 'It is complete. Name another file with --out, or replace this one with --restart.';
      throw usageError(`${path} already exists`, hint);
    }
    while (accounts < last.accounts && (await rest.next()).done !== true) advance(1);
    if (digest() !== last.digest) {
      const hint = 'Repeat the command of that run, name another file with --out, or start over with --restart.';
      throw usageError(`${part} holds results for another input, service or API key`, hint);
    }
    ({ bytes, failed } = last);
  }
  async function writeAt(to: FileHandle, text: string, position: number): Promise<number> {
    const data = Buffer.from(text);
    for (let at = 0; at < data.length; ) at += (await to.write(data, at, null, position + at)).bytesWritten;
    await to.datasync();
    return data.length;
  }
  async function write(text: string, count: number, refused: number): Promise<void> {
    if (restart && accounts + count === 0) {
      throw usageError('the input is empty, so --restart replaces nothing', 'Check what writes the input.');
    }
    if (file === undefined) {
      file = await open(part, accounts > 0 ? 'r+' : 'w', 0o600);
      await file.chmod(0o600);
      // A crash between two batches must not leave rows without a first line.
      if (accounts === 0) await writeAt(file, firstLineOf(digest(), 0, bytes, 0), 0);
      await file.truncate(bytes);
    }
    bytes += await writeAt(file, text, bytes);
    advance(count);
    failed += refused;
    await writeAt(file, firstLineOf(digest(), accounts, bytes, failed), 0);
  }
  async function finish(): Promise<void> {
    await rm(whole, { force: true });
    const options = { flags: 'wx', mode: 0o600, flush: true };
    await pipeline(createReadStream(part, { start: FIRST_BYTES }), createWriteStream(whole, options));
    await renameDurably(whole, target);
    await rm(part);
  }
  const close = async (): Promise<void> => {
    await file?.close();
    release();
  };
  const guarded = (work: Promise<void>): Promise<void> =>
    work.catch((cause: unknown): never => {
      if (cause instanceof CatchwordError) throw cause;
      const hint = 'Name a file of your own in a directory that you can write to, on a disk with free space.';
      throw usageError(`${path} cannot be written: ${messageOf(cause)}`, hint, cause);
    });

  try {
    await guarded(begin());
  } catch (error) {
    await close();
    throw error;
  }
  return {
    done: accounts,
    failed,
    rest,
    write: (text, count, refused) => guarded(write(text, count, refused)),
    finish: () => guarded(finish()),
    close,
  };
}
