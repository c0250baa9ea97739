import type { Redis } from 'ioredis';
import * as z from 'zod';
import { type Mark, type Sink, SinkError, type SinkSettings } from '../sink.ts';
import { emptyPosition } from '../stored-mark.ts';
import { createConnectedSink, type OpenStore } from './connected-sink.ts';
import {
  connect,
  fenceOf,
  IS_AT,
  movedCursor,
  readMark,
  requireMark,
  toSinkError,
  tryInVain,
} from './redis-sink-connection.ts';
import { createValueVerifier, type StoredValue } from './value-verifier.ts';

/**
 * A key `<prefix>:<vbid>` for each product, with its JSON. The mark is in the hash `<prefix>:`, written by the same script,
 * which Redis runs as a whole: effectively once.
 *
 * A fill does not empty the store. It notes the keys that are there in the set `<prefix>:\tleft`, each delivery takes its
 * own out, and what remains when the fill ends is removed. No vbid is empty or has a tab.
 */

/** The option `keys`. */
export const prefixOption = z.string().regex(/^[^\s\p{Cc}]+$/u, 'a prefix without spaces');

/** Keys that the server looks at for one answer of SCAN. */
const STEP = 1_000;

/** ARGV: the fence of the mark that must be there, the prefix with its colon, the new mark, a key and its value (or '') each. */
const WRITE = `${IS_AT}
if not isAt(KEYS[1], ARGV[1]) then return 'moved' end
local prefix, isFill = ARGV[2], redis.call('EXISTS', KEYS[2]) == 1
for at = 13, #ARGV, 2 do
  local vbid, body = ARGV[at], ARGV[at + 1]
  if body == '' then redis.call('DEL', prefix .. vbid) else redis.call('SET', prefix .. vbid, body) end
  if isFill then redis.call('SREM', KEYS[2], vbid) end
end
redis.call('HSET', KEYS[1], unpack(ARGV, 3, 12))
return 'stored'`;

/** ARGV: the fence of the mark that must be there, keys of products. */
const NOTE_LEFT = `${IS_AT}
if not isAt(KEYS[1], ARGV[1]) then return 'moved' end
for at = 2, #ARGV do redis.call('SADD', KEYS[2], ARGV[at]) end
return 'stored'`;

/** @throws SinkError misconfigured if Redis drops keys when its memory is full */
async function rejectEviction(db: Redis): Promise<void> {
  // A user may lack the right to INFO.
  const policy = /policy:(allkeys\S+)/.exec(await db.info('memory').catch(() => ''))?.[1];
  if (policy === undefined) return;
  const message = `Redis: its maxmemory-policy ${policy} drops products when memory is full. Use noeviction`;
  throw new SinkError('misconfigured', message);
}

async function* membersOf(db: Redis, key: string): AsyncGenerator<readonly string[]> {
  for (let at = '0'; ; ) {
    const [next, found] = await db.sscan(key, at, 'COUNT', STEP);
    yield found;
    if (next === '0') return;
    at = next;
  }
}

/** Makes the sink of `keys=PREFIX`. */
export function createRedisKeysSink(settings: SinkSettings, name: string): Sink {
  const prefix = `${name}:`;
  const markKey = prefix;
  const leftKey = `${prefix}\tleft`;
  const keyOf = (vbid: string): string => `${prefix}${vbid}`;

  /** The products that have a key, some of them twice if the server moves its keys meanwhile. */
  async function* stored(db: Redis): AsyncGenerator<readonly string[]> {
    const pattern = `${prefix.replace(/[\\*?[\]^]/g, '\\$&')}*`;
    for (let at = '0'; ; ) {
      const [next, found] = await db.scan(at, 'MATCH', pattern, 'COUNT', STEP);
      yield found.filter((key) => key !== markKey && key !== leftKey).map((key) => key.slice(prefix.length));
      if (next === '0') return;
      at = next;
    }
  }

  async function valuesOf(db: Redis, vbids: readonly string[]): Promise<StoredValue[]> {
    if (vbids.length === 0) return [];
    const texts = await db.mget(vbids.map(keyOf));
    // A key that was removed meanwhile, or is of another type, has no text.
    return vbids.map((vbid, at) => [vbid, texts[at] ?? '']);
  }

  /** Rejects keys of others, which the end of a fill would remove. */
  async function rejectForeignKeys(db: Redis): Promise<void> {
    for await (const [vbid] of stored(db)) {
      if (vbid === undefined) continue;
      const message = `Redis: this sink did not write the key ${prefix}${vbid}. Use another prefix: keys=PREFIX`;
      throw new SinkError('misconfigured', message);
    }
  }

  async function tryToWrite(db: Redis): Promise<void> {
    await tryInVain(db, [markKey], async () => {
      await db.set(`${prefix}catchword-doctor`, '');
      await db.del(`${prefix}catchword-doctor`);
      await db.hset(markKey, 'cursor', '0');
      await db.sadd(leftKey, '');
      await db.srem(leftKey, '');
      await db.eval(WRITE, 2, markKey, leftKey);
    });
  }

  async function open(db: Redis, mark: Mark): Promise<OpenStore> {
    /** The mark in Redis, as this process left it. */
    let written = await readMark(db, markKey);
    // Without a mark, only keys of a store that was fed before may be ours.
    if (written === null && mark.cursor === 0) await rejectForeignKeys(db);
    await tryToWrite(db);

    async function run(script: string, values: readonly string[]): Promise<void> {
      const answer = await db.eval(script, 2, markKey, leftKey, fenceOf(written), ...values);
      if (answer !== 'stored') throw movedCursor(markKey);
    }

    /** Sets and removes keys (value '') and moves the mark, as a whole. */
    async function write(values: readonly (readonly [vbid: string, body: string])[], to: Mark): Promise<void> {
      await run(WRITE, [prefix, ...Object.entries(to).flat().map(String), ...values.flat()]);
      written = to;
    }

    return {
      position: written ?? emptyPosition(mark, `the cursor in ${markKey} is missing`),
      deliver: (events, mark) =>
        write(
          events.map(({ vbid, body }) => [vbid, body ?? '']),
          mark,
        ),
      fillBegins: async () => {
        for await (const vbids of stored(db)) await run(NOTE_LEFT, vbids);
      },
      fillEnds: async (kept, mark) => {
        for await (const left of membersOf(db, leftKey)) {
          const gone = left.filter((vbid) => !kept.includes(vbid)).map((vbid) => [vbid, ''] as const);
          if (gone.length > 0) await write(gone, mark);
        }
      },
      recheck: () => requireMark(db, markKey, written),
      verifier: () =>
        createValueVerifier(
          async function* () {
            await requireMark(db, markKey, written);
            for await (const vbids of stored(db)) yield await valuesOf(db, vbids);
            await requireMark(db, markKey, written);
          },
          (events, extra, mark) => {
            const made = events.map(({ vbid, body }) => [vbid, body ?? ''] as const);
            return write([...made, ...extra.map((vbid) => [vbid, ''] as const)], written ?? mark);
          },
        ),
    };
  }

  return createConnectedSink({
    hide: settings.hide,
    verifies: true,
    batch: { events: 1_000, chars: 2_000_000 },
    connect: (life) => connect(settings, life),
    open,
    check: async (db, _signal, found) => {
      const mark = await readMark(db, markKey);
      await (mark === null ? rejectForeignKeys(db) : found?.(mark));
      await tryToWrite(db);
      await rejectEviction(db);
      return `keys ${prefix}* can be written (nothing was)`;
    },
    drop: async (db) => {
      for await (const vbids of stored(db)) await db.unlink(markKey, leftKey, ...vbids.map(keyOf));
      return '';
    },
    toSinkError,
  });
}
