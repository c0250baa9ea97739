import type { Clock } from '../clock.ts';
import type { Ack, SinkRow } from '../store/sinks.ts';
import { createRateMeter } from './rate-meter.ts';

/**
 * How long a confirmation may stay unwritten for a sink that stores its own mark: each write waits for the disk. After a
 * crash, such a sink returns its mark when it is opened.
 */
const WRITE_EVERY_MS = 100;

/** Collects what a sink confirmed, and writes it to the mirror. */
export interface AckWriter {
  /** Counts delivered events, for the rate. */
  count(events: number): void;
  /** An ack with the current rate and time. */
  ack(cursor: number, delivered: number): Ack;
  /** Keeps a confirmation until the next `flush`. */
  confirm(sink: SinkRow, cursor: number, delivered: number): void;
  /** The sink with the cursor that it has confirmed, written or not. */
  current(sink: SinkRow): SinkRow;
  /** Whether the last write was so recent that the next one may wait. */
  mayWait(): boolean;
  /** Writes the confirmation. If delivery was restarted meanwhile, the mirror ignores it. */
  flush(): void;
  /** Forgets a confirmation that could not be written. */
  drop(): void;
}

/** @param write writes an ack in a transaction of its own */
export function createAckWriter(clock: Clock, write: (sink: SinkRow, ack: Ack) => void): AckWriter {
  const meter = createRateMeter(clock);
  let pending: { readonly sink: SinkRow; readonly cursor: number; readonly delivered: number } | null = null;
  let writtenAt = clock.now();
  const ack = (cursor: number, delivered: number): Ack => ({
    cursor,
    delivered,
    rate: meter.rate(),
    at: clock.now(),
  });
  return {
    count: meter.count,
    ack,
    confirm: (sink, cursor, delivered) => {
      pending = { sink, cursor, delivered: delivered + (pending?.delivered ?? 0) };
    },
    current: (sink) => (pending === null ? sink : { ...sink, cursor: pending.cursor }),
    mayWait: () => Math.abs(clock.now() - writtenAt) < WRITE_EVERY_MS,
    flush: () => {
      if (pending === null) return;
      const { sink, cursor, delivered } = pending;
      write(sink, ack(cursor, delivered));
      pending = null;
      writtenAt = clock.now();
    },
    drop: () => {
      pending = null;
    },
  };
}
