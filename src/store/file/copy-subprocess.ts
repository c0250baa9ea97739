import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Answer, CatchwordError, fromAnswer } from '@catchword/base/errors';
import { type Copied, copyMirror } from './copy-mirror.ts';
import type { CheckContent } from './inode-check.ts';

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

/** Runs copy-program.ts: SQLite copies and checks in one call each, which only the end of a process interrupts. */
async function runApart<T>(args: readonly string[], signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw copyInterrupted();
  const { fork } = await import('node:child_process');
  const program = fileURLToPath(new URL('./copy-program.js', import.meta.url));
  const child = fork(program, args, { execArgv: [], env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const stop = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', stop, { once: true });
  let answer: Answer<T> | undefined;
  child.once('message', (message: Answer<T>) => {
    answer = message;
  });
  try {
    const [code, by] = (await once(child, 'exit')) as [number | null, string | null];
    if (signal.aborted) throw copyInterrupted();
    if (answer === undefined) {
      const hint =
        'Look in the log of the system: it may have had no memory left, or another program has ended the process.';
      throw new CatchwordError('BACKUP_FAILED', `the process that copies has ended (${by ?? code})`, { hint });
    }
    return fromAnswer(answer);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Copies in a process of its own. */
export const copyApart: Copy = async (from, to, signal) => await runApart([from, to], signal);

/** Checks in a process of its own whether an open mirror and its WAL fit together. */
export const checkApart: CheckContent = async (path, signal) => await runApart([path], signal);
