import { createHash } from 'node:crypto';
import { appendFile, type FileHandle, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import type { CredentialSubmission } from '../../client/credentials/submission.ts';
import { CatchwordError, messageOf, systemCodeOf } from '../../errors.ts';
import { holdFile, NO_LOCKS } from '../../file-lock.ts';
import type { Source } from '../../input-stream.ts';
import { usageError } from '../shared/usage-error.ts';

/*
 * Results go to `<out>.part`, which is renamed to `<out>` at the end. After each batch, `<out>.checkpoint` gets a line: how
 * many accounts and bytes are complete, and a digest of the service, the API key and these accounts. A later run with the
 * same digest resumes there. The rows cannot show this themselves: they contain neither the service nor the token by which
 * an account was submitted.
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

/** @returns the last checkpoint of an earlier run; of no accounts if there is none */
async function readCheckpoint(part: string, checkpoints: string) {
  const size = (await orNull(stat(part)))?.size;
  const lines = await orNull(readFile(checkpoints, 'utf8'));
  if (size === undefined && lines === null) return { accounts: 0, bytes: 0, digest: '' };
  // A crash may have cut the line after the last complete one.
  const [, accounts, bytes, digest] = CHECKPOINT.exec(lines?.split('\n').at(-2) ?? '') ?? [];
  if (Number(bytes) <= (size ?? 0)) return { accounts: Number(accounts), bytes: Number(bytes), digest };
  throw usageError(`${part} does not match ${checkpoints}`, 'Start over with --restart.');
}

/**
 * Opens a file for results, which only this user can read (mode 0600) and no other run writes at the same time.
 * @param restart whether to discard the results of an earlier run
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
  let [accounts, bytes] = [0, 0];
  let file: FileHandle | undefined;

  async function* digested(): AsyncGenerator<CredentialSubmission, void> {
    for await (const submission of submissions) {
      hash.update(`${JSON.stringify([submission.reference, submission.guid, submission.accessToken])}\n`);
      yield submission;
    }
  }
  const rest = digested();
  const save = async (text: string, count: number): Promise<void> => {
    await file?.appendFile(text);
    await file?.datasync();
    bytes += Buffer.byteLength(text);
    accounts += count;
    await appendFile(checkpoints, `${accounts} ${bytes} ${digest()}\n`, { mode: 0o600 });
  };
  const removePart = () => Promise.all([part, checkpoints].map((name) => rm(name, { force: true })));
  const checkFiles = async (): Promise<void> => {
    const files = await Promise.all([target, part, checkpoints].map((name) => orNull(stat(name, { bigint: true }))));
    const hint = 'Name another file with --out.';
    if (files.some((file) => file !== null && file.dev === input?.dev && file.ino === input.ino)) {
      throw usageError(`--out ${path} would overwrite the input`, hint);
    }
    if (files[0]?.isFile() === false) throw usageError(`${path} is not a regular file`, hint);
    if (restart || !files[0]?.size) return;
    throw usageError(`${path} already exists`, `${hint} Or replace this one with --restart.`);
  };
  const begin = async (): Promise<void> => {
    await checkFiles();
    if (restart) await removePart();
    const earlier = await readCheckpoint(part, checkpoints);
    while (accounts < earlier.accounts && (await rest.next()).done !== true) accounts++;
    if (earlier.accounts > 0 && digest() !== earlier.digest) {
      const hint = 'Repeat the command of that run, name another file with --out, or start over with --restart.';
      throw usageError(`${part} holds results for another input, service or API key`, hint);
    }
    bytes = accounts > 0 ? earlier.bytes : 0;
    await save('', 0);
    file = await open(part, 'a', 0o600);
    await file.chmod(0o600);
    await file.truncate(bytes);
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
        await rename(part, target);
        await rm(checkpoints);
      }),
    close,
  };
}
