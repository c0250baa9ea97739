import { realpathSync } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { CatchwordError, messageOf } from '../errors.ts';
import { holdFile } from '../hold-file.ts';
import type { CredentialInput, FileIdentity } from './credential-input.ts';
import { type CredentialOutput, HEADER, linesOf, type ResultFormat } from './credential-output.ts';
import { type Resumed, resume } from './credential-resume.ts';
import {
  type AskedService,
  digestOfService,
  readStates,
  type States,
  stateLine,
  stateLines,
} from './credential-state.ts';

export interface ResultFile extends AskedService {
  readonly path: string;
  readonly format: ResultFormat;
  /** Throw an earlier run's results away. */
  readonly restart: boolean;
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

/** Links of both kinds lead to the file that is read, and so does stdin. */
async function refuseInput(path: string, file: FileHandle, input: FileIdentity | null): Promise<void> {
  const { dev, ino } = await file.stat({ bigint: true });
  if (input?.dev !== dev || input.ino !== ino) return;
  throw new CatchwordError('USAGE', `${path} is the file that is read`, { hint: 'Name another file with --out.' });
}

/** Two runs would write their results one between the other. */
function hold(path: string): () => void {
  const release = holdFile(realpathSync(path));
  if (release !== null) return release;
  throw new CatchwordError('USAGE', `${path} is in use by another run`, {
    hint: 'Wait until that has ended, or name another file with --out.',
  });
}

function refuseOtherService(path: string, states: States, service: string): void {
  if ([...states.values()].every((state) => state.service === service)) return;
  throw new CatchwordError('USAGE', `${path} holds results of another service or another API key`, {
    hint: 'Name another file with --out, or begin anew with --restart; else set CATCHWORD_BASE_URL and CATCHWORD_API_KEY as they were.',
  });
}

/** It holds tokens, or what is made of them: for this user alone, whoever made it. */
async function keepBytes(file: FileHandle, bytes: number): Promise<void> {
  await file.chmod(0o600);
  await file.truncate(bytes);
}

/**
 * A file for this user and this process alone (mode 0600), which goes on where an earlier run of the same input at the
 * same service ended; and beside it `<path>.state`, by which that is known.
 * @throws CatchwordError USAGE
 */
export async function toFile(
  { path, format, restart, ...asked }: ResultFile,
  { submissions, identity }: Pick<CredentialInput, 'submissions' | 'identity'>,
): Promise<CredentialOutput & Resumed> {
  const written = async <Value>(work: Promise<Value>): Promise<Value> =>
    await work.catch((error: unknown) => {
      throw unwritable(path, error);
    });
  const opened: FileHandle[] = [];
  let release = (): void => {};
  const close = async (): Promise<void> => {
    for (const file of opened.splice(0)) await file.close();
    release();
  };
  const openOwn = async (ownPath: string): Promise<FileHandle> => {
    const file = await openRegular(ownPath);
    opened.push(file);
    await refuseInput(ownPath, file, identity);
    return file;
  };
  try {
    const file = await openOwn(path);
    release = hold(path);
    const statePath = `${path}.state`;
    const noted = await openOwn(statePath);
    const states = await readStates(statePath, noted);
    const service = digestOfService(asked);
    if (restart) await written(keepBytes(file, 0));
    if ((await file.stat()).size > 0) refuseOtherService(path, states, service);
    const resumed = await resume({ path, format, states, statePath }, submissions);
    const { bytes, done, kept } = resumed;
    await written(keepBytes(file, bytes));
    const lines = stateLines(states, done);
    await written(keepBytes(noted, lines.length));
    if (bytes === 0 && format === 'csv') await written(file.appendFile(HEADER));
    return {
      ...resumed,
      submitted: (submission) => kept.add(submission),
      write: async (results) => {
        // First: results that no state tells of could not be gone on with.
        await written(noted.appendFile(stateLine(kept, service)));
        await written(file.appendFile(linesOf(results, format)));
      },
      finish: async () => {},
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
