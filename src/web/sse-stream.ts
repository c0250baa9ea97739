import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import type { ChangeFeed } from './change-feed.ts';
import type { StreamStart } from './start-position.ts';

/*
 * One reader of the change log, from a position on:
 *
 *     send the start
 *          │
 *     read a batch ──► write it, event by event ──► read the next …
 *          │ nothing new          │ the socket is full
 *     wait for a change,      wait until it drains; if one piece
 *     heartbeat every 15 s    takes 30 s: SLOW_READER
 *
 * At most one batch is read ahead, and the socket holds at most its high-water mark and one piece: nothing is read while
 * written data waits. An event that was started is always written to its end before the stream ends.
 */

/** Bytes written at once. A reader that takes one piece in time is alive, however large the event. */
const PIECE = 65_536;
/** How long an EventSource waits before it reconnects, milliseconds. */
const RETRY_MS = 3_000;

/** Why a stream ends. */
const MESSAGES = {
  GONE: 'the reader disconnected',
  SHUTDOWN: 'catchword is stopping; reconnect with the last id',
  SLOW_READER: 'the reader took too little data for too long; reconnect with the last id',
  INTERNAL: "the mirror could not be read; see catchword's log",
};

export type EndCode = keyof typeof MESSAGES;

export const STREAM_LIMITS = {
  /** Open streams. For safety: each may hold a batch. */
  maxStreams: 100,
  /** How often each waiting stream polls the mirror. */
  pollMs: 250,
  /** A comment is sent if nothing else was for this long. */
  heartbeatMs: 15_000,
  /** A reader that takes this long for 64 kB is disconnected. */
  slowReaderMs: 30_000,
  /** How long the last message may take before the connection is destroyed. */
  graceMs: 30_000,
  /** How long a response, or the last message of a stream, may take when catchword stops. */
  stopMs: 5_000,
};

export type StreamLimits = Readonly<typeof STREAM_LIMITS>;

export interface StreamParts {
  readonly changes: Pick<ChangeFeed, 'batch' | 'lastSeq'>;
  readonly clock: Clock;
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
  start: () => StreamStart,
  ending: AbortController,
  { changes, clock, limits }: StreamParts,
  onError: (error: unknown) => void,
): Promise<EndCode> {
  const { signal } = ending;

  /** Waits until the socket drains or the stream ends; ends the stream if the socket takes too long. */
  async function drained(): Promise<void> {
    const over = new AbortController();
    const until = { signal: over.signal };
    const tooSlow = clock.sleep(limits.slowReaderMs, over.signal).then(() => {
      ending.abort('SLOW_READER' satisfies EndCode);
    });
    // A broken connection is an error here, and ends the stream by itself.
    await Promise.race([once(response, 'drain', until), once(signal, 'abort', until), tooSlow]).catch(() => {});
    over.abort();
  }

  async function write(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length && !response.destroyed; at += PIECE) {
      const isFull = !response.write(bytes.subarray(at, at + PIECE));
      if (isFull && !signal.aborted) await drained();
    }
  }

  /** Waits for a change after `seq`. @returns false when a heartbeat is due or the stream ends */
  async function hasGrown(seq: number): Promise<boolean> {
    const since = clock.now();
    for (;;) {
      await clock.sleep(limits.pollMs, signal).catch(() => {});
      if (signal.aborted) return false;
      if (changes.lastSeq() > seq) return true;
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
    await write(block);
    while (!signal.aborted) {
      const batch = changes.batch(seq);
      for (const event of batch) {
        if (signal.aborted) return;
        await write(`id: ${event.id}\ndata: ${event.text}\n\n`);
        seq = event.seq;
      }
      // A reader that takes everything at once would otherwise starve the others.
      if (batch.length > 0) await yieldToOthers();
      else if (!(await hasGrown(seq)) && !signal.aborted) {
        await write(': still here\n\n');
      }
    }
  }

  /** Sends the reason, and destroys the connection if the reader does not take it. */
  async function writeEnd(code: EndCode): Promise<void> {
    if (response.destroyed || response.closed) return;
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    response.end(`retry: ${RETRY_MS}\nevent: end\ndata: ${JSON.stringify({ code, message: MESSAGES[code] })}\n\n`);
    await clock.sleep(limits.graceMs, closed.signal).catch(() => {});
    if (!closed.signal.aborted) response.destroy();
  }

  // Writing to a broken connection is not a failure: `close` follows.
  response.on('error', () => {});
  response.once('close', () => ending.abort('GONE' satisfies EndCode));
  try {
    await writeEvents();
  } catch (error) {
    onError(error);
    ending.abort('INTERNAL' satisfies EndCode);
  }
  const code = signal.reason as EndCode;
  if (code !== 'GONE') await writeEnd(code);
  return code;
}
