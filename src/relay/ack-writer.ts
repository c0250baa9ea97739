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

  /** Makes an ack with the current rate and time. */
  function ackNow(cursor: number, delivered: number): Ack {
    return { cursor, delivered, rate: meter.rate(), at: clock.now() };
  }

  /** Counts delivered events, for the rate. */
  function count(events: number): void {
    meter.count(events);
  }

  /** Keeps a confirmation until the next `flush`. */
  function confirm(sink: SinkRow, cursor: number, delivered: number): void {
    pending = { sink, cursor, delivered: delivered + (pending?.delivered ?? 0) };
  }

  /** Returns the sink with the cursor that it has confirmed, written or not. */
  function current(sink: SinkRow): SinkRow {
    return pending === null ? sink : { ...sink, cursor: pending.cursor };
  }

  /** Whether the last write is so recent that the next one may wait. */
  function mayWait(): boolean {
    return Math.abs(clock.now() - writtenAt) < WRITE_EVERY_MS;
  }

  function flush(): void {
    if (pending === null) return;
    write(pending.sink, ackNow(pending.cursor, pending.delivered));
    pending = null;
    writtenAt = clock.now();
  }

  /** Forgets a confirmation that could not be written. */
  function drop(): void {
    pending = null;
  }

  return { ackNow, count, confirm, current, mayWait, flush, drop };
}
