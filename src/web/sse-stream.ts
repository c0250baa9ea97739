import type { ServerResponse } from 'node:http';
import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Clock } from '../clock.ts';
import type { ChangeLog } from './change-feed.ts';
import type { News } from './change-notifier.ts';
import type { Beginning } from './start-position.ts';

/*
 * One reader of the change log, from a place on, for as long as it likes:
 *
 *     say where it begins
 *          │
 *     read a batch ──► write it, event by event ──► read the next …
 *          │ nothing new          │ the socket is full
 *     wait for news,          wait until it is empty; where one piece
 *     beat every 15 s         takes 30 s: SLOW_READER
 *
 * Ahead of the reader there are never more than one batch, and in the socket never more than its own mark and one piece:
 * nothing is read while what was written waits. A begun event is always written to its end before the stream is.
 */

/** Bytes written at once: who takes one piece in time is alive, however large the event. */
const PIECE = 65_536;
/** How long a reader that was sent away waits before it comes back, milliseconds. */
const RETRY_MS = 3_000;

/** Why a stream ends; `GONE`: the reader went away. */
export type EndCode = 'GONE' | 'SHUTDOWN' | 'SLOW_READER' | 'INTERNAL';

const MESSAGES: Record<EndCode, string> = {
  GONE: 'the reader went away',
  SHUTDOWN: 'catchword stops; come back and go on after the last id',
  SLOW_READER: 'too little was taken for too long; come back and go on after the last id',
  INTERNAL: 'the mirror could not be read; the log of catchword says why',
};

export interface StreamTimes {
  /** A comment is sent where nothing else was for so long; default 15 s. */
  readonly heartbeatMs: number;
  /** A reader that takes so long for 64 kB is sent away; default 30 s. */
  readonly slowReaderMs: number;
  /** How long the last words may take before the connection is broken; default 30 s. */
  readonly graceMs: number;
}

export interface StreamParts {
  readonly changes: Pick<ChangeLog, 'batch'>;
  readonly news: News;
  readonly clock: Clock;
  readonly times: StreamTimes;
}

/** Resolves when the socket is empty, or the stream ends: which it does where there is none for too long. */
function room(response: ServerResponse, ending: AbortController, { clock, times }: StreamParts): Promise<void> {
  return new Promise((resolve) => {
    const patience = new AbortController();
    const done = (): void => {
      response.off('drain', done);
      ending.signal.removeEventListener('abort', done);
      patience.abort();
      resolve();
    };
    response.on('drain', done);
    ending.signal.addEventListener('abort', done);
    clock.sleep(times.slowReaderMs, patience.signal).then(
      () => ending.abort('SLOW_READER' satisfies EndCode),
      () => {},
    );
  });
}

async function write(response: ServerResponse, text: string, ending: AbortController, parts: StreamParts) {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length && !response.destroyed; at += PIECE) {
    const full = !response.write(bytes.subarray(at, at + PIECE));
    if (full && !ending.signal.aborted) await room(response, ending, parts);
  }
}

/** Writes until `ending`. */
async function pump(response: ServerResponse, begin: () => Beginning, ending: AbortController, parts: StreamParts) {
  const { changes, news, clock, times } = parts;
  const { signal } = ending;
  if (signal.aborted) return;
  const { from, block } = begin();
  let seq = from;
  await write(response, block, ending, parts);
  while (!signal.aborted) {
    const batch = changes.batch(seq);
    for (const event of batch) {
      if (signal.aborted) return;
      await write(response, `id: ${event.id}\ndata: ${event.text}\n\n`, ending, parts);
      seq = event.seq;
    }
    // A reader that takes everything at once would otherwise let nobody else have a turn.
    if (batch.length > 0) await othersTurn();
    else if (!(await news.wait(seq, clock.now() + times.heartbeatMs, signal)) && !signal.aborted) {
      await write(response, ': still here\n\n', ending, parts);
    }
  }
}

/** Says why, and breaks the connection where even that is not taken. */
async function farewell(response: ServerResponse, code: EndCode, { clock, times }: StreamParts): Promise<void> {
  if (response.destroyed || response.closed) return;
  const waiting = new AbortController();
  response.once('close', () => waiting.abort());
  response.end(`retry: ${RETRY_MS}\nevent: end\ndata: ${JSON.stringify({ code, message: MESSAGES[code] })}\n\n`);
  await clock.sleep(times.graceMs, waiting.signal).catch(() => {});
  if (!waiting.signal.aborted) response.destroy();
}

/**
 * Streams events into a response whose head was sent.
 * @param begin says where; what it throws ends the stream
 * @param ending aborted with an EndCode to end the stream; aborted by the stream itself where it ends on its own account
 * @param onError told of what reading the mirror threw
 * @returns when the connection is finished with
 */
export async function streamChanges(
  response: ServerResponse,
  begin: () => Beginning,
  ending: AbortController,
  parts: StreamParts,
  onError: (error: unknown) => void,
): Promise<EndCode> {
  // Writing to a connection that was broken is no failure: `close` follows.
  response.on('error', () => {});
  response.once('close', () => ending.abort('GONE' satisfies EndCode));
  try {
    await pump(response, begin, ending, parts);
  } catch (error) {
    onError(error);
    ending.abort('INTERNAL' satisfies EndCode);
  }
  const code = ending.signal.reason as EndCode;
  if (code !== 'GONE') await farewell(response, code, parts);
  return code;
}
