import type { EventLines, SinkEvent } from './sink.ts';

const FIRST_SIZE = 1 << 20;

export type LineBuffer = ReturnType<typeof createLineBuffer>;

/**
 * Joins lines in memory that is used again: new memory for each batch doubles the work of a file (measured).
 * @param firstSize bytes
 */
export function createLineBuffer(firstSize = FIRST_SIZE) {
  let bytes = Buffer.allocUnsafe(firstSize);
  let size = 0;
  return {
    clear: (): void => {
      size = 0;
    },
    append: (lines: Buffer): void => {
      const needed = size + lines.length;
      if (needed > bytes.length) {
        const larger = Buffer.allocUnsafe(2 * needed);
        bytes.copy(larger, 0, 0, size);
        bytes = larger;
      }
      size += lines.copy(bytes, size);
    },
    /** All appended lines; valid until the next `clear`. */
    bytes: (): Buffer => bytes.subarray(0, size),
  };
}

/** @returns a function that returns two buffers in turn: for the batch that is delivered, and for the next one */
export function createLineBuffers(): () => LineBuffer {
  let [next, other] = [createLineBuffer(), createLineBuffer()];
  return () => {
    [next, other] = [other, next];
    next.clear();
    return next;
  };
}

/** The lines of events that were read one by one. */
export function linesOf(events: readonly SinkEvent[]): EventLines {
  const [first, last] = [events[0], events.at(-1)];
  return {
    bytes: Buffer.from(events.map(({ text }) => `${text}\n`).join('')),
    events: events.length,
    first: first?.seq ?? 0,
    last: last?.seq ?? 0,
    firstId: first?.id ?? '',
    lastId: last?.id ?? '',
  };
}
