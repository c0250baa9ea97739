import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { withDeadline } from './abort.ts';
import { CatchwordError, messageOf, systemCodeOf } from './errors.ts';

/** The encodings other than UTF-8 that PowerShell and editors of Windows write, by the mark at the start of a file. */
const ENCODINGS: Readonly<Record<string, string>> = { fffe: 'utf-16le', feff: 'utf-16be' };

/** What pipes gave: a second reader would wait for a writer. */
const ofPipes = new Map<string, Buffer>();
/** Readings that have not ended. A disk that hangs stops one thread of the pool for each, so a file has only one. */
const readings = new Map<string, Promise<Buffer>>();
const LONGEST_READ_MS = 5_000;
/** What was read before is a file. Any other path may be a secret that was set there by mistake, so no error repeats it. */
const known = new Set<string>();
/** What the codes of a file that cannot be read mean. */
const MEANINGS: Readonly<Record<string, string>> = {
  EISDIR: 'it is a directory',
  ENOENT: 'it does not exist',
  EACCES: 'this user may not read it',
};

function bytesOf(path: string): Buffer {
  const ofPipe = ofPipes.get(path);
  if (ofPipe !== undefined) return ofPipe;
  const file = openSync(path, 'r');
  try {
    const bytes = readFileSync(file);
    known.add(path);
    if (fstatSync(file).isFIFO()) ofPipes.set(path, bytes);
    return bytes;
  } finally {
    closeSync(file);
  }
}

async function read(path: string): Promise<Buffer> {
  if ((await stat(path)).isFIFO()) throw new Error('a pipe, which a process reads only when it starts');
  return await readFile(path);
}

/** Reads a file in a thread of the pool. @throws Error after LONGEST_READ_MS, too */
export async function bytesInTime(path: string): Promise<Buffer> {
  const ofPipe = ofPipes.get(path);
  if (ofPipe !== undefined) return ofPipe;
  const reading = readings.get(path) ?? read(path).finally(() => readings.delete(path));
  readings.set(path, reading);
  const reason = () => new Error(`no answer in ${LONGEST_READ_MS / 1_000} s`);
  return await withDeadline(new AbortController().signal, { timeoutMs: LONGEST_READ_MS, reason }, () => reading);
}

/** @throws CatchwordError CONFIG_INVALID */
function invalid(problem: string, hint: string, setting: string | undefined): never {
  const message = setting === undefined ? problem : `${setting}: ${problem}`;
  throw new CatchwordError('CONFIG_INVALID', message, { hint, setting });
}

function unreadable(name: string, path: string, cause: unknown, setting: string | undefined): never {
  const hint = 'It must be a file that this user may read, on a disk that answers.';
  const code = systemCodeOf(cause);
  const why = code === undefined ? messageOf(cause) : [MEANINGS[code] ?? [], code].flat().join(', ');
  return invalid(`cannot read ${name}${known.has(path) ? `, ${path}` : ''} (${why})`, hint, setting);
}

/** The text of a file of settings: in UTF-8, or in what its byte order mark names. @throws as `readText` */
export function textOf(name: string, bytes: Buffer, setting?: string): string {
  // It also removes the mark, and puts U+FFFD for what it cannot read, which would become a part of a password or path.
  const text = new TextDecoder(ENCODINGS[bytes.toString('hex', 0, 2)]).decode(bytes);
  if (!/[\0\uFFFD]/.test(text)) return text;
  return invalid(`${name} is not text in UTF-8, or in UTF-16 with a byte order mark`, 'Save it as UTF-8.', setting);
}

/**
 * Reads a file that people write settings into, when a process starts: it may wait for ever, and a pipe is read once.
 * @param name how an error names it: a path may be a secret that was set there by mistake
 * @throws CatchwordError CONFIG_INVALID if it cannot be read, or is not text
 */
export function readText(name: string, path: string, setting?: string): string {
  let bytes: Buffer;
  try {
    bytes = bytesOf(path);
  } catch (cause) {
    return unreadable(name, path, cause, setting);
  }
  return textOf(name, bytes, setting);
}

/** Does the same for a process that also does something else: this thread goes on, and the reading has a deadline. */
export async function readTextInTime(name: string, path: string, setting?: string): Promise<string> {
  return textOf(
    name,
    await bytesInTime(path).catch((cause: unknown) => unreadable(name, path, cause, setting)),
    setting,
  );
}
