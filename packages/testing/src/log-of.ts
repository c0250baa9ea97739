import type { Logger } from '@catchword/base/log';

/** A log that gives each line to `note` of its level. */
export function logOf(note: (level: keyof Logger) => Logger['warn']): Logger {
  return {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
    fatal: note('fatal'),
  };
}
