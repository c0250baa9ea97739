import { once } from 'node:events';
import type { Clock } from '@catchword/base/clock';
import { type FetchTask, taskId, type Window } from '@catchword/catalog/page-types';
import { validatePage } from '@catchword/catalog/validate-page';
import type { ReadWindow } from '@catchword/queue/queue-port';
import { bytesOf } from './page.ts';

export function task(page: number, more: Partial<FetchTask> = {}): FetchTask {
  return { mirror: 'mirror-a', runId: 1, pass: 0, window: { page, perPage: 10 }, from: null, maxAttempts: 3, ...more };
}

/** The response to a window: a full page of products whose ids are their offsets. */
export function pageText({ page, perPage }: Window): string {
  const items = Array.from({ length: perPage }, (_, index) => ({
    vbid: `V${(page - 1) * perPage + index}`,
    identifiers: { print_isbn_canonical: null, eisbn_canonical: null },
  }));
  return JSON.stringify({ num_items: 100 * perPage, page, per_page: perPage, total_pages: 100, items });
}

/** Called before each response; may wait or throw. `nth` counts the requests for this task from 1. */
export type BeforeResponse = (task: FetchTask, nth: number, signal: AbortSignal) => Promise<void> | void;

export interface ScriptedSource {
  readonly read: ReadWindow;
  /** Every request, in the order in which they were made. */
  readonly requests: readonly { readonly id: string; readonly at: number }[];
  inFlight(): number;
}

export function createScriptedSource(clock: Clock, beforeResponse: BeforeResponse = () => {}): ScriptedSource {
  const requests: { id: string; at: number }[] = [];
  let inFlight = 0;
  return {
    requests,
    inFlight: () => inFlight,
    read: async (wanted, signal) => {
      const id = taskId(wanted);
      const requestedAt = clock.now();
      requests.push({ id, at: requestedAt });
      inFlight++;
      try {
        await beforeResponse(wanted, requests.filter((request) => request.id === id).length, signal);
      } finally {
        inFlight--;
      }
      const text = pageText(wanted.window);
      const about = { sourceTime: null, requestedAt, receivedAt: clock.now() };
      return { page: validatePage(bytesOf(text), wanted.window, wanted.filling), response: about };
    },
  };
}

export interface Gate {
  readonly passed: Promise<void>;
  readonly open: () => void;
}

export function createGate(): Gate {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

/** Waits until the request is aborted, for a request without a response. */
export async function untilAborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

/** An answer that tells when it is asked for, and waits until the gate opens. @param page the only one that waits */
export function heldAnswer(page?: number) {
  const [asked, gate] = [createGate(), createGate()];
  const answer: BeforeResponse = async ({ window }) => {
    asked.open();
    if (page === undefined || window.page === page) await gate.passed;
  };
  return { asked, gate, answer };
}
