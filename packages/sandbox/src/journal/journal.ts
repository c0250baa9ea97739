import { appendFileSync, closeSync, ftruncateSync, openSync, readFileSync, realpathSync } from 'node:fs';
import type { Clock } from '@catchword/base/clock';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import { holdFile, NO_LOCKS } from '@catchword/base/file-lock';
import * as z from 'zod';

/*
 * What outlives a sandbox: a file of JSON lines. The first line says what the sandbox began with, each other line is one
 * change with its time. A line is written before its change is made, and removed if the change is rejected. Replayed in
 * this order and at these times, from the same beginning, the changes lead to the same state. A last line without an end
 * was never applied and is cut off. The file is created for its owner only (mode 0600), because it holds access tokens.
 * A killed process loses nothing; a power failure may lose the last changes.
 */

/** What cannot differ when a journal is opened again. Changes are recorded by their paths. */
const fixed = z.object({
  seed: z.int(),
  items: z.int(),
  users: z.int(),
  booksPath: z.string(),
  packagesPath: z.string(),
});
const header = z.object({ sandbox: z.literal(1), ...fixed.shape, at: z.number() });

/** What a sandbox began with. `at`: when, milliseconds since 1970. */
export type Beginning = Readonly<Omit<z.infer<typeof header>, 'sandbox'>>;

const changeSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('request'),
    method: z.string(),
    path: z.string(),
    query: z.string(),
    apiKey: z.string(),
    accessToken: z.string().nullable(),
    /** Text is enough: each operation that reads a body rejects one that is not UTF-8. */
    body: z.string(),
  }),
  z.object({ kind: z.literal('control'), path: z.string(), body: z.unknown() }),
  /** A callback was made, or given up. */
  z.object({ kind: z.literal('called'), call: z.object({ vbid: z.string(), startedAt: z.number() }) }),
]);

export type Change = Readonly<z.infer<typeof changeSchema>>;

/** Records a change in the journal, if there is one, and then makes it, at the time that was recorded. */
export type RecordChange = <T>(change: Change, act: () => T) => T;

/** A change, and when it was made, milliseconds since 1970. */
const entrySchema = z.object({ at: z.number() }).and(changeSchema);
type Entry = Readonly<z.infer<typeof entrySchema>>;

function unusable(path: string, problem: string, hint: string, cause?: unknown): CatchwordError {
  return new CatchwordError('CONFIG_INVALID', `--db ${path}: ${problem}`, { hint, cause });
}

function parse<T>(schema: z.ZodType<T>, text: string, failed: (cause: unknown) => CatchwordError): T {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw failed(cause);
  }
}

function parseBeginning(path: string, text: string, given: Beginning): Beginning {
  const begun = parse(header, text, (cause) =>
    unusable(path, 'is not a journal of a sandbox', 'Name another file; a new one is created.', cause),
  );
  const changed = fixed.keyof().options.find((name) => begun[name] !== given[name]);
  if (changed !== undefined) {
    const option = changed.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    const problem = `was begun with ${option} ${begun[changed]}, not ${given[changed]}`;
    throw unusable(path, problem, `Use --${option} ${begun[changed]} again, or name another file.`);
  }
  return begun;
}

/**
 * Opens a journal, or begins a new one, and locks the file until it is closed.
 * @param given what the sandbox begins with, and when if the file is new
 * @throws CatchwordError CONFIG_INVALID if the file cannot be used, is in use, is not a journal, or began differently
 */
export function openJournal(path: string, given: Beginning) {
  let fd: number;
  try {
    fd = openSync(path, 'a+', 0o600);
  } catch (cause) {
    throw unusable(path, messageOf(cause), 'Name a file in a folder that exists and can be written.', cause);
  }
  let release: (() => void) | null = null;
  let size = 0;
  let closed = false;

  /** Cuts off what an earlier write that failed may have left. */
  function write(text: string): void {
    if (closed) throw unusable(path, 'is closed', 'Start the sandbox again.');
    try {
      ftruncateSync(fd, size);
      appendFileSync(fd, text);
    } catch (cause) {
      throw unusable(path, messageOf(cause), 'Free disk space, or name another file.', cause);
    }
    size += Buffer.byteLength(text);
  }

  /** Idempotent. */
  function close(): void {
    if (closed) return;
    closed = true;
    closeSync(fd);
    release?.();
  }

  try {
    release = holdFile(realpathSync(path));
    if (release === null) {
      throw unusable(path, 'is in use', `Stop the sandbox that uses it, or name another file. ${NO_LOCKS}`);
    }
    const text = readFileSync(fd, 'utf8');
    const [first, ...lines] = text.split('\n');
    // A first line without an end is not a journal's.
    const begun = text === '' ? given : parseBeginning(path, lines.length === 0 ? '' : (first ?? ''), given);
    // The last one has no end; after a complete line it is empty.
    const cut = lines.pop() ?? '';
    const hint = 'Remove it and all lines after it, or name another file.';
    const entries = lines.map((line, at) =>
      parse(entrySchema, line, (cause) => unusable(path, `line ${at + 2} is damaged`, hint, cause)),
    );
    size = Buffer.byteLength(text) - Buffer.byteLength(cut);
    if (text === '') write(`${JSON.stringify(header.parse({ sandbox: 1, ...given }))}\n`);
    return {
      beginning: begun,
      entries,
      /** Writes an entry, runs `act`, and removes the entry if that throws. @throws CatchwordError CONFIG_INVALID */
      record: <T>(entry: Entry, act: () => T): T => {
        const before = size;
        write(`${JSON.stringify(entry)}\n`);
        try {
          return act();
        } catch (error) {
          size = before;
          ftruncateSync(fd, size);
          throw error;
        }
      },
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * The time of the sandbox's state. It stands still during a change, so that the whole change has the time that the journal
 * records, now and when it is replayed. It never goes back.
 * @param beginning milliseconds since 1970; the time until the first change
 */
export function createTimeline(clock: Pick<Clock, 'now'>, beginning: number) {
  let latest = beginning;
  let stopped = true;
  return {
    now: (): number => {
      if (!stopped) latest = Math.max(latest, clock.now());
      return latest;
    },
    /** Makes a change at the time `at`, or later if time is already further. */
    during: <T>(at: number, change: () => T): T => {
      const before = stopped;
      latest = Math.max(latest, at);
      stopped = true;
      try {
        return change();
      } finally {
        stopped = before;
      }
    },
    /** Follows the clock from now on. Until then, it is the time of the last change. */
    run: (): void => {
      stopped = false;
    },
  };
}

export type Timeline = ReturnType<typeof createTimeline>;
