import { randomUUID } from 'node:crypto';
import { type Mark, SinkError } from '@catchword/sink-kit/sink';
import { emptyPosition, isOfOtherSink, isOfOwnMirror, markAtStart, markSchema } from '@catchword/sink-kit/stored-mark';
import * as z from 'zod';
import type { RowFormat, StoredRow } from './row-file.ts';
import type { Bucket, Condition } from './s3-bucket.ts';

/*
 * `manifest.json` names the files that count and is the position of the sink: a file that it does not name does not exist
 * for a reader. Each opening takes the next epoch, with which the names of its files begin, so no two relays write one file,
 * and each removes rubbish of earlier epochs only.
 */

const fileSchema = z.object({
  file: z.string(),
  kind: z.enum(['snapshot', 'changes']),
  /** The lowest and the highest `seq` in it. */
  from: z.number(),
  to: z.number(),
  rows: z.number(),
});
export type DataFile = z.output<typeof fileSchema>;

const manifestSchema = z.object({
  version: z.literal(1),
  format: z.enum(['parquet', 'ndjson']),
  mark: markSchema,
  epoch: z.number().int().min(1),
  /** Random for each opening: two relays may take the same epoch at once. */
  writer: z.string().default(''),
  /** Snapshots first; then in the order of delivery. */
  files: z.array(fileSchema),
  /** Files that an earlier manifest named, which are removed after this time. */
  retired: z.array(z.object({ file: z.string(), until: z.iso.datetime() })),
});
type Manifest = z.output<typeof manifestSchema>;

const MANIFEST = 'manifest.json';
/** For readers who have read an earlier manifest. */
const KEEP_RETIRED_MS = 3_600_000;

/** Names that this sink gives, which begin with the epoch; it leaves every other object alone. */
const NAME = /^(\d{6})-\d{6}-(?:snapshot|changes)-\d+-\d+\.(?:parquet|ndjson\.gz)$/;

/** The epoch of a file of this sink; 0 for another object. */
function epochOf(name: string): number {
  return Number(NAME.exec(name)?.[1] ?? 0);
}

/** Removes everything that a sink has written, the manifest first. */
export async function removeAll(bucket: Bucket): Promise<string> {
  for (const name of [MANIFEST, ...(await bucket.list()).filter(epochOf)]) await bucket.remove(name);
  return '';
}

const counted = (count: number): string => String(count).padStart(6, '0');

export type DataFiles = ReturnType<typeof createDataFiles>;

/** Reads files, and writes those of an epoch. */
export function createDataFiles(bucket: Bucket, { extension, encode, decode }: RowFormat, epoch: number) {
  let count = 0;
  return {
    read: async (file: string): Promise<StoredRow[]> => {
      const found = await bucket.get(file);
      if (found === null) throw new SinkError('unavailable', `S3: another client has removed ${file}`);
      return await decode(found.bytes);
    },
    /** Writes rows as the next file, which no manifest names yet. */
    write: async (kind: DataFile['kind'], rows: readonly StoredRow[]): Promise<DataFile> => {
      // Not by spreading, which many rows would overflow.
      const from = rows.reduce((least, { seq }) => Math.min(least, seq), Number.MAX_SAFE_INTEGER);
      const to = rows.reduce((most, { seq }) => Math.max(most, seq), 0);
      const file = `${counted(epoch)}-${counted(++count)}-${kind}-${from}-${to}.${extension}`;
      await bucket.put(file, encode(rows));
      return { file, kind, from, to, rows: rows.length };
    },
  };
}

export async function readManifest(bucket: Bucket) {
  const found = await bucket.get(MANIFEST);
  if (found === null) return { manifest: null, text: null, etag: null };
  const text = found.bytes.toString();
  try {
    return { manifest: manifestSchema.parse(JSON.parse(text)), text, etag: found.etag };
  } catch (error) {
    const message = `S3: catchword cannot read ${MANIFEST}: another program or a later version wrote it. Use another prefix`;
    throw new SinkError('misconfigured', message, { cause: error });
  }
}

/**
 * Takes a sink's manifest over, or makes one. Without a file that it names, every product is delivered again. If another
 * relay writes it, every later call fails.
 */
export async function claimManifest(bucket: Bucket, given: Mark, format: Manifest['format']) {
  const isConditional = await bucket.triesConditions();
  const { manifest: found, ...read } = await readManifest(bucket);
  const names = new Set(await bucket.list());
  if (found !== null && found.format !== format) {
    const message = `S3: the files have the format ${found.format}: set format=${found.format}, or use another prefix`;
    throw new SinkError('misconfigured', message);
  }
  const { mark, files, retired } = found ?? { mark: given, files: [], retired: [] };
  const kept: DataFile[] = [];
  for (const entry of files) {
    // Some stores list a new object late.
    if (names.has(entry.file) || (await bucket.has(entry.file))) kept.push(entry);
  }
  const lost = files.find((entry) => !kept.includes(entry))?.file;
  const isLost = isOfOwnMirror(mark, given) && (found === null || lost !== undefined);
  const position = isLost ? emptyPosition(mark, `${lost ?? 'the manifest'} is gone`) : mark;
  const epoch = [...names].reduce((most, name) => Math.max(most, epochOf(name)), found?.epoch ?? 0) + 1;
  let current: Manifest = {
    version: 1,
    format,
    mark: isLost ? markAtStart(mark) : mark,
    epoch,
    writer: randomUUID(),
    files: kept,
    retired,
  };
  /** The manifest as this process has read or written it last. */
  let written: { readonly text: string | null; readonly etag: string | null } = read;
  let writer = found?.writer;

  /** Reads the manifest, which should have this text. @throws SinkError unavailable if it is another one */
  async function require(text: string | null): Promise<typeof written> {
    const now = await readManifest(bucket);
    if (now.text === text) return now;
    const isOther = now.manifest !== null && now.manifest.writer !== writer;
    throw new SinkError('unavailable', `S3: another ${isOther ? 'relay' : 'program'} has written ${MANIFEST}`);
  }

  async function check(): Promise<void> {
    await require(written.text);
  }

  /** Writes the manifest over the one that this process knows. A store that answered late may have taken it already. */
  async function replace(text: string): Promise<typeof written> {
    const { etag } = written;
    const condition: Condition | undefined =
      etag !== null ? { 'if-match': etag } : written.text === null ? { 'if-none-match': '*' } : undefined;
    const put = await bucket.put(MANIFEST, Buffer.from(text), isConditional ? condition : undefined);
    if (put !== null) return { text, etag: put.etag };
    const now = await readManifest(bucket);
    if (now.text !== written.text) return await require(text);
    throw new SinkError(
      'unavailable',
      `S3: the store refuses to write ${MANIFEST}, although no other client has written it`,
    );
  }

  /** Writes the manifest. Files that it names no more are removed by a later call, when their time is over. */
  async function write(change: Partial<Manifest>): Promise<void> {
    const now = Date.now();
    const until = new Date(now + KEEP_RETIRED_MS).toISOString();
    const next = { ...current, ...change };
    const named = new Set(next.files.map(({ file }) => file));
    const dropped = current.files.flatMap(({ file }) => (named.has(file) ? [] : { file, until }));
    const due = next.retired.filter((one) => Date.parse(one.until) <= now);
    next.retired = [...next.retired.filter((one) => !due.includes(one)), ...dropped];
    // Without conditional writes, two relays that write at the same time are not noticed.
    if (!isConditional) await check();
    written = await replace(`${JSON.stringify(next, null, 1)}\n`);
    [writer, current] = [next.writer, next];
    for (const { file } of due) await bucket.remove(file);
  }

  // The manifest of another mirror or sink stays as it is until a delivery or a fill takes it over.
  if (isOfOwnMirror(mark, given) && !isOfOtherSink(mark, given)) {
    await write({});
    const named = new Set([...current.files, ...current.retired].map(({ file }) => file));
    const isRubbish = (name: string): boolean => epochOf(name) > 0 && epochOf(name) < epoch && !named.has(name);
    for (const name of [...names].filter(isRubbish)) await bucket.remove(name);
  }
  return { current: () => current, check, write, position };
}
