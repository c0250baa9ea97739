import { Worker } from 'node:worker_threads';
import { CatchwordError, fromAnswer } from '@catchword/base/errors';
import { type Service, THREAD_LIMITS } from '@catchword/base/lifecycle';
import type { FetchTask, Page } from '@catchword/catalog/page-types';
import { pageOf } from '@catchword/catalog/validate-page';
import type { ValidatePage } from '@catchword/queue/queue-port';
import type { FromPageWorker, ToPageWorker } from './page-worker.ts';

/** Compiled. */
const PROGRAM = new URL('./page-worker.js', import.meta.url);
/**
 * Pages that are validated here before the thread starts: most deltas have fewer, and a start takes 0.05 s. Large pages,
 * which take long to validate, start it sooner.
 */
const FIRST_PAGES = 8;
const FIRST_BYTES = 500_000;

interface Waiting {
  readonly resolve: (page: Promise<Page>) => void;
  readonly reject: (error: Error) => void;
}

/** The bytes in a buffer of their own, which can be moved to another thread. */
function alone(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
}

/**
 * Validates pages in a thread of its own, so that this one has its time for SQLite. The thread starts when it is needed. If
 * it ends by itself, its pages fail and are read again, and later ones are validated here.
 * @param path of the mirror; pages that it probably has are compared with it, too. Stop the thread before the mirror closes
 */
export function startPageWorker(path?: string, program = PROGRAM): Service & { readonly validate: ValidatePage } {
  const waiting = new Map<number, Waiting>();
  let pages = 0;
  let firstBytes = 0;
  let thread: Worker | null | undefined;

  function end(reason: string): void {
    thread = null;
    const error = new CatchwordError('PAGE_INVALID', `the page could not be validated: ${reason}`);
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  }

  function start(): Worker {
    const started = new Worker(program, { name: 'pages', workerData: path ?? null, resourceLimits: THREAD_LIMITS });
    // The process may end while the thread waits for a page.
    started.unref();
    started.on('message', (answer: FromPageWorker) => {
      const asked = waiting.get(answer.id);
      waiting.delete(answer.id);
      asked?.resolve((async () => fromAnswer(answer))());
    });
    started.once('error', ({ message }) => end(message));
    started.once('exit', () => end('the thread has ended'));
    return started;
  }

  return {
    name: 'pages',
    validate: (bytes: Uint8Array<ArrayBuffer>, task: FetchTask) => {
      const isFirst = ++pages <= FIRST_PAGES && firstBytes < FIRST_BYTES;
      firstBytes += bytes.length;
      if (thread === null || isFirst) {
        const page = pageOf(bytes, task);
        // The page of a lookup has the product's id for its number.
        const manyFollow = task.vbid === undefined && page.envelope.totalPages > FIRST_PAGES;
        if (thread === undefined && manyFollow) thread = start();
        return page;
      }
      thread ??= start();
      const id = pages;
      const own = alone(bytes);
      const message: ToPageWorker = { id, bytes: own, task };
      thread.postMessage(message, [own.buffer]);
      return new Promise<Page>((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
    stop: async () => {
      const running = thread;
      thread = null;
      if (running == null) return;
      const ended = new Promise((resolve) => running.once('exit', resolve));
      const message: ToPageWorker = 'stop';
      running.ref();
      running.postMessage(message);
      await ended;
    },
  };
}
