import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, open, realpath, rm, stat } from 'node:fs/promises';
import { text as textOf } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { renameDurably } from '@catchword/base/durable-names';
import { usageError } from '@catchword/base/errors';
import { holdFile, NO_LOCKS } from '@catchword/base/file-lock';
import type { Source } from '@catchword/base/input-stream';
import type { CredentialResult, CredentialSubmission } from 'catchword-client/credentials/submission';
import { stringify } from 'csv-stringify/sync';

export type ResultFormat = 'csv' | 'ndjson';

const COLUMNS = ['reference', 'guid', 'access_token', 'email', 'code', 'message'];
/** White space at an end of a field is quoted, too: some readers would remove it. */
const CSV = { columns: COLUMNS, quoted_match: /^\s|\s$/ };

export function headerOf(format: ResultFormat): string {
  return format === 'csv' ? stringify([COLUMNS], CSV) : '';
}

function rowOf(result: CredentialResult) {
  const { ok, reference, guid } = result;
  if (result.ok) return { ok, reference, guid, access_token: result.accessToken, email: result.email };
  return { ok, reference, guid, code: result.code, message: result.message };
}

export function rowsOf(results: readonly CredentialResult[], format: ResultFormat): string {
  const rows = results.map(rowOf);
  if (format === 'ndjson') return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  return stringify(
    rows.map((row) => (row.ok ? row : { ...row, code: row.code ?? 'none' })),
    CSV,
  );
}

/*
 * Results go to `<out>.part`. Its first line has a fixed length, and is written again after each batch is on the disk: a
 * digest of the service, the API key, the format and the accounts so far, the number of accounts, the length of the file,
 * and how many accounts were not verified. A run with the same digest resumes there. The rows cannot show this themselves:
 * they contain neither the service nor the submitted token of an account.
 *
 * At the end, everything but the first line becomes `<out>`. Until then, `<out>` keeps the results of an earlier run.
 */

const FIRST_LINE = /^catchword credentials verify ([0-9a-f]{64}) +(\d+) +(\d+) +(\d+)\n/;

/** Progress of a run: the accounts of its results, those among them that were not verified, the bytes of `.part`. */
interface Progress {
  readonly accounts: number;
  readonly failed: number;
  readonly bytes: number;
}

function firstLineOf(digest: string, { accounts, bytes, failed }: Progress): string {
  const counts = [accounts, bytes, failed].map((one) => String(one).padStart(16));
  return `catchword credentials verify ${digest} ${counts.join(' ')}\n`;
}

const FIRST_BYTES = firstLineOf('0'.repeat(64), { accounts: 0, bytes: 0, failed: 0 }).length;
const NOTHING: Progress = { accounts: 0, failed: 0, bytes: FIRST_BYTES };
const OTHER = 'Name another file with --out.';
const MOVE = 'Move it away, or name another file with --out.';

/** Paths of the results, of the incomplete ones, and of the file that becomes the results. */
type Paths = Readonly<Record<'out' | 'part' | 'whole', string>>;

/** @returns the size of a file, 0 if it is missing, and its first bytes */
async function beginningOf(path: string, input: Source['file'], out: string) {
  const file = await stat(path, { bigint: true }).catch(() => null);
  if (file === null) return { size: 0, text: '' };
  if (file.dev === input?.dev && file.ino === input.ino)
    throw usageError(`--out ${out} would overwrite the input`, OTHER);
  if (!file.isFile()) throw usageError(`${path} is not a regular file`, OTHER);
  return { size: Number(file.size), text: await textOf(createReadStream(path, { end: FIRST_BYTES - 1 })) };
}

/** Checks that the results harm no other file. @returns where an earlier run ended; null if this one starts over */
async function earlierRun({ out, part, whole }: Paths, input: Source['file'], restart: boolean) {
  await beginningOf(whole, input, out);
  const results = await beginningOf(out, input, out);
  if (results.size > 0 && ![headerOf('csv'), '{"ok":'].some((beginning) => results.text.startsWith(beginning))) {
    throw usageError(`${out} exists, and does not hold results`, MOVE);
  }
  const { size, text } = await beginningOf(part, input, out);
  const [, digest, ...counts] = FIRST_LINE.exec(text) ?? [];
  const [accounts = 0, bytes = 0, failed = 0] = counts.map(Number);
  if (size > 0 && (digest === undefined || bytes > size)) {
    throw usageError(`${part} exists, and does not hold incomplete results`, MOVE);
  }
  if (restart) return null;
  if (accounts > 0) return { digest, progress: { accounts, bytes, failed } };
  if (results.size === 0) return null;
  const hint = 'It is complete. Name another file with --out, or replace this one with --restart.';
  throw usageError(`${out} already exists`, hint);
}

/** Hashes submitted accounts in their order. @param scope what the results depend on besides the accounts */
function hashAccounts(scope: readonly string[], submissions: AsyncIterable<CredentialSubmission>) {
  const hash = createHash('sha256').update(JSON.stringify(scope));
  /** Accounts that were read, and are not hashed yet: a batch may end before the account that was read last. */
  const pending: string[] = [];
  const rest = (async function* () {
    for await (const submission of submissions) {
      pending.push(`${JSON.stringify([submission.reference, submission.guid, submission.accessToken])}\n`);
      yield submission;
    }
  })();
  const advance = (count: number) => hash.update(pending.splice(0, count).join(''));
  return {
    rest,
    advance,
    /** Reads and hashes this many accounts, or all if there are fewer. */
    skip: async (count: number): Promise<void> => {
      for (let skipped = 0; skipped < count && (await rest.next()).done !== true; skipped++) advance(1);
    },
    digest: (): string => hash.copy().digest('hex'),
  };
}

async function writeAt(to: FileHandle, text: string, position: number): Promise<number> {
  const data = Buffer.from(text);
  for (let at = 0; at < data.length; ) at += (await to.write(data, at, null, position + at)).bytesWritten;
  await to.datasync();
  return data.length;
}

/**
 * Opens a file for results, which only this user can read (mode 0600) and no other run writes at the same time.
 * @param restart whether to replace the results of an earlier run, as soon as there are others
 * @param scope what the results depend on besides the submissions
 * @throws CatchwordError USAGE; as its methods do, the system's error if a file cannot be read or written
 */
export async function openResultFile(
  out: string,
  restart: boolean,
  scope: readonly string[],
  submissions: AsyncIterable<CredentialSubmission>,
  input: Source['file'],
) {
  if (out === '') throw usageError('--out is empty', 'Name a file, or omit --out to print the results.');
  const target = await realpath(out).catch(() => out);
  const paths = { out, part: `${target}.part`, whole: `${target}.part.new` };
  const { part, whole } = paths;
  const release = holdFile(target);
  if (release === null) {
    throw usageError(`${out} is in use by another run`, `Wait until it ends, or name another file. ${NO_LOCKS}`);
  }
  const hashed = hashAccounts(scope, submissions);
  let progress = NOTHING;
  let file: FileHandle | undefined;
  try {
    const earlier = await earlierRun(paths, input, restart);
    if (earlier !== null) {
      progress = earlier.progress;
      await hashed.skip(progress.accounts);
      if (hashed.digest() !== earlier.digest) {
        const hint = 'Repeat the command of that run, name another file with --out, or start over with --restart.';
        throw usageError(`${part} holds results for another input, service or API key`, hint);
      }
    }
  } catch (error) {
    release();
    throw error;
  }
  return {
    /** Accounts whose results an earlier run wrote; `failed` of them were not verified, and `rest` are still to verify. */
    done: progress.accounts,
    failed: progress.failed,
    rest: hashed.rest,
    /** @param refused how many of the accounts were not verified */
    write: async (text: string, count: number, refused: number): Promise<void> => {
      const accounts = progress.accounts + count;
      if (restart && accounts === 0) {
        throw usageError('the input is empty, so --restart replaces nothing', 'Check what writes the input.');
      }
      if (file === undefined) {
        file = await open(part, progress.accounts > 0 ? 'r+' : 'w', 0o600);
        await file.chmod(0o600);
        // A crash between two batches must not leave rows without a first line.
        if (progress.accounts === 0) await writeAt(file, firstLineOf(hashed.digest(), progress), 0);
        await file.truncate(progress.bytes);
      }
      const bytes = progress.bytes + (await writeAt(file, text, progress.bytes));
      hashed.advance(count);
      progress = { accounts, bytes, failed: progress.failed + refused };
      await writeAt(file, firstLineOf(hashed.digest(), progress), 0);
    },
    /** Completes the output after the last write; not called if the run breaks off. */
    finish: async (): Promise<void> => {
      await rm(whole, { force: true });
      const options = { flags: 'wx', mode: 0o600, flush: true };
      await pipeline(createReadStream(part, { start: FIRST_BYTES }), createWriteStream(whole, options));
      await renameDurably(whole, target);
      await rm(part);
    },
    close: async (): Promise<void> => {
      await file?.close();
      release();
    },
  };
}
