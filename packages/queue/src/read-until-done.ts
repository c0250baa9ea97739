import { retryDelayMs } from '@catchword/base/backoff';
import type { Clock } from '@catchword/base/clock';
import { type CatchwordError, toErrorRecord } from '@catchword/base/errors';
import type { Logger } from '@catchword/base/log';
import { type FetchOutcome, type FetchTask, taskId } from '@catchword/catalog/page-types';
import type { InFlight, InFlightRequest } from '@catchword/pace/in-flight';
import type { Pacer } from '@catchword/pace/pacer';
import { type ReadWindow, toReadError } from './queue-port.ts';

export interface ReadOptions {
  readonly read: ReadWindow;
  readonly pacer: Pacer;
  /** The requests of this process. */
  readonly inFlight: InFlight;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called before a retry whose delay the source did not ask for. */
  readonly onRetry?: ((error: CatchwordError, delayMs: number) => void) | undefined;
}

/** The place of a task among those that may make a request; default: the task may. */
export interface RequestSlot {
  readonly take: () => Promise<void>;
  /** Called with the size of the response, before validation. */
  readonly hold: (bytes: number) => void;
}

/** Reads a window, and retries until there is an outcome. @returns null if `signal` was aborted */
export async function readUntilDone(
  task: FetchTask,
  { read, pacer, inFlight, clock, log, onRetry }: ReadOptions,
  signal: AbortSignal,
  slot?: RequestSlot,
): Promise<FetchOutcome | null> {
  for (let attempt = 1; ; attempt++) {
    let request: InFlightRequest | undefined;
    const arrived = (bytes: number): void => {
      request?.end(true);
      slot?.hold(bytes);
    };
    try {
      await slot?.take();
      request = await inFlight.begin(signal);
      // Another mirror of the source may be reading a list for hours.
      await pacer.acquire(signal, { isUrgent: task.from !== null || task.vbid !== undefined });
      request.sent();
      const { page, response } = await read(task, signal, attempt, arrived);
      request.end(true);
      pacer.succeeded();
      return { kind: 'captured', task, page, response, requests: attempt };
    } catch (thrown) {
      request?.end(false);
      if (signal.aborted) return null;
      const error = toReadError(thrown);
      const askedMs = error.retryAfterMs ?? 0;
      if (request?.failed(error) !== true) await pacer.heed(error);
      const delayMs = retryDelayMs(error, attempt, task.maxAttempts, () => clock.random());
      if (delayMs === null) {
        log.warn({ task: taskId(task), attempt, code: error.code, reason: error.message }, 'a page cannot be read');
        return { kind: 'failed', task, error: toErrorRecord(error), requests: attempt };
      }
      if (error.retryAfterMs === undefined) onRetry?.(error, delayMs);
      log.warn({ task: taskId(task), attempt, delayMs, code: error.code, reason: error.message }, 'retrying page');
      // The pacer waits for as long as the source asked, because an operator may end that pause.
      await clock.sleep(delayMs - askedMs, signal).catch(() => {});
      if (signal.aborted) return null;
    }
  }
}
