import { setTimeout as delay } from 'node:timers/promises';
import { CatchwordError } from '@catchword/base/errors';
import { decoded } from '@catchword/base/percent-decode';
import { createConnectedSink, type OpenStore } from '@catchword/sink-kit/connected-sink';
import { createHttpTarget, httpError } from '@catchword/sink-kit/http-target';
import type { Mark, SinkEvent, SinkFactory, SinkSettings } from '@catchword/sink-kit/sink';
import { readOptions } from '@catchword/sink-kit/sink-options';
import { bucketOf } from '@catchword/sink-kit/store-digest';
import type * as z from 'zod';
import { FORMATS, type StoredRow } from './row-file.ts';
import { type Bucket, type BucketPlace, createBucket, PROBE } from './s3-bucket.ts';
import { s3Kind } from './s3-kind.ts';
import { claimManifest, createDataFiles, type DataFile, readManifest, removeAll } from './s3-manifest.ts';
import { s3Place } from './s3-place.ts';
import { newestRows, writeSnapshot } from './s3-snapshot.ts';

/**
 * Files of events in a bucket, one for each delivery, and a manifest that names them and has the mark: effectively once. When
 * there are many, a background job writes a snapshot of the living products, and the next delivery names it instead.
 */

/** A batch with so many is not worth waiting for more. */
const ENOUGH_EVENTS = 1_000;
const TIMEOUT_MS = 55_000;

const SECRET = /^[^\s:]+:[^\s:]+(:[^\s:]+)?$/;

function placeOf({ name, url, secret = '' }: SinkSettings, options: Options): BucketPlace {
  const parts = SECRET.test(secret) ? secret.split(':').map(decoded) : [];
  const [accessKeyId, secretAccessKey, sessionToken = ''] = parts;
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new CatchwordError('CONFIG_INVALID', 'the access key is missing or not valid', {
      hint: `Set CATCHWORD_SINK_${name.toUpperCase()}_SECRET to KEY_ID:SECRET_KEY, or to KEY_ID:SECRET_KEY:SESSION_TOKEN. Within each, write %3A for a colon and %25 for %.`,
    });
  }
  const { sse, 'sse-key': key } = options;
  const putHeaders = {
    ...(sse !== undefined && { 'x-amz-server-side-encryption': sse }),
    ...(key !== undefined && { 'x-amz-server-side-encryption-aws-kms-key-id': key }),
  };
  return { ...s3Place(url), accessKeyId, secretAccessKey, sessionToken, putHeaders };
}

type Options = z.output<z.ZodObject<typeof s3Kind.options>>;

async function openStore(bucket: Bucket, given: Mark, options: Options, signal: AbortSignal): Promise<OpenStore> {
  const { position, current, write, check } = await claimManifest(bucket, given, options.format);
  const data = createDataFiles(bucket, FORMATS[options.format], current().epoch);
  let writtenAt = 0;
  /** Events of the last delivery. */
  let before = 0;
  /** A snapshot of the first so many files, which a job in the background writes. */
  let snapshot: { readonly of: number; readonly files: Promise<readonly DataFile[]> } | null = null;

  function compactIfMany(): void {
    const { files } = current();
    const changes = files.filter(({ kind }) => kind === 'changes');
    if (snapshot !== null || changes.length < options.files) return;
    snapshot = { of: files.length, files: writeSnapshot(data, files) };
    // The next delivery throws its error.
    snapshot.files.catch(() => {});
  }

  /** The files with the snapshot, once it is written, in the place of those that it replaces. */
  async function compacted(): Promise<readonly DataFile[]> {
    const { files } = current();
    const written = snapshot && (await Promise.race([snapshot.files, Promise.resolve(null)]));
    if (snapshot === null || written === null) return files;
    const after = [...written, ...files.slice(snapshot.of)];
    snapshot = null;
    return after;
  }

  /** Lets more events gather, so that not every change has a file. What comes after many is the end of them. */
  async function gather(events: number): Promise<void> {
    const isMany = Math.max(events, before) >= ENOUGH_EVENTS;
    before = events;
    if (isMany) return;
    const waitMs = Math.min(writtenAt + options.every - Date.now(), options.every);
    if (waitMs > 0) await delay(waitMs, undefined, { signal });
  }

  async function add(rows: readonly StoredRow[], mark: Mark): Promise<void> {
    const files = await compacted();
    await write({ mark, files: [...files, ...(rows.length === 0 ? [] : [await data.write('changes', rows)])] });
    compactIfMany();
  }

  const rowOf = ({ vbid, seq, op, at, id, body }: Omit<SinkEvent, 'text'>, { generation }: Mark): StoredRow => {
    return { vbid, seq, generation, op, at, id, body };
  };

  return {
    position,
    deliver: async (events, mark) => {
      await gather(events.length);
      const rows = events.map((event) => rowOf(event, mark));
      await add(rows, mark);
      writtenAt = Date.now();
    },
    list: async function* (_listing, buckets) {
      await check();
      const takes = (vbid: string): boolean => buckets?.has(bucketOf(vbid)) ?? true;
      for await (const rows of newestRows(data, current().files, takes)) {
        yield rows.map(({ vbid, body }) => ({ vbid, body: body ?? '' }));
      }
    },
    apply: async (events, extra, mark) => {
      const { cursor: seq, at } = mark;
      const gone = { id: 'extra', op: 'removed', body: null, seq, at: at || Date.now() } as const;
      const all = [...events, ...extra.map((vbid) => ({ ...gone, vbid }))];
      await add(
        all.map((event) => rowOf(event, mark)),
        mark,
      );
      if (events.length === 0) return;
      // An earlier file may have the same position of such a product, with another content.
      snapshot = null;
      await write({ files: await writeSnapshot(data, current().files) });
    },
    recheck: check,
  };
}

export const createS3Sink: SinkFactory = (settings) => {
  const options = readOptions(settings.url, s3Kind.options);
  const place = placeOf(settings, options);
  const { proxies } = settings;
  // As other stores: an operator chose the address, and signatures protect the key.
  const target = createHttpTarget({ url: place.endpoint, proxies, timeoutMs: TIMEOUT_MS, isPrivateAllowed: true });
  return createConnectedSink({
    hide: settings.hide,
    has: ['list', 'apply'],
    batch: { events: 10_000, chars: 16_000_000 },
    // With a second connection, a snapshot does not hold up deliveries.
    connect: async (life) => ({ bucket: createBucket(target, target.connect(life, 2), life, place), life }),
    open: ({ bucket, life }, mark) => openStore(bucket, mark, options, life.signal),
    size: async ({ bucket }) => {
      const { manifest } = await readManifest(bucket);
      const rows = manifest?.files.reduce((sum, one) => sum + one.rows, 0) ?? 0;
      return {
        text: `${manifest?.files.length ?? 0} files, ${rows} rows`,
        limit: `files=${options.files}`,
        option: 'files=N',
      };
    },
    drop: ({ bucket }) => removeAll(bucket),
    check: async ({ bucket }, _signal, found) => {
      const isConditional = await bucket.triesConditions();
      const { manifest } = await readManifest(bucket);
      await bucket.list();
      if (manifest !== null) found?.(manifest.mark);
      const writers = isConditional ? '' : '; it has no conditional writes: let one relay only write there';
      return `the bucket can be written (only ${PROBE} was, and removed)${writers}; ${manifest?.files.length ?? 0} files`;
    },
    toSinkError: httpError,
  });
};
