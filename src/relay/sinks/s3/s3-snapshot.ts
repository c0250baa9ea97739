import { createHash } from 'node:crypto';
import { SinkError } from '../../sink.ts';
import type { RowFormat, StoredRow } from './row-file.ts';
import type { Bucket } from './s3-bucket.ts';
import type { DataFile } from './s3-manifest.ts';

/** Characters of one file of a snapshot: one is in memory at a time. */
const FILE_CHARS = 16_000_000;
/** Keys of changed products that are in memory at a time. With more, the files are read several times. */
const MOST_KEYS = 500_000;

export interface SnapshotJob {
  readonly bucket: Bucket;
  readonly format: RowFormat;
  /** In the order of delivery. */
  readonly files: readonly DataFile[];
  /** Which products to take. */
  readonly takes: (vbid: string) => boolean;
  readonly nameOf: (entry: Omit<DataFile, 'file'>) => string;
}

/** The newest row of each living product, file by file: the newest file first. */
async function* newestRows({ bucket, format, files, takes }: SnapshotJob): AsyncGenerator<StoredRow[]> {
  const rowsOfChanges = files.reduce((sum, { kind, rows }) => sum + (kind === 'changes' ? rows : 0), 0);
  const shares = Math.max(1, Math.ceil(rowsOfChanges / MOST_KEYS));
  const shareOf = (vbid: string): number =>
    shares === 1 ? 0 : createHash('md5').update(vbid).digest().readUInt32BE() % shares;
  for (let share = 0; share < shares; share++) {
    const seen = new Set<string>();
    for (const { file, kind } of files.toReversed()) {
      const found = await bucket.get(file);
      if (found === null) throw new SinkError('unavailable', `S3: another client has removed ${file}`);
      const rows = (await format.decode(found.bytes)).toReversed();
      yield rows.filter(({ vbid, op }) => {
        if (!takes(vbid) || shareOf(vbid) !== share || seen.has(vbid)) return false;
        // A snapshot has each product once.
        if (kind === 'changes') seen.add(vbid);
        return op !== 'removed';
      });
    }
  }
}

/** Writes the newest rows of the living products in some files as files of a snapshot. @returns those, none named yet */
export async function writeSnapshot(job: SnapshotJob): Promise<DataFile[]> {
  const written: DataFile[] = [];
  let rows: StoredRow[] = [];
  let chars = 0;

  async function writeFile(): Promise<void> {
    if (rows.length === 0) return;
    const entry = { kind: 'snapshot', ...spanOf(rows), rows: rows.length } as const;
    const file = job.nameOf(entry);
    await job.bucket.put(file, job.format.encode(rows));
    written.push({ file, ...entry });
    rows = [];
    chars = 0;
  }

  for await (const more of newestRows(job)) {
    for (const row of more) {
      rows.push(row);
      chars += row.vbid.length + (row.body?.length ?? 0);
      if (chars >= FILE_CHARS) await writeFile();
    }
  }
  await writeFile();
  return written;
}

/** The lowest and the highest `seq`; not by spreading, which many rows would overflow. */
export function spanOf(rows: readonly { readonly seq: number }[]): { from: number; to: number } {
  return rows.reduce(({ from, to }, { seq }) => ({ from: Math.min(from, seq), to: Math.max(to, seq) }), {
    from: Number.MAX_SAFE_INTEGER,
    to: 0,
  });
}

/** A snapshot of the first so many files, and what came of it. */
interface Running {
  readonly of: number;
  files?: readonly DataFile[];
  error?: unknown;
}

/** Replaces files by a snapshot, in the background. */
export function createCompaction(jobOf: (files: readonly DataFile[]) => SnapshotJob) {
  let running: Running | null = null;

  return {
    /** Begins with these files, unless it runs. */
    begin: (files: readonly DataFile[]): void => {
      if (running !== null) return;
      const begun: Running = { of: files.length };
      running = begun;
      writeSnapshot(jobOf(files)).then(
        (written) => Object.assign(begun, { files: written }),
        (error: unknown) => Object.assign(begun, { error }),
      );
    },
    /** Returns the files with the snapshot, once it is written, in the place of those that it replaces. @throws its error */
    applied: (files: readonly DataFile[]): readonly DataFile[] => {
      if (running?.error !== undefined) throw running.error;
      if (running?.files === undefined) return files;
      const after = [...running.files, ...files.slice(running.of)];
      running = null;
      return after;
    },
  };
}
