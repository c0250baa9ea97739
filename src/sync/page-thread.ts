import { parentPort, workerData } from 'node:worker_threads';
import type { FetchTask, Page } from '../catalog/page.ts';
import { pageOf } from '../catalog/validate-page.ts';
import { CatchwordError, type ErrorRecord, messageOf, toErrorRecord } from '../errors.ts';
import { createPageComparer } from './compare-page.ts';

/* The program of the thread that validates pages: see start-page-thread.ts. */

export interface PageThreadData {
  /** Of the mirror that pages are compared with. */
  readonly path: string | undefined;
}

/** A page to validate; its bytes move to the thread. */
interface PageToValidate {
  readonly id: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly task: FetchTask;
}

export type ToPageThread = PageToValidate | 'stop';

/** The result, whose bytes move back; or why the page is invalid. */
export type FromPageThread = { readonly id: number } & (
  | { readonly page: Page }
  | { readonly error: ErrorRecord }
  /** A defect. */
  | { readonly defect: string }
);

const { path } = workerData as PageThreadData;
const comparer = path === undefined ? null : createPageComparer(path);

parentPort?.on('message', (message: ToPageThread) => {
  if (message === 'stop') {
    comparer?.close();
    parentPort?.close();
    return;
  }
  const { id, bytes, task } = message;
  try {
    const page = comparer?.compare(bytes, task) ?? pageOf(bytes, task);
    const answer: FromPageThread = { id, page };
    const { items, matched } = page;
    const moved = [items.bytes.buffer, items.spans.buffer];
    parentPort?.postMessage(answer, matched === undefined ? moved : [...moved, matched.ids.buffer]);
  } catch (error) {
    const answer: FromPageThread =
      error instanceof CatchwordError ? { id, error: toErrorRecord(error) } : { id, defect: messageOf(error) };
    parentPort?.postMessage(answer);
  }
});
