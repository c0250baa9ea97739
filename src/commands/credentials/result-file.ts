import { createHash } from 'node:crypto';
import { appendFile, type FileHandle, open, readFile, realpath, rename, rm, stat, truncate } from 'node:fs/promises';
import type { CredentialSubmission } from '../../client/credentials/submission.ts';
import { CatchwordError, messageOf, systemCodeOf } from '../../errors.ts';
import { holdFile, NO_LOCKS } from '../../file-lock.ts';
import type { Source } from '../../input-stream.ts';
import { usageError } from '../shared/usage-error.ts';
import { headerOf } from './rows.ts';

/*
 * Results go to `<out>.part`, which is renamed to `<out>` at the end. After each batch, `<out>.checkpoint` gets a line: how
 * many accounts and bytes are complete, and a digest of the service, the API key and these accounts. A later run with the
 * same digest resumes there. The rows cannot show this themselves: they contain neither the service nor the token by which
 * an account was submitted. The checkpoint stays with the results, so that a repeated command finds them complete.
 *
 * A restart appends a checkpoint of no accounts before it empties `<out>.part`: a run can resume from a crash in between.
 */

/** Where results go. */
export interface ResultOutput {
  /** Accounts whose results an earlier run wrote. */
  readonly done: number;
  /** The accounts still to verify. */
  readonly rest: AsyncIterable<CredentialSubmission>;
  write(text: string, accounts: number): Promise<void>;
  /** Completes the output; not called if the run breaks off. */
  finish?(): Promise<void>;
  close?(): Promise<void>;
}

const CHECKPOINT = /^(\d+) (\d+) ([0-9a-f]{64})$/;

async function orNull<Value>(work: Promise<Value>): Promise<Value | null> {
  return await work.catch((error: unknown) => {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  });
}

/** A checkpoint that a crash or a full disk cut off. */
const CUT = /^(\d+ ?(\d+ ?[\da-f]*)?)?$/;

const MOVE = 'Move it away, or name another file with --out.';

/** @returns the last complete checkpoint of an earlier run, if any, and the bytes up to its end */
async function readCheckpoint(path: string) {
  const text = (await orNull(readFile(path, 'utf8'))) ?? '';
  const complete = text.slice(0, text.lastIndexOf('\n') + 1);
  const found = CHECKPOINT.exec(complete.split('\n').at(-2) ?? '');
  if (found === null && !CUT.test(text)) throw usageError(`${path} is not a checkpoint of this command`, MOVE);
  const [, accounts, bytes, digest] = found ?? [];
  const last = found === null ? null : { accounts: Number(accounts), bytes: Number(bytes), digest };
  return { last, end: Buffer.byteLength(complete) };
}

/** How results begin. */
const BEGINNINGS = [headerOf('csv'), '{"ok":'];

/** Whether it begins as results do; a crash may have cut it off, and a missing file holds nothing else. */
async function holdsResults(path: string): Promise<boolean> {
  const file = await orNull(open(path));
  try {
    const length = Math.max(...BEGINNINGS.map((beginning) => beginning.length));
    const read = await file?.read(Buffer.alloc(length), 0, length, 0);
    const text = read?.buffer.toString('utf8', 0, read.bytesRead) ?? '';
    return BEGINNINGS.some((beginning) => text.startsWith(beginning) || beginning.startsWith(text));
  } finally {
    await file?.close();
  }
}

/**
 * Checks that writing results harms no other file.
 * @returns the sizes of the complete results and of the incomplete ones
 */
async function checkedSizes(path: string, part: string, checkpoints: string, input: Source['file']) {
  const names = [path, part, checkpoints];
  const files = await Promise.all(names.map((name) => orNull(stat(name, { bigint: true }))));
  const hint = 'Name another file with --out.';
  if (files.some((file) => file !== null && file.dev === input?.dev && file.ino === input.ino)) {
    throw usageError(`--out ${path} would overwrite the input`, hint);
  }
  const irregular = names.find((_name, at) => files[at]?.isFile() === false);
  if (irregular !== undefined) throw usageError(`${irregular} is not a regular file`, hint);
  for (const name of [path, part]) {
    if (!(await holdsResults(name))) throw usageError(`${name} exists, and does not hold results`, MOVE);
  }
  return { targetSize: Number(files[0]?.size ?? 0), partSize: Number(files[1]?.size ?? 0) };
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
  const [part, checkpoints] = [`${target}.part`, `${target}.checkpoint`];
  const release = holdFile(target);
  if (release === null) {
    throw usageError(`${path} is in use by another run`, `Wait until it ends, or name another file. ${NO_LOCKS}`);
  }
  const hash = createHash('sha256').update(JSON.stringify(scope));
  const digest = (): string => hash.copy().digest('hex');
  let [accounts, bytes, endOfCheckpoints] = [0, 0, 0];
  let file: FileHandle | undefined;

  async function* digested(): AsyncGenerator<CredentialSubmission, void> {
    for await (const submission of submissions) {
      hash.update(`${JSON.stringify([submission.reference, submission.guid, submission.accessToken])}\n`);
      yield submission;
    }
  }
  const rest = digested();
  const addCheckpoint = () => appendFile(checkpoints, `${accounts} ${bytes} ${digest()}\n`, { mode: 0o600 });
  const start = async (): Promise<void> => {
    await orNull(truncate(checkpoints, endOfCheckpoints));
    await addCheckpoint();
    file = await open(part, 'a', 0o600);
    await file.chmod(0o600);
    await file.truncate(bytes);
  };
  const save = async (text: string, count: number): Promise<void> => {
    if (file === undefined) {
      if (count === 0) return;
      await start();
    }
    await file?.appendFile(text);
    await file?.datasync();
    bytes += Buffer.byteLength(text);
    accounts += count;
    await addCheckpoint();
  };
  const removePart = () => Promise.all([part, checkpoints].map((name) => rm(name, { force: true })));
  const skip = async (count: number): Promise<void> => {
    while (accounts < count && (await rest.next()).done !== true) accounts++;
  };
  const begin = async (): Promise<void> => {
    const { targetSize, partSize } = await checkedSizes(path, part, checkpoints, input);
    const { last, end } = await readCheckpoint(checkpoints);
    endOfCheckpoints = end;
    if (restart) return;
    // Both exist after an interrupted restart.
    if (targetSize > 0 && partSize === 0) {
      if (last?.bytes === targetSize) await skip(last.accounts);
      const isComplete = last?.bytes === targetSize && last.digest === digest() && (await rest.next()).done === true;
      if (isComplete) return;
      throw usageError(`${path} already exists`, 'Name another file with --out. Or replace this one with --restart.');
    }
    if (partSize > 0) {
      const hint = last === null ? MOVE : 'Start over with --restart.';
      if (last === null || last.bytes > partSize) throw usageError(`${part} does not match ${checkpoints}`, hint);
      await skip(last.accounts);
      if (last.accounts > 0 && digest() !== last.digest) {
        const hint = 'Repeat the command of that run, name another file with --out, or start over with --restart.';
        throw usageError(`${part} holds results for another input, service or API key`, hint);
      }
      bytes = accounts > 0 ? last.bytes : 0;
    }
    await start();
  };
  const close = async (): Promise<void> => {
    await file?.close();
    if (file !== undefined && accounts === 0) await removePart();
    release();
  };
  const guarded = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (cause) {
      if (cause instanceof CatchwordError) throw cause;
      const hint = 'Name a file of your own in a directory that you can write to, on a disk with free space.';
      throw usageError(`${path} cannot be written: ${messageOf(cause)}`, hint, cause);
    }
  };
  await guarded(begin).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    done: accounts,
    rest,
    write: (text, count) => guarded(() => save(text, count)),
    finish: () =>
      guarded(async () => {
        if (restart && accounts === 0) {
          throw usageError('the input is empty, so --restart replaces nothing', 'Check what writes the input.');
        }
        if (file === undefined) return;
        await rename(part, target);
        await file.close();
        file = undefined;
      }),
    close,
  };
}
