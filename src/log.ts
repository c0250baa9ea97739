import { type Logger, pino } from 'pino';

export type { Logger };

/** Names under which a secret could be passed by mistake; their values are never written. */
const SECRET_KEYS = ['apiKey', 'accessToken', 'secret', 'password', 'authorization', 'headers'];

/** Bytes. */
const MAX_WAITING = 2 ** 20;

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
    // A log that cannot be written stops nothing; of what waits for a disk with room, no more than that is kept.
    pino.destination({ dest: 2, sync: true, maxLength: MAX_WAITING }).on('error', () => {}),
  );
}
