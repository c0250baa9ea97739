import type { Clock } from '../clock.ts';
import type { SinkRow } from '../store/sinks.ts';
import type { Ack } from '../store/write-sinks.ts';
import { createRateMeter } from './rate-meter.ts';

/**
 * How long a confirmation may stay unwritten for a sink that stores its own mark: each write waits for the disk. After a
 * crash, such a sink returns its mark when it is opened.
 */
const WRITE_EVERY_MS = 100;

/**
 * Collects what a sink confirmed.
 * @param write writes an ack to the mirror, which ignores it if delivery was restarted meanwhile
 */
export function createAckWriter(clock: Clock, write: (sink: SinkRow, ack: Ack) => void) {
  const meter = createRateMeter(clock);
  let pending: { readonly sink: SinkRow; readonly cursor: number; readonly delivered: number } | null = null;
  let writtenAt = clock.now();

  function ackOf(cursor: number, delivered: number): Ack {
    return { cursor, delivered, rate: meter.rate(), at: clock.now() };
  }

  function flush(): void {
    if (pending === null) return;
    write(pending.sink, ackOf(pending.cursor, pending.delivered));
    pending = null;
    writtenAt = clock.now();
  }

  return {
    /** Counts more delivered events. @returns the ack, for a caller that writes it */
    count: (cursor: number, delivered: number): Ack => {
      meter.count(delivered);
      return ackOf(cursor, delivered);
    },
    /** Takes a confirmation. It is written now, or if it `mayWait` and the last write is recent, by a later `flush`. */
    confirm: (sink: SinkRow, cursor: number, delivered: number, mayWait: boolean): void => {
      meter.count(delivered);
      pending = { sink, cursor, delivered: delivered + (pending?.delivered ?? 0) };
      if (!mayWait || Math.abs(clock.now() - writtenAt) >= WRITE_EVERY_MS) flush();
    },
    /** Returns the sink with the cursor that it has confirmed, written or not. */
    current: (sink: SinkRow): SinkRow => (pending === null ? sink : { ...sink, cursor: pending.cursor }),
    flush,
    /** Forgets a confirmation that could not be written. */
    drop: (): void => {
      pending = null;
    },
  };
}
