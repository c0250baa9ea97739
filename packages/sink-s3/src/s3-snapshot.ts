import { bucketOf } from '@catchword/sink-kit/store-digest';
import type { StoredRow } from './row-file.ts';
import type { DataFile, DataFiles } from './s3-manifest.ts';

/** Characters of one file of a snapshot: one is in memory at a time. */
const FILE_CHARS = 16_000_000;
/** Keys of changed products that are in memory at a time. With more, the files are read several times. */
const MOST_KEYS = 500_000;

/** Reads the newest row of each living product, file by file, the newest file first. @param takes which products to take */
export async function* newestRows(
  data: DataFiles,
  files: readonly DataFile[],
  takes: (vbid: string) => boolean = () => true,
): AsyncGenerator<readonly StoredRow[]> {
  const rowsOfChanges = files.reduce((sum, { kind, rows }) => sum + (kind === 'changes' ? rows : 0), 0);
  const shares = Math.max(1, Math.ceil(rowsOfChanges / MOST_KEYS));
  const shareOf = (vbid: string): number => (shares === 1 ? 0 : bucketOf(vbid) % shares);
  for (let share = 0; share < shares; share++) {
    const seen = new Set<string>();
    for (const { file, kind } of files.toReversed()) {
      const stored = (await data.read(file)).toReversed();
      yield stored.filter(({ vbid, op }) => {
        if (!takes(vbid) || shareOf(vbid) !== share || seen.has(vbid)) return false;
        // A snapshot has each product once.
        if (kind === 'changes') seen.add(vbid);
        return op !== 'removed';
      });
    }
  }
}

/**
 * Writes the newest rows of living products as files of a snapshot.
 * @param files in the order of delivery
 * @returns the snapshot's files, which no manifest names yet
 */
export async function writeSnapshot(data: DataFiles, files: readonly DataFile[]): Promise<DataFile[]> {
  const written: DataFile[] = [];
  let rows: StoredRow[] = [];
  let chars = 0;

  async function writeFile(): Promise<void> {
    if (rows.length > 0) written.push(await data.write('snapshot', rows));
    [rows, chars] = [[], 0];
  }

  for await (const more of newestRows(data, files)) {
    for (const row of more) {
      rows.push(row);
      chars += row.vbid.length + (row.body?.length ?? 0);
      if (chars >= FILE_CHARS) await writeFile();
    }
  }
  await writeFile();
  return written;
}
