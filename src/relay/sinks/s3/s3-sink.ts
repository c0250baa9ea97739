import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import { CatchwordError } from '../../../base/errors.ts';
import { decoded } from '../../../base/percent-decode.ts';
import { createHttpTarget, httpError } from '../../http-target.ts';
import { type Mark, SinkError, type SinkFactory, type SinkSettings } from '../../sink.ts';
import { readOptions, wholeOption } from '../../sink-options.ts';
import { markAtStart } from '../../stored-mark.ts';
import { createConnectedSink, type OpenStore } from '../connected-sink.ts';
import { FORMATS, type RowFormat } from './row-file.ts';
import { type Bucket, type BucketPlace, createBucket, PROBE } from './s3-bucket.ts';
import { createManifestFile, type DataFile, epochOf, fileName, readManifest } from './s3-manifest.ts';
import { s3Place } from './s3-place.ts';
import { createCompaction, type SnapshotJob, spanOf, writeSnapshot } from './s3-snapshot.ts';

/**
 * Files of events in a bucket, one for each delivery, and a manifest that names them and has the mark: effectively once. When
 * there are many, a background job writes a snapshot of the living products, and the next delivery names it instead.
 */

const OPTIONS = {
  endpoint: z.url({ protocol: /^https?$/, error: 'an address such as https://minio.example' }).optional(),
  region: z.string().min(1, 'a region').optional(),
  format: z.enum(['parquet', 'ndjson'], 'parquet or ndjson').default('parquet'),
  /** Within the relay's limit for a call. */
  every: z
    .string()
    .regex(/^([0-5]?\d|60)s$/, 'a time from 0s to 60s')
    .transform((text) => Number.parseInt(text, 10) * 1_000)
    .default(60_000),
  /** Change files that a snapshot replaces. */
  files: wholeOption(2, 10_000).default(100),
};

const BATCH = { events: 10_000, chars: 16_000_000 };
/** A batch with so many is not worth waiting for more. */
const ENOUGH_EVENTS = 1_000;
const TIMEOUT_MS = 55_000;

const SECRET = /^([^\s:]+):([^\s:]+)(?::([^\s:]+))?$/;

function placeOf({ name, url, secret }: SinkSettings): BucketPlace {
  const [, accessKeyId, secretAccessKey, sessionToken = ''] = SECRET.exec(secret ?? '') ?? [];
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new CatchwordError('CONFIG_INVALID', 'the access key is missing', {
      hint: `Set CATCHWORD_SINK_${name.toUpperCase()}_SECRET to KEY_ID:SECRET_KEY, or to KEY_ID:SECRET_KEY:SESSION_TOKEN.`,
    });
  }
  return { ...s3Place(url), accessKeyId: decoded(accessKeyId), secretAccessKey, sessionToken };
}

interface Options {
  readonly format: keyof typeof FORMATS;
  readonly every: number;
  readonly files: number;
}

/** Takes a sink's manifest over, or makes one. Without a file that it names, every product is delivered again. */
async function claimManifest(bucket: Bucket, given: Mark, format: Options['format']) {
  const isConditional = await bucket.triesConditions();
  const { manifest: found, etag } = await readManifest(bucket);
  const names = new Set(await bucket.list());
  if (found !== null && found.format !== format) {
    const message = `S3: the files have the format ${found.format}: set format=${found.format}, or use another prefix`;
    throw new SinkError('misconfigured', message);
  }
  const lost: string[] = [];
  for (const { file } of found?.files ?? []) {
    // Some stores list a new object late.
    if (!names.has(file) && !(await bucket.has(file))) lost.push(file);
  }
  const { mark = given, files = [], before_fill = null, retired = [] } = found ?? {};
  const kept = files.filter(({ file }) => !lost.includes(file));
  const epoch = [...names].reduce((most, name) => Math.max(most, epochOf(name)), found?.epoch ?? 0) + 1;
  const isOurs = mark.incarnation === given.incarnation;
  const isLost = isOurs && (found === null || lost.length > 0);
  const manifest = createManifestFile(bucket, isConditional, etag, {
    version: 1,
    format,
    mark: isLost ? markAtStart(mark) : mark,
    epoch,
    files: kept,
    before_fill: lost.length > 0 ? kept.length : before_fill,
    retired,
  });
  // Another mirror's manifest stays as it is until a fill takes it over.
  if (isOurs) {
    await manifest.write({});
    await manifest.removeRubbish(names);
  }
  return { manifest, lost: isLost && given.cursor > 0 ? (lost[0] ?? 'the manifest') : null };
}

async function openStore(bucket: Bucket, given: Mark, options: Options, signal: AbortSignal): Promise<OpenStore> {
  const format: RowFormat = FORMATS[options.format];
  const { manifest, lost } = await claimManifest(bucket, given, options.format);
  const { mark, epoch } = manifest.current();
  let count = 0;
  let writtenAt = 0;
  const nameOf = (entry: Omit<DataFile, 'file'>): string => fileName(epoch, ++count, entry, format.extension);
  const jobOf = (files: readonly DataFile[], takes = (_vbid: string): boolean => true): SnapshotJob => {
    return { bucket, format, files, takes, nameOf };
  };
  const compaction = createCompaction((files) => jobOf(files));

  function compactIfMany(): void {
    const { files, before_fill } = manifest.current();
    const changes = files.filter(({ kind }) => kind === 'changes');
    // What is from before a fill goes at its end.
    if (before_fill === null && changes.length >= options.files) compaction.begin(files);
  }

  /** Lets more events gather, so that not every change has a file. */
  async function gather(events: number): Promise<void> {
    if (manifest.current().before_fill !== null || events >= ENOUGH_EVENTS) return;
    const waitMs = Math.min(writtenAt + options.every - Date.now(), options.every);
    if (waitMs > 0) await delay(waitMs, undefined, { signal });
  }

  return {
    position: lost === null ? mark : { ...mark, refill: `${lost} is gone` },
    deliver: async (events, next) => {
      await gather(events.length);
      const files = compaction.applied(manifest.current().files);
      const { generation } = next;
      const rows = events.map(({ vbid, seq, op, at, id, body }) => ({ vbid, seq, generation, op, at, id, body }));
      const entry = { kind: 'changes', ...spanOf(rows), rows: rows.length } as const;
      const file = nameOf(entry);
      await bucket.put(file, format.encode(rows));
      await manifest.write({ mark: next, files: [...files, { file, ...entry }] });
      writtenAt = Date.now();
      compactIfMany();
    },
    fillBegins: (start) => manifest.write({ mark: start, before_fill: manifest.current().files.length }),
    fillEnds: async (kept) => {
      const { files, before_fill: begin } = manifest.current();
      if (begin === null) return;
      const keys = new Set(kept);
      const rest = keys.size === 0 ? [] : await writeSnapshot(jobOf(files.slice(0, begin), (vbid) => keys.has(vbid)));
      await manifest.write({ files: [...rest, ...files.slice(begin)], before_fill: null });
      compactIfMany();
    },
    recheck: () => manifest.check(),
  };
}

export const createS3Sink: SinkFactory = (settings) => {
  const options = readOptions(settings.url, OPTIONS);
  const place = placeOf(settings);
  const { proxies } = settings;
  // As other stores: an operator chose the address, and signatures protect the key.
  const target = createHttpTarget({ url: place.endpoint, proxies, timeoutMs: TIMEOUT_MS, isPrivateAllowed: true });
  return createConnectedSink({
    hide: settings.hide,
    batch: BATCH,
    connect: async (life) => {
      // A snapshot must not hold up deliveries.
      const agent = target.connect((socket) => life.own(socket), 2);
      life.atEnd(() => agent.destroy());
      return { bucket: createBucket(target, agent, life, place), life };
    },
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
