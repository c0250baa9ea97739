import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { messageOf } from '../errors.ts';

/** The locks of this process: one with its number that is none of them was left by a process of the same number. */
const own = new Set<string>();

/** Null where there is no lock, or one that says nothing. */
function holderOf(lock: string): number | null {
  try {
    const pid = Number(readFileSync(lock, 'utf8'));
    return Number.isSafeInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process may not be signalled, but it is there.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** Makes the lock with its content in one step, so that nobody finds it empty. @returns false where there is one */
function made(lock: string): boolean {
  const draft = `${lock}.${process.pid}`;
  try {
    writeFileSync(draft, String(process.pid), { mode: 0o600 });
    linkSync(draft, lock);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/**
 * Holds a file for this process by another beside it, `<path>.lock`, with the number of the process. One that was left
 * by a process that is no more is taken over. Processes of other machines and containers are not seen.
 * @returns gives the file back; idempotent
 * @throws Error whose message says who holds it, or why the lock cannot be written
 */
export function holdFile(path: string): () => void {
  const lock = `${path}.lock`;
  for (let tries = 2; !made(lock); tries--) {
    const pid = holderOf(lock);
    const held = pid === process.pid ? own.has(lock) : pid !== null && isAlive(pid);
    if (held) throw new Error(`is in use by process ${pid}`);
    if (tries === 0) throw new Error(`${lock} cannot be taken over`);
    try {
      rmSync(lock, { force: true });
    } catch (cause) {
      throw new Error(`${lock} cannot be removed: ${messageOf(cause)}`, { cause });
    }
  }
  own.add(lock);
  return () => {
    if (own.delete(lock) && holderOf(lock) === process.pid) rmSync(lock, { force: true });
  };
}
