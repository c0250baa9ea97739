import type { FetchOutcome, FetchTask, Page, PageResponse } from '../catalog/page.ts';

/**
 * Who does the work: the port between the keeper, which knows what is missing, and the fetchers, which read it.
 *
 * The queue holds hints only. SQLite knows which windows have a checkpoint; the keeper adds what is missing, again and
 * again, until nothing is. So a queue may lose tasks (the keeper adds them again) and may deliver an outcome twice
 * (applying a window that has a checkpoint changes nothing), but it must not deliver an outcome it was not given.
 */
export interface PageQueue {
  /** Takes tasks. A task whose id is already waiting, in flight or arrived is ignored. */
  add(tasks: readonly FetchTask[]): Promise<void>;
  /**
   * Hands over outcomes in the order of arrival, one at a time: the next after the promise of the last settled. Resolves
   * once handing over has begun. `handle` must not wait for `close`.
   */
  consume(handle: (outcome: FetchOutcome) => Promise<void>): Promise<void>;
  /** Forgets what waits of a run. What is in flight may still arrive. */
  drop(runId: number): Promise<void>;
  /** Finishes the outcome in hand, gives up what is in flight, and lets go of connections. Idempotent. */
  close(): Promise<void>;
}

/**
 * Reads one window: exactly one request, validated.
 * @param attempt from 1; the source may deserve another chance before something odd is taken for its word
 * @throws CatchwordError; `retryable` says whether the window may be asked for again
 */
export type ReadWindow = (
  task: FetchTask,
  signal: AbortSignal,
  attempt: number,
) => Promise<{ readonly page: Page; readonly response: PageResponse }>;
