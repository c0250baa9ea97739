import type { Filled } from '../../sink.ts';
import { bucketOf } from '../../store-digest.ts';
import type { StoredRow } from './row-file.ts';
import type { DataFile, DataFiles } from './s3-manifest.ts';

/** Characters of one file of a snapshot: one is in memory at a time. */
const FILE_CHARS = 16_000_000;
/** Keys of changed products that are in memory at a time. With more, the files are read several times. */
const MOST_KEYS = 500_000;

/** The newest row of each living product, file by file, with the place of the file: the newest file first. */
async function* newestRows(
  data: DataFiles,
  files: readonly DataFile[],
  takes: (vbid: string) => boolean,
): AsyncGenerator<{ readonly at: number; readonly rows: readonly StoredRow[] }> {
  const rowsOfChanges = files.reduce((sum, { kind, rows }) => sum + (kind === 'changes' ? rows : 0), 0);
  const shares = Math.max(1, Math.ceil(rowsOfChanges / MOST_KEYS));
  const shareOf = (vbid: string): number => (shares === 1 ? 0 : bucketOf(vbid) % shares);
  for (let share = 0; share < shares; share++) {
    const seen = new Set<string>();
    for (const [at, { file, kind }] of [...files.entries()].toReversed()) {
      const stored = (await data.read(file)).toReversed();
      const rows = stored.filter(({ vbid, op }) => {
        if (!takes(vbid) || shareOf(vbid) !== share || seen.has(vbid)) return false;
        // A snapshot has each product once.
        if (kind === 'changes') seen.add(vbid);
        return op !== 'removed';
      });
      yield { at, rows };
    }
  }
}

/**
 * Counts the living products that a fill has delivered, and the others without `kept`.
 * @param files in the order of delivery
 * @param begin the place of the first file of the fill
 */
export async function countFilled(
  data: DataFiles,
  files: readonly DataFile[],
  begin: number,
  kept: readonly string[],
): Promise<Filled> {
  const isKept = new Set(kept);
  const counts = { delivered: 0, left: 0 };
  for await (const { at, rows } of newestRows(data, files, () => true)) {
    if (at >= begin) counts.delivered += rows.length;
    else counts.left += rows.filter(({ vbid }) => !isKept.has(vbid)).length;
  }
  return counts;
}

/**
 * Writes the newest rows of living products as files of a snapshot.
 * @param files in the order of delivery
 * @param takes which products to take
 * @returns the snapshot's files, which no manifest names yet
 */
export async function writeSnapshot(
  data: DataFiles,
  files: readonly DataFile[],
  takes: (vbid: string) => boolean = () => true,
): Promise<DataFile[]> {
  const written: DataFile[] = [];
  let rows: StoredRow[] = [];
  let chars = 0;

  async function writeFile(): Promise<void> {
    if (rows.length > 0) written.push(await data.write('snapshot', rows));
    [rows, chars] = [[], 0];
  }

  for await (const { rows: more } of newestRows(data, files, takes)) {
    for (const row of more) {
      rows.push(row);
      chars += row.vbid.length + (row.body?.length ?? 0);
      if (chars >= FILE_CHARS) await writeFile();
    }
  }
  await writeFile();
  return written;
}
