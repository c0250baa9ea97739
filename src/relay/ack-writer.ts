import type { Clock } from '@catchword/base/clock';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Ack } from '../store/rows/write-sinks.ts';

/**
 * How long a confirmation may stay unwritten for a sink that stores its own mark: each write waits for the disk. After a
 * crash, such a sink returns its mark when it is opened.
 */
const WRITE_EVERY_MS = 100;
const RATE_WINDOW_MS = 5_000;

/** Measures events per second, over the last seconds in which there were any. */
function createRateMeter(clock: Clock) {
  let since = clock.now();
  let counted = 0;
  let lastRate = 0;
  return {
    count: (events: number): void => {
      const now = clock.now();
      const wasSetBack = now < since;
      if (wasSetBack) since = now;
      if (now - since > RATE_WINDOW_MS) {
        // After a pause the rate starts at 0: an idle sink is not a slow one.
        lastRate = now - since > 2 * RATE_WINDOW_MS ? 0 : (counted * 1000) / (now - since);
        since = now;
        counted = 0;
      }
      counted += events;
    },
    rate: (): number => {
      const elapsed = clock.now() - since;
      return elapsed < 1_000 ? lastRate : (counted * 1000) / elapsed;
    },
  };
}

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
