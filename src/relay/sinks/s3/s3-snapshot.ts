import { SinkError } from '../../sink.ts';
import { bucketOf } from '../../store-digest.ts';
import type { RowFormat, StoredRow } from './row-file.ts';
import type { Bucket } from './s3-bucket.ts';
import type { DataFile, WriteRows } from './s3-manifest.ts';

/** Characters of one file of a snapshot: one is in memory at a time. */
const FILE_CHARS = 16_000_000;
/** Keys of changed products that are in memory at a time. With more, the files are read several times. */
const MOST_KEYS = 500_000;

interface SnapshotJob {
  readonly bucket: Bucket;
  readonly format: RowFormat;
  /** In the order of delivery. */
  readonly files: readonly DataFile[];
  /** Which products to take. */
  readonly takes: (vbid: string) => boolean;
  readonly write: WriteRows;
}

/** The newest row of each living product, file by file: the newest file first. */
async function* newestRows({ bucket, format, files, takes }: SnapshotJob): AsyncGenerator<StoredRow[]> {
  const rowsOfChanges = files.reduce((sum, { kind, rows }) => sum + (kind === 'changes' ? rows : 0), 0);
  const shares = Math.max(1, Math.ceil(rowsOfChanges / MOST_KEYS));
  const shareOf = (vbid: string): number => (shares === 1 ? 0 : bucketOf(vbid) % shares);
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
    if (rows.length > 0) written.push(await job.write('snapshot', rows));
    [rows, chars] = [[], 0];
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
