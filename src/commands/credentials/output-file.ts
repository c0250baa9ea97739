import type { FileHandle } from 'node:fs/promises';
import { CatchwordError } from '../../errors.ts';
import { holdFile, NO_LOCKS } from '../../file-lock.ts';
import {
  type AskedService,
  digestOfService,
  readStates,
  type States,
  stateLine,
  stateLines,
} from '../credential-state.ts';
import { closeOwn, makeOwn, type OwnFile, openOwn, refuseInput, targetOf, unwritable } from '../own-file.ts';
import type { CredentialInput } from './input.ts';
import { type CredentialOutput, HEADER, linesOf, type ResultFormat } from './output.ts';
import { checkBeginning, noneDone, type Resumed, resume } from './resume.ts';

export interface ResultFile extends AskedService {
  readonly path: string;
  readonly format: ResultFormat;
  /** Throw an earlier run's results away. */
  readonly restart: boolean;
}

/** Two runs would write their results one between the other. */
function hold(path: string, target: string): () => void {
  const release = holdFile(target);
  if (release !== null) return release;
  throw new CatchwordError('USAGE', `${path} is in use by another run`, {
    hint: `Wait until that has ended, or name another file with --out. ${NO_LOCKS}`,
  });
}

/** Such as that of a program that failed: no reason to throw results away. */
function namesNobody(): CatchwordError {
  return new CatchwordError('USAGE', 'the input names no account, so --restart throws nothing away', {
    hint: 'Look at what makes the input; results that are no longer needed are removed by hand.',
  });
}

function refuseOtherService(path: string, states: States, service: string): void {
  if ([...states.values()].every((state) => state.service === service)) return;
  throw new CatchwordError('USAGE', `${path} holds results of another service or another API key`, {
    hint: 'Name another file with --out, or begin anew with --restart; else set CATCHWORD_BASE_URL and CATCHWORD_API_KEY as they were.',
  });
}

/**
 * A file for this user and this process alone (mode 0600), which goes on where an earlier run of the same input at the
 * same service ended; and beside it `<path>.state`, by which that is known. What both hold stays as it is until there
 * are results to write: a run that gets none throws nothing away. `finish` throws CatchwordError USAGE where such a run
 * was to begin anew.
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
  // Before anything is made: what a run leaves that is refused would be in the way of the one that holds it.
  const release = hold(path, await targetOf(path));
  const opened: OwnFile[] = [];
  let hasBegun = false;
  const close = async (): Promise<void> => {
    for (const own of opened.splice(0)) await closeOwn(own, hasBegun);
    release();
  };
  const opening = async (ownPath: string): Promise<FileHandle> => {
    const own = await openOwn(ownPath);
    opened.push(own);
    await refuseInput(own, identity);
    return own.file;
  };
  try {
    const file = await opening(path);
    await checkBeginning(path, file);
    const statePath = `${path}.state`;
    const noted = await opening(statePath);
    const states = await readStates(statePath, noted);
    const service = digestOfService(asked);
    if (!restart && (await file.stat()).size > 0) refuseOtherService(path, states, service);
    const resumed = restart ? noneDone() : await resume({ path, format, states, statePath }, submissions);
    // Before anything is asked, since it may be refused; and not of a file that is something else.
    for (const own of opened) await makeOwn(own);
    const { bytes, done, kept } = resumed;
    const begin = async (): Promise<void> => {
      if (hasBegun) return;
      hasBegun = true;
      await file.truncate(bytes);
      await noted.truncate(stateLines(states, done).length);
      if (bytes === 0 && format === 'csv') await file.appendFile(HEADER);
    };
    return {
      ...resumed,
      submitted: (submission) => kept.add(submission),
      write: async (results) => {
        await written(begin());
        // First: results that no state tells of could not be gone on with.
        await written(noted.appendFile(stateLine(kept, service)));
        await written(file.appendFile(linesOf(results, format)));
      },
      finish: async () => {
        if (restart && !hasBegun) throw namesNobody();
        await written(begin());
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
