import * as z from 'zod';
import { SinkError } from '../../sink.ts';
import { markSchema } from '../../stored-mark.ts';
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
  /** Snapshots first; then in the order of delivery. */
  files: z.array(fileSchema),
  /** During a fill: how many of the files, from the first on, are from before it. */
  before_fill: z.number().nullable(),
  /** Files that an earlier manifest named, which are removed after this time. */
  retired: z.array(z.object({ file: z.string(), until: z.iso.datetime() })),
});
export type Manifest = z.output<typeof manifestSchema>;

const MANIFEST = 'manifest.json';
/** For readers who have read an earlier manifest. */
const KEEP_RETIRED_MS = 3_600_000;

/** Names that this sink gives; it leaves every other object alone. */
const NAME = /^(\d{6})-\d{6}-(?:snapshot|changes)-\d+-\d+\.(?:parquet|ndjson\.gz)$/;

/** The epoch of a file of this sink; 0 for another object. */
export function epochOf(name: string): number {
  return Number(NAME.exec(name)?.[1] ?? 0);
}

const counted = (count: number): string => String(count).padStart(6, '0');

export function fileName(
  epoch: number,
  count: number,
  { kind, from, to }: Omit<DataFile, 'file'>,
  end: string,
): string {
  return `${counted(epoch)}-${counted(count)}-${kind}-${from}-${to}.${end}`;
}

function parsed(bytes: Buffer): Manifest {
  try {
    return manifestSchema.parse(JSON.parse(bytes.toString()));
  } catch (error) {
    const message = `S3: catchword cannot read ${MANIFEST}: another program or a later version wrote it. Use another prefix`;
    throw new SinkError('misconfigured', message, { cause: error });
  }
}

export async function readManifest(bucket: Bucket): Promise<{ manifest: Manifest | null; etag: string | null }> {
  const found = await bucket.get(MANIFEST);
  return found === null ? { manifest: null, etag: null } : { manifest: parsed(found.bytes), etag: found.etag };
}

function movedManifest(): SinkError {
  return new SinkError('unavailable', `S3: another relay has written ${MANIFEST}`);
}

/**
 * The manifest as this relay has written it. If another relay writes it, every later call fails.
 * @param etag of the manifest that was read; null if there was none
 */
export function createManifestFile(bucket: Bucket, isConditional: boolean, etag: string | null, manifest: Manifest) {
  let current = manifest;
  let written = etag;

  /** @throws SinkError unavailable if it changed */
  async function check(): Promise<void> {
    if (((await bucket.get(MANIFEST))?.etag ?? null) !== written) throw movedManifest();
  }

  async function put(next: Manifest): Promise<void> {
    // Without conditional writes, two relays that write at the same time are not noticed.
    if (!isConditional) await check();
    const condition: Condition = written === null ? { 'if-none-match': '*' } : { 'if-match': written };
    const bytes = Buffer.from(`${JSON.stringify(next, null, 1)}\n`);
    const answer = await bucket.put(MANIFEST, bytes, isConditional ? condition : undefined);
    if (answer === null) throw movedManifest();
    written = answer;
    current = next;
  }

  return {
    current: () => current,
    check,
    /** Writes the manifest. Files that it names no more are removed by a later call, when their time is over. */
    write: async (change: Partial<Manifest>): Promise<void> => {
      const next = { ...current, ...change };
      const now = Date.now();
      const until = new Date(now + KEEP_RETIRED_MS).toISOString();
      const kept = new Set(next.files.map(({ file }) => file));
      const dropped = current.files.flatMap(({ file }) => (kept.has(file) ? [] : { file, until }));
      const due = next.retired.filter((one) => Date.parse(one.until) <= now);
      await put({ ...next, retired: [...next.retired.filter((one) => !due.includes(one)), ...dropped] });
      for (const { file } of due) await bucket.remove(file);
    },
    /** Removes those of these objects that no manifest names, unless a later relay writes them. */
    removeRubbish: async (names: Iterable<string>): Promise<void> => {
      const named = new Set([...current.files, ...current.retired].map(({ file }) => file));
      for (const name of names) {
        const epoch = epochOf(name);
        if (epoch > 0 && epoch < current.epoch && !named.has(name)) await bucket.remove(name);
      }
    },
  };
}
