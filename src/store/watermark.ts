import type { Database } from 'better-sqlite3';
import type { Clocks } from '../catalog/watermark.ts';

export interface WatermarkReader {
  /** Source time up to which every change is in the mirror, milliseconds since 1970; null before the first run. */
  watermark(): number | null;
  /**
   * Where the next delta starts, before any overlap: the watermark, or earlier if the source's clock was put back
   * since.
   */
  readUpTo(): number | null;
  /** The source's clock and this machine's when the watermark was last set. */
  clockSeen(): Clocks | null;
}

export interface WatermarkWriter extends WatermarkReader {
  /**
   * Moves the watermark forward; never back.
   * @param localMs this machine's clock when the source's was `toMs`
   */
  advanceWatermark(toMs: number, localMs: number): void;
}

export function createWatermarkReader(sqlite: Database): WatermarkReader {
  const watermark = sqlite.prepare<[], number | null>('SELECT watermark FROM mirror WHERE id = 1').pluck();
  const clockSeen = sqlite.prepare<[], { source: number | null; local: number | null }>(
    'SELECT source_seen AS source, local_seen AS local FROM mirror WHERE id = 1',
  );
  return {
    watermark: () => watermark.get() ?? null,
    readUpTo: () => {
      const at = watermark.get() ?? null;
      return at === null ? null : Math.min(at, clockSeen.get()?.source ?? at);
    },
    clockSeen: () => {
      const { source, local } = clockSeen.get() ?? { source: null, local: null };
      return source === null || local === null ? null : { source, local };
    },
  };
}

export function createWatermarkWriter(sqlite: Database, reader: WatermarkReader): WatermarkWriter {
  const advance = sqlite.prepare(
    `UPDATE mirror SET watermark = max(coalesce(watermark, 0), :to), source_seen = :to, local_seen = :local WHERE id = 1`,
  );
  return {
    ...reader,
    advanceWatermark: (toMs, localMs) => advance.run({ to: toMs, local: localMs }),
  };
}
