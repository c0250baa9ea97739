import { isUtf8 } from 'node:buffer';
import { createConnectedSink, type OpenStore } from '@catchword/sink-kit/connected-sink';
import { type Mark, type Sink, SinkError, type SinkEvent, type SinkSettings } from '@catchword/sink-kit/sink';
import { bucketOf } from '@catchword/sink-kit/store-digest';
import { emptyPosition, markAtStart } from '@catchword/sink-kit/stored-mark';
import type { Redis } from 'ioredis';
import { connect, movingMark, openMark, readMark, toSinkError, tryInVain } from './redis-sink-connection.ts';

/**
 * A key `<prefix>:<vbid>` for each product, with its JSON. The mark is in the hash `<prefix>:`, written by the same script,
 * which Redis runs as a whole: effectively once.
 *
 * No vbid is empty or has a tab.
 */

/** Keys that the server looks at for one answer of SCAN. */
const STEP = 1_000;

/** ARGV: the prefix with its colon, a key and its value (or '' to remove it) each. */
const WRITE = movingMark(`
local prefix = ARGV[15]
for at = 16, #ARGV, 2 do
  local vbid, body = ARGV[at], ARGV[at + 1]
  if body == '' then redis.call('DEL', prefix .. vbid) else redis.call('SET', prefix .. vbid, body) end
end`);

/** @throws SinkError misconfigured if Redis drops keys when its memory is full */
async function rejectEviction(db: Redis): Promise<void> {
  // A user may lack the right to INFO.
  const policy = /policy:(allkeys\S+)/.exec(await db.info('memory').catch(() => ''))?.[1];
  if (policy === undefined) return;
  const message = `Redis: its maxmemory-policy ${policy} drops products when memory is full. Use noeviction`;
  throw new SinkError('misconfigured', message);
}

/** Names the key of another program by its bytes and a tab, which no vbid has, if the key is not UTF-8 or ends with a tab. */
function vbidOf(key: Buffer): string {
  const text = key.toString();
  return isUtf8(key) && !text.endsWith('\t') ? text : `${key.toString('latin1')}\t`;
}

function bytesOf(vbid: string): Buffer {
  return vbid.endsWith('\t') ? Buffer.from(vbid.slice(0, -1), 'latin1') : Buffer.from(vbid);
}

/** Reads keys. A key that was removed meanwhile, is of another type, or is going to expire, has no text. */
async function textsOf(db: Redis, keys: readonly Buffer[]): Promise<readonly string[]> {
  const texts = await db.mget([...keys]);
  const lives = (await db.pipeline(keys.map((key) => ['pttl', key])).exec()) ?? [];
  return texts.map((text, at) => {
    const [error, leftMs] = lives[at] ?? [];
    if (error) throw error;
    return Number(leftMs) >= 0 ? '' : (text ?? '');
  });
}

/** Rejects a prefix whose keys another sink would remove. */
async function rejectOuterSink(db: Redis, name: string): Promise<void> {
  const outer = [...name.matchAll(/:/g)].map(({ index }) => name.slice(0, index + 1));
  // A user may lack the rights to these.
  if (outer.length > 0 && (await db.exists(outer).catch(() => 0)) > 0) {
    const message = `Redis: another sink has keys under ${outer.join(' or ')}. Use another prefix: keys=PREFIX`;
    throw new SinkError('misconfigured', message);
  }
}

/** Makes the sink of `keys=PREFIX`. */
export function createRedisKeysSink(settings: SinkSettings, name: string): Sink {
  const prefix = `${name}:`;
  const markKey = prefix;
  const keyOf = (vbid: string): Buffer => Buffer.concat([Buffer.from(prefix), bytesOf(vbid)]);

  /** The products that have a key, some of them twice if the server moves its keys meanwhile. */
  async function* stored(db: Redis): AsyncGenerator<readonly string[]> {
    const match = `${prefix.replace(/[\\*?[\]^]/g, '\\$&')}*`;
    for await (const found of db.scanBufferStream({ match, count: STEP }) as AsyncIterable<Buffer[]>) {
      const ends = found.map((key) => vbidOf(key.subarray(Buffer.byteLength(prefix))));
      yield ends.filter((end) => end !== '');
    }
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
      await db.eval(WRITE, 1, markKey);
    });
  }

  async function open(db: Redis, mark: Mark): Promise<OpenStore> {
    const { written, check, move } = await openMark(db, [markKey]);
    const found = written();
    await rejectOuterSink(db, name);
    // Without a mark, only keys of a store that was fed before may be ours.
    if (found === null && mark.cursor === 0) await rejectForeignKeys(db);
    await tryToWrite(db);

    // The keys stay ours if this process ends before the fill begins.
    if (found === null && mark.cursor > 0) await write([], [], markAtStart(mark));

    async function write(events: readonly SinkEvent[], gone: readonly string[], to: Mark): Promise<void> {
      const values = events.flatMap(({ vbid, body }) => [vbid, body ?? '']);
      await move(WRITE, to, prefix, ...values, ...gone.flatMap((vbid) => [bytesOf(vbid), '']));
    }

    return {
      position: found?.cursor ? found : { ...emptyPosition(mark, `the cursor in ${markKey} is missing`), ...found },
      deliver: (events, to) => write(events, [], to),
      recheck: check,
      list: async function* ({ whole }, buckets) {
        await check();
        for await (const found of stored(db)) {
          const vbids = found.filter((vbid) => buckets?.has(bucketOf(vbid)) ?? true);
          const texts = whole && vbids.length > 0 ? await textsOf(db, vbids.map(keyOf)) : [];
          yield vbids.map((vbid, at) => ({ vbid, body: texts[at] ?? '' }));
        }
        await check();
      },
      apply: write,
    };
  }

  return createConnectedSink({
    hide: settings.hide,
    has: ['list', 'apply'],
    batch: { events: 1_000, chars: 2_000_000 },
    connect: (life) => connect(settings, life),
    open,
    check: async (db, _signal, found) => {
      const mark = await readMark(db, markKey);
      await rejectOuterSink(db, name);
      await (mark === null ? rejectForeignKeys(db) : found?.(mark));
      await tryToWrite(db);
      await rejectEviction(db);
      return `keys ${prefix}* can be written (nothing was)`;
    },
    drop: async (db) => {
      for await (const vbids of stored(db)) await db.unlink(markKey, ...vbids.map(keyOf));
      return '';
    },
    toSinkError,
  });
}
