import { parentPort } from 'node:worker_threads';
import type { FetchTask, Page } from '../catalog/page.ts';
import { pageOf } from '../catalog/validate-page.ts';
import { CatchwordError, type ErrorRecord, messageOf, toErrorRecord } from '../errors.ts';

/* The program of the thread that validates pages: see start-page-thread.ts. */

/** A page to validate; its bytes move to the thread. */
export interface ToPageThread {
  readonly id: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly task: FetchTask;
}

/** The result, whose bytes move back; or why the page is invalid. */
export type FromPageThread = { readonly id: number } & (
  | { readonly page: Page }
  | { readonly error: ErrorRecord }
  /** A defect. */
  | { readonly defect: string }
);

parentPort?.on('message', ({ id, bytes, task }: ToPageThread) => {
  try {
    const page = pageOf(bytes, task);
    const answer: FromPageThread = { id, page };
    parentPort?.postMessage(answer, [bytes.buffer, page.items.spans.buffer]);
  } catch (error) {
    const answer: FromPageThread =
      error instanceof CatchwordError ? { id, error: toErrorRecord(error) } : { id, defect: messageOf(error) };
    parentPort?.postMessage(answer);
  }
});
