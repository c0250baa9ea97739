import { randomUUID } from 'node:crypto';
import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Clock } from '../clock.ts';
import { systemCodeOf } from '../errors.ts';

/*
 * A lock file between processes, on one machine or on a file system that several share. It names its holder, so that one
 * whose holder was killed is taken over at once. Of a holder that cannot be looked for, or whose process id somebody else
 * has by now, its age tells: a holder keeps it young for as long as it works.
 */

const RENEW_MS = 60_000;
/** For safety: whoever did not renew it three times over has died. */
const LOCK_MAX_AGE_MS = 3 * RENEW_MS;
const LOOK_AGAIN_MS = 200;

/** Null where it was released meanwhile. */
interface Found {
  readonly content: string;
  readonly mtimeMs: number;
}

/** @throws what the file system throws, but for a file that is not there */
async function orGone<Value>(work: Promise<Value>): Promise<Value | null> {
  try {
    return await work;
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

async function look(lock: string): Promise<Found | null> {
  const content = await orGone(readFile(lock, 'utf8'));
  const found = await orGone(stat(lock));
  return content === null || found === null ? null : { content, mtimeMs: found.mtimeMs };
}

function isAlive(pid: number, mtimeMs: number): boolean {
  // A container starts again with the same name and the same ids: then the lock is older than this process.
  if (pid === process.pid) return mtimeMs >= Date.now() - process.uptime() * 1_000;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's process may not be signalled, but it is there.
    return systemCodeOf(error) !== 'ESRCH';
  }
}

function isAbandoned({ content, mtimeMs }: Found, clock: Clock): boolean {
  const [host, pid] = content.split(' ');
  const hasDied = host === hostname() && /^[1-9]\d*$/.test(pid ?? '') && !isAlive(Number(pid), mtimeMs);
  return hasDied || clock.now() - mtimeMs > LOCK_MAX_AGE_MS;
}

/** @returns whether the file is there now because of this call */
async function create(file: string, content: string): Promise<boolean> {
  try {
    await writeFile(file, content, { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Takes an abandoned lock away. Of several that found it so one at a time, and only while it is abandoned still: it may be
 * somebody's new one by then.
 * @returns whether it was this one's turn
 */
async function clear(lock: string, isOver: (found: Found) => boolean, clock: Clock): Promise<boolean> {
  const turn = `${lock}.clear`;
  if (!(await create(turn, ''))) {
    const found = await look(turn);
    if (found !== null && isAbandoned(found, clock)) await rm(turn, { force: true });
    return false;
  }
  try {
    const found = await look(lock);
    if (found !== null && isOver(found)) await rm(lock, { force: true });
    return true;
  } finally {
    await rm(turn, { force: true });
  }
}

/** A lock that somebody else took over is left alone. */
async function renew(lock: string, mine: string): Promise<void> {
  const now = new Date();
  const content = await readFile(lock, 'utf8').catch(() => null);
  // Where it cannot be renewed, it is taken over in the end.
  if (content === mine) await utimes(lock, now, now).catch(() => {});
}

/** What cannot be released is abandoned to those who look at its age. */
async function release(lock: string, mine: string): Promise<void> {
  const content = await readFile(lock, 'utf8').catch(() => null);
  if (content === mine) await rm(lock, { force: true }).catch(() => {});
}

/**
 * Waits for the lock, however long its holder works, or until `signal` aborts. It is held until it is released.
 * @param lock path of the lock file
 * @returns what releases it; a lock that somebody else took over is left alone. Never rejects.
 * @throws what the file system throws; the signal's reason
 */
export async function acquireLock(lock: string, clock: Clock, signal: AbortSignal): Promise<() => Promise<void>> {
  const mine = `${hostname()} ${process.pid} ${randomUUID()}`;
  let seen: Found | null = null;
  let sameForMs = 0;
  for (;;) {
    signal.throwIfAborted();
    if (await create(lock, mine)) break;
    const found = await look(lock);
    // A lock that a clock ahead of this one has dated does not age: its holder is alive if it renews it meanwhile.
    const isSame = found !== null && seen !== null && found.content === seen.content && found.mtimeMs === seen.mtimeMs;
    sameForMs = isSame ? sameForMs + LOOK_AGAIN_MS : 0;
    seen = found;
    const isSilent = sameForMs > LOCK_MAX_AGE_MS;
    const isOver = (one: Found): boolean =>
      isAbandoned(one, clock) || (isSilent && one.content === found?.content && one.mtimeMs === found.mtimeMs);
    const isFree = found === null || (isOver(found) && (await clear(lock, isOver, clock)));
    if (!isFree) await clock.sleep(LOOK_AGAIN_MS, signal);
  }
  // Not the clock's: the age of a file is by the machine's own time.
  const renewal = setInterval(() => void renew(lock, mine), RENEW_MS).unref();
  return async () => {
    clearInterval(renewal);
    await release(lock, mine);
  };
}
