import { CatchwordError, messageOf } from '@catchword/base/errors';
import type { CapturedPage, FetchOutcome, FetchTask, Page } from '@catchword/catalog/page-types';

/**
 * The port between the keeper, which knows which windows are missing, and the fetchers, which read them.
 *
 * The queue holds only hints. SQLite knows which windows have a checkpoint, and the keeper adds tasks for the missing
 * ones until there are none. So a queue may lose tasks (the keeper adds them again) and may deliver an outcome twice
 * (applying a window that has a checkpoint changes nothing), but it must not deliver an outcome that it was not given.
 */
export interface PageQueue {
  /** Adds tasks. Ignores a task whose id is already waiting, in flight, or waiting to be delivered. */
  add(tasks: readonly FetchTask[]): Promise<void>;
  /**
   * Delivers outcomes in the order of arrival, one at a time: each after the promise of the one before has settled.
   * Delivery may begin later, when a queue that is gone comes back. `handle` must not wait for `close`.
   */
  consume(handle: (outcome: FetchOutcome) => Promise<void>): Promise<void>;
  /** Ends the delivery until `consume`: another process may take the outcomes. Finishes outcomes that were taken. */
  rest(): Promise<void>;
  /** Drops the waiting tasks of a run. Tasks in flight may still be delivered. */
  drop(runId: number): Promise<void>;
  /** Finishes the current outcome, abandons tasks in flight and closes connections. Idempotent. */
  close(): Promise<void>;
}

/** Validates a response. @param bytes may move to another thread: then only the page has them. @throws PAGE_INVALID */
export type ValidatePage = (bytes: Uint8Array<ArrayBuffer>, task: FetchTask) => Page | Promise<Page>;

/**
 * Reads and validates one window, with one request; the client makes further ones to make sure of a token or an answer.
 * @param attempt from 1; a doubtful page is retried before it is accepted
 * @param arrived called when the response, of so many bytes, is there and only has to be validated
 * @throws CatchwordError; `retryable` says whether to retry
 */
export type ReadWindow = (
  task: FetchTask,
  signal: AbortSignal,
  attempt: number,
  arrived?: (bytes: number) => void,
) => Promise<Pick<CapturedPage, 'page' | 'response'>>;

/** The error that a `ReadWindow` threw. Anything but a CatchwordError is a bug, so it is not retryable. */
export function toReadError(thrown: unknown): CatchwordError {
  if (thrown instanceof CatchwordError) return thrown;
  return new CatchwordError('PAGE_INVALID', `the page could not be processed: ${messageOf(thrown)}`, {
    retryable: false,
    cause: thrown,
  });
}
