import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { messageOf } from './errors.ts';

/*
 * A file is held by another beside it, `<path>.lock`, which names the process. It is made with its content in one step, so
 * that nobody finds it half-written. One whose process is no more is taken away, by one process at a time, which looks
 * again first: it may be somebody's new one by then. For that it makes `<path>.lock.turn` in the same way.
 */

/** The locks of this process: one with its number that is none of them was left by a process of the same number. */
const own = new Set<string>();

/** An empty one was left by a machine that lost its power. */
const LOCK = /^\d{0,10}$/;

/** Null where it cannot be read. */
function contentOf(lock: string): string | null {
  try {
    return readFileSync(lock, 'utf8');
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

/** @throws Error where a process that is alive holds the lock, or where it is none */
function refuseHeld(lock: string): void {
  const content = contentOf(lock) ?? '';
  if (!LOCK.test(content)) throw new Error(`${lock} is in the way, and was not made by catchword`);
  const pid = Number(content);
  const isHeld = pid === process.pid ? own.has(lock) : pid > 0 && isAlive(pid);
  if (isHeld) throw new Error(`is in use by process ${pid}`);
}

/** @returns false where there is one */
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

function remove(lock: string): void {
  try {
    rmSync(lock, { force: true });
  } catch (cause) {
    throw new Error(`${lock} cannot be removed: ${messageOf(cause)}`, { cause });
  }
}

function clear(lock: string): void {
  const turn = `${lock}.turn`;
  if (!made(turn)) {
    refuseHeld(turn);
    // Left by a process that was killed in its turn.
    remove(turn);
    return;
  }
  try {
    refuseHeld(lock);
    remove(lock);
  } finally {
    remove(turn);
  }
}

/**
 * Holds a file for this process, until it is given back or the process ends, however it does. Processes of other machines
 * and containers are not seen.
 * @param path of a file in a directory that can be written to, without links: the same file has one path
 * @returns gives the file back; idempotent
 * @throws Error whose message says which process holds it, or why the lock cannot be written
 */
export function holdFile(path: string): () => void {
  const lock = `${path}.lock`;
  for (let tries = 3; !made(lock); tries--) {
    refuseHeld(lock);
    if (tries === 0) throw new Error(`${lock} cannot be taken over`);
    clear(lock);
  }
  own.add(lock);
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    own.delete(lock);
    if (contentOf(lock) === String(process.pid)) rmSync(lock, { force: true });
  };
}
