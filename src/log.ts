import { type Logger, pino } from 'pino';
import { printableLines } from './printable.ts';

export type { Logger };

/** Something that a person who watches should know, although nothing failed. */
export interface Notice {
  /** Constant, for a log. */
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** The same as one line for a person. */
  readonly text: string;
}

export type Tell = (notice: Notice) => void;

/** Names under which a secret could be passed by mistake; their values are never written. */
const SECRET_KEYS = ['apiKey', 'accessToken', 'secret', 'password', 'authorization', 'headers'];

/** Bytes. */
const MAX_WAITING = 2 ** 20;

/**
 * A log that cannot be written stops nothing; of what waits for a disk with room, no more than that is kept. Lines beyond
 * it are dropped without a try to write, so an empty one, which never is, tries what waits in their place.
 */
function standardError() {
  const destination = pino.destination({ dest: 2, sync: true, maxLength: MAX_WAITING });
  destination.on('error', () => {}).on('drop', () => void destination.write(''));
  // JSON escapes only a part of what a terminal obeys; such characters stand inside of strings alone.
  return { write: (line: string) => void destination.write(printableLines(line)) };
}

/**
 * The program's logger: JSON lines on stderr (stdout is data).
 * @param level a pino level, or `silent`
 */
export function createLog(level: string): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`]), censor: '[secret]' },
    },
    standardError(),
  );
}
