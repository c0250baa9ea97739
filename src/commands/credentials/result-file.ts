import { createHash } from 'node:crypto';
import { type FileHandle, open, readFile, realpath, rm, stat } from 'node:fs/promises';
import type { CredentialSubmission } from '../../client/credentials/submission.ts';
import { renameDurably, replaceFile } from '../../durable-names.ts';
import { CatchwordError, messageOf, systemCodeOf, usageError } from '../../errors.ts';
import { holdFile, NO_LOCKS } from '../../file-lock.ts';
import type { Source } from '../../input-stream.ts';
import { headerOf } from './rows.ts';

/*
 * Results go to `<out>.part`, which is renamed to `<out>` at the end. After each batch, `<out>.checkpoint` is replaced: how
 * many accounts and bytes are complete, and a digest of the service, the API key and these accounts. A later run with the
 * same digest resumes there. The rows cannot show this themselves: they contain neither the service nor the token by which
 * an account was submitted. The checkpoint stays with the results, so that a repeated command finds them complete.
 *
 * A restart writes a checkpoint of no accounts before it empties `<out>.part`: a run can resume from a crash in between.
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
  /** Completes the output; not called if the run breaks off. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

/** Accounts, bytes, digest, and accounts that were not verified; older checkpoints do not have these. */
const CHECKPOINT = /^(\d+) (\d+) ([0-9a-f]{64})(?: (\d+))?\n$/;

async function orNull<Value>(work: Promise<Value>): Promise<Value | null> {
  return await work.catch((error: unknown) => {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  });
}

const MOVE = 'Move it away, or name another file with --out.';

/** @returns the checkpoint of an earlier run; null if there is none */
async function readCheckpoint(path: string) {
  const text = await orNull(readFile(path, 'utf8'));
  if (text === null) return null;
  const [, accounts, bytes, digest, failed = 0] = CHECKPOINT.exec(text) ?? [];
  if (digest === undefined) throw usageError(`${path} is not a checkpoint of this command`, MOVE);
  return { accounts: Number(accounts), bytes: Number(bytes), digest, failed: Number(failed) };
}

const BEGINNINGS = [headerOf('csv'), '{"ok":'];

/** Whether it begins as results do; a crash may have cut it off, and a missing file holds nothing else. */
async function holdsResults(path: string): Promise<boolean> {
  const file = await orNull(open(path));
  try {
    const read = await file?.read(Buffer.alloc(64));
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
async function checkedSizes(names: readonly [path: string, part: string, ...string[]], input: Source['file']) {
  const [path, part] = names;
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
  const [part, checkpoint] = [`${target}.part`, `${target}.checkpoint`];
  const nextCheckpoint = `${checkpoint}.new`;
  const release = holdFile(target);
  if (release === null) {
    throw usageError(`${path} is in use by another run`, `Wait until it ends, or name another file. ${NO_LOCKS}`);
  }
  const hash = createHash('sha256').update(JSON.stringify(scope));
  let [accounts, bytes, failed] = [0, 0, 0];
  let file: FileHandle | undefined;

  const rest = (async function* () {
    for await (const submission of submissions) {
      hash.update(`${JSON.stringify([submission.reference, submission.guid, submission.accessToken])}\n`);
      yield submission;
    }
  })();
  /** Reads the accounts of an earlier run. @returns whether that run read the same ones, with the same scope */
  async function skip(last: { readonly accounts: number; readonly digest: string }): Promise<boolean> {
    while (accounts < last.accounts && (await rest.next()).done !== true) accounts++;
    return hash.copy().digest('hex') === last.digest;
  }
  async function saveCheckpoint(): Promise<void> {
    const text = `${accounts} ${bytes} ${hash.copy().digest('hex')} ${failed}\n`;
    await replaceFile(checkpoint, text);
  }
  async function start(): Promise<void> {
    await saveCheckpoint();
    file = await open(part, 'a', 0o600);
    await file.chmod(0o600);
    await file.truncate(bytes);
  }
  async function begin(): Promise<void> {
    const { targetSize, partSize } = await checkedSizes([path, part, checkpoint, nextCheckpoint], input);
    const last = await readCheckpoint(checkpoint);
    if (restart) return;
    // Both exist after an interrupted restart.
    if (targetSize > 0 && partSize === 0) {
      if (last?.bytes === targetSize && (await skip(last)) && (await rest.next()).done === true) {
        failed = last.failed;
        return;
      }
      throw usageError(`${path} already exists`, 'Name another file with --out. Or replace this one with --restart.');
    }
    if (partSize > 0) {
      const hint = last === null ? MOVE : 'Start over with --restart.';
      if (last === null || last.bytes > partSize) throw usageError(`${part} does not match ${checkpoint}`, hint);
      if (!(await skip(last)) && last.accounts > 0) {
        const hint = 'Repeat the command of that run, name another file with --out, or start over with --restart.';
        throw usageError(`${part} holds results for another input, service or API key`, hint);
      }
      [bytes, failed] = accounts > 0 ? [last.bytes, last.failed] : [0, 0];
    }
    await start();
  }
  async function write(text: string, count: number, refused: number): Promise<void> {
    if (file === undefined && count === 0) return;
    if (file === undefined) await start();
    await file?.appendFile(text);
    await file?.datasync();
    bytes += Buffer.byteLength(text);
    accounts += count;
    failed += refused;
    await saveCheckpoint();
  }
  async function finish(): Promise<void> {
    if (restart && accounts === 0) {
      throw usageError('the input is empty, so --restart replaces nothing', 'Check what writes the input.');
    }
    if (file === undefined) return;
    await renameDurably(part, target);
    await file.close();
    file = undefined;
  }
  const close = async (): Promise<void> => {
    await file?.close();
    if (file !== undefined && accounts === 0) for (const name of [part, checkpoint]) await rm(name, { force: true });
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
