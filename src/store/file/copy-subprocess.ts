import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Answer, CatchwordError, fromAnswer } from '../../base/errors.ts';
import { type Copied, copyMirror } from './copy-mirror.ts';

/** Copies a mirror as `copyMirror`, until `signal` aborts. @throws as `copyMirror`; CatchwordError INTERRUPTED */
export type Copy = (from: string, to: string, signal: AbortSignal) => Promise<Copied>;

export function copyInterrupted(): CatchwordError {
  const hint = 'Run the command again.';
  return new CatchwordError('INTERRUPTED', 'interrupted; nothing was written', { hint });
}

/** Copies in this thread, which cannot be interrupted meanwhile. */
export const copyHere: Copy = async (from, to, signal) => {
  if (signal.aborted) throw copyInterrupted();
  return copyMirror(from, to);
};

/** Copies in a process of its own: SQLite copies and checks in one call each, which only the end of a process interrupts. */
export const copyApart: Copy = async (from, to, signal) => {
  if (signal.aborted) throw copyInterrupted();
  const program = fileURLToPath(new URL('./copy-program.js', import.meta.url));
  const child = fork(program, [from, to], { execArgv: [], env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const stop = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', stop, { once: true });
  let answer: Answer<Copied> | undefined;
  child.once('message', (message: Answer<Copied>) => {
    answer = message;
  });
  try {
    const [code, by] = (await once(child, 'exit')) as [number | null, string | null];
    if (signal.aborted) throw copyInterrupted();
    if (answer === undefined) {
      const hint = 'Look in the log of the system: it may have no memory left.';
      throw new CatchwordError('BACKUP_FAILED', `the process that copies has ended (${by ?? code})`, { hint });
    }
    return fromAnswer(answer);
  } finally {
    signal.removeEventListener('abort', stop);
  }
};
