import { parentPort, workerData } from 'node:worker_threads';
import { type Answer, toAnswer } from '@catchword/base/errors';
import type { FetchTask, Page } from '@catchword/catalog/page-types';
import { pageOf } from '@catchword/catalog/validate-page';
import { createBinaryJson } from '../../store/history/binary-json.ts';
import { createPageComparer } from './page-comparer.ts';

/* The program of the thread that validates pages: see page-worker-client.ts. */

/** A page to validate, whose bytes move to the thread. */
export type ToPageWorker =
  | { readonly id: number; readonly bytes: Uint8Array<ArrayBuffer>; readonly task: FetchTask }
  | 'stop';

/** The page, whose bytes move back; or why it is invalid. */
export type FromPageWorker = Answer<Page> & { readonly id: number };

/** Of the mirror that pages are compared with. */
const path = workerData as string | null;
const comparer = path === null ? null : createPageComparer(path);
let toBinary: ((text: string) => Uint8Array<ArrayBuffer>) | undefined;

/** Validates a page whose rows this process will insert; their text is made binary here, because this thread has time. */
function pageToInsert(bytes: Uint8Array<ArrayBuffer>, task: FetchTask): Page {
  const page = pageOf(bytes, task);
  const { rows } = page.items;
  if (typeof rows !== 'string' || task.filling !== true) return page;
  toBinary ??= createBinaryJson();
  return { ...page, items: { ...page.items, rows: toBinary(rows) } };
}

parentPort?.on('message', (message: ToPageWorker) => {
  if (message === 'stop') {
    comparer?.close();
    parentPort?.close();
    return;
  }
  const { id, bytes, task } = message;
  const answer: FromPageWorker = { id, ...toAnswer(() => comparer?.compare(bytes, task) ?? pageToInsert(bytes, task)) };
  const moved: ArrayBuffer[] = [];
  if ('made' in answer) {
    const { items, matched } = answer.made;
    moved.push(items.bytes.buffer, items.spans.buffer);
    if (matched !== undefined) moved.push(matched.ids.buffer);
    if (typeof items.rows !== 'string') moved.push(items.rows.buffer);
  }
  parentPort?.postMessage(answer, moved);
});
