import type { Clocks } from '../../proof/watermark.ts';
import type { Queries } from '../schema/queries.ts';

export function createWatermarkReader({ row, value }: Queries) {
  const clockSeen = row<[], Clocks>(
    'SELECT source_seen AS source, local_seen AS local FROM mirror WHERE source_seen IS NOT NULL AND local_seen IS NOT NULL',
  );
  return {
    /** Source time up to which every change is in the mirror, milliseconds since 1970; null before the first run. */
    watermark: value<[], number | null>('SELECT watermark FROM mirror WHERE id = 1'),
    /** Where the next delta starts, before any overlap: the watermark, or earlier if the source's clock was put back. */
    readUpTo: value<[], number | null>('SELECT min(watermark, source_seen) FROM mirror WHERE id = 1'),
    /** The source's clock and this machine's when the watermark was last set. */
    clockSeen: () => clockSeen() ?? null,
  };
}

export function createWatermarkWriter({ write }: Queries) {
  const advance = write(
    `UPDATE mirror SET watermark = max(coalesce(watermark, 0), :to), source_seen = :to, local_seen = :local WHERE id = 1`,
  );
  return {
    /** Moves the watermark forward; never back. @param localMs this machine's clock when the source's was `toMs` */
    advanceWatermark: (toMs: number, localMs: number) => advance({ to: toMs, local: localMs }),
  };
}
