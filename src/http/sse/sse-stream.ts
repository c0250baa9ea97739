import type { ServerResponse } from 'node:http';
import type { ChangeFeed, streamStart } from '../change-feed.ts';
import { createWriter, type EndCode, endBlock, RETRY_MS, type WriterParts } from '../response-writer.ts';
import type { StreamLimits } from '../stream-limits.ts';

/*
 * One reader of the change log, from a position on:
 *
 *     send the start
 *          │
 *     read a batch ──► write it, piece by piece ──► read the next …
 *          │ nothing new          │ the socket is full
 *     wait for a change,      wait until it drains; if one piece
 *     heartbeat every 15 s    takes 30 s: SLOW_READER
 *
 * At most one batch is read ahead, and nothing is read while written data waits. An event that was started is always
 * written to its end before the stream ends.
 */

export interface StreamParts extends WriterParts {
  readonly changes: Pick<ChangeFeed, 'batch' | 'polled'>;
  readonly limits: StreamLimits;
}

/**
 * Streams events into a response whose headers were sent.
 * @param start reads where to start; if it throws, the stream ends
 * @param ending aborted with an EndCode to end the stream; the stream aborts it when it ends by itself
 * @param onError called with what reading the mirror threw
 * @returns when it is done with the connection
 */
export async function streamChanges(
  response: ServerResponse,
  start: () => ReturnType<typeof streamStart>,
  ending: AbortController,
  parts: StreamParts,
  onError: (error: unknown) => void,
): Promise<EndCode> {
  const { changes, clock, limits, waiting } = parts;
  const { signal } = ending;
  const writer = createWriter(response, ending, parts);

  /** Waits for a change after `seq`. @returns false when a heartbeat is due or the stream ends */
  async function hasGrown(seq: number): Promise<boolean> {
    const since = clock.now();
    for (;;) {
      const last = await changes.polled(signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
        return seq;
      });
      if (signal.aborted) return false;
      if (last > seq) return true;
      const now = clock.now();
      // If the clock was set back, the wait ends early rather than late.
      if (now < since || now - since >= limits.heartbeatMs) return false;
    }
  }

  /** Writes events until `ending` aborts. */
  async function writeEvents(): Promise<void> {
    if (signal.aborted) return;
    const { from, block } = start();
    let seq = from;
    // A reader that was refused before has been told to wait longer.
    await writer.write(`retry: ${RETRY_MS}\n${block}`);
    await waiting.turn();
    while (!signal.aborted) {
      const batch = changes.batch(seq);
      if (batch !== null) {
        await writer.write(batch.bytes);
        seq = batch.to;
        await waiting.turn();
      } else if (!(await hasGrown(seq)) && !signal.aborted) {
        await writer.write(': still here\n\n');
      }
    }
  }

  try {
    await writeEvents();
  } catch (error) {
    onError(error);
    ending.abort('INTERNAL' satisfies EndCode);
  }
  const code = signal.reason as EndCode;
  if (code !== 'GONE') await writer.end(endBlock(code));
  return code;
}
