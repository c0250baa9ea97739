import type { Logger } from '@catchword/base/log';
import { logOf } from '@catchword/testing/log-of';
import { startRedis } from '@catchword/testing/redis';
import { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';

export const PASSWORD = 'Jqh-4711';

/** Starts a Redis of this test, with a user whose rights it may change. */
export async function startOwn(args: readonly string[] = []) {
  const redis = await startRedis({ args });
  onTestFinished(() => redis.stop());
  const admin = new Redis(redis.url);
  onTestFinished(() => admin.disconnect());
  return {
    ...redis,
    admin,
    /** Gives the user of `shop` exactly these rights. */
    allow: (rights: string) =>
      admin.call('ACL', 'SETUSER', 'shop', 'reset', 'on', `>${PASSWORD}`, ...rights.split(' ')),
    shop: redis.url.replace('//', `//shop:${PASSWORD}@`),
  };
}

interface Line {
  readonly level: keyof Logger;
  readonly fields: Parameters<Logger['warn']>[0];
  readonly message: string;
}

/** A log whose lines the test reads, without the debug lines. */
export function recordingLog(): { readonly lines: Line[]; readonly log: Logger } {
  const lines: Line[] = [];
  const note =
    (level: keyof Logger): Logger['warn'] =>
    (fields, message) =>
      void (level === 'debug' || lines.push({ level, fields, message }));
  const log = logOf(note);
  return { lines, log };
}
