import type { ErrorRecord } from '../errors.ts';
import type { Product } from './product.ts';

/**
 * What one request reads: `page=k, per_page=s` is the offsets (k-1)s … ks-1 of the list.
 * `page` starts at 1; `perPage` is 1 to 1000.
 */
export interface Window {
  readonly page: number;
  readonly perPage: number;
}

/** A window of one pass of one run, and what it asks for. Plain data: it travels through queues. */
export interface FetchTask {
  /** Incarnation of the mirror that asks: several may share fetchers, and each has a run 1. */
  readonly mirror: string;
  readonly runId: number;
  readonly pass: number;
  readonly window: Window;
  /** Milliseconds since 1970; only what changed since then is listed. Null lists everything. */
  readonly from: number | null;
  /** How often the request may be tried before the task fails; at least 1. */
  readonly maxAttempts: number;
  /** Set: asks for this one product; the window then only names the task, by the product's id. */
  readonly vbid?: string;
}

/** The page envelope of the interface, section 2.5. Totals are hints: the list changes while it is read. */
export interface Envelope {
  readonly numItems: number;
  readonly page: number;
  readonly perPage: number;
  readonly totalPages: number;
}

/** An item that failed validation, kept with the reason. */
export interface RejectedItem {
  /** Index in the response's `items`, from 0. */
  readonly position: number;
  readonly reason: string;
  readonly body: string;
}

/** The answer of the source, byte gate passed, not yet validated. */
export interface PageResponse {
  /** The body as text, exactly as sent (after content decoding). */
  readonly text: string;
  /** The response's `Date`, milliseconds since 1970 in whole seconds; null where it is absent or unreadable. */
  readonly sourceTime: number | null;
  /** Local clock, milliseconds since 1970. */
  readonly requestedAt: number;
  readonly receivedAt: number;
  /** Size of the body as it came over the wire. */
  readonly bytes: number;
  /** How long a cache had kept the answer, by its `Age`; milliseconds. Absent: the answer does not say. */
  readonly ageMs?: number;
}

/** A validated page. */
export interface Page {
  readonly envelope: Envelope;
  /** One per item, in the order of the response; a rejected item holds null. */
  readonly products: readonly (Product | null)[];
  readonly rejected: readonly RejectedItem[];
  /** Why the envelope's totals contradict what the page holds; null where they agree. */
  readonly doubt: string | null;
}

/** What a fetcher hands to the keeper. */
export interface CapturedPage {
  readonly task: FetchTask;
  readonly page: Page;
  readonly response: PageResponse;
  /** Requests it took, failed tries included; at least 1. */
  readonly requests: number;
}

/** What became of a task: a page, or the error that remained after the last try. */
export type FetchOutcome =
  | { readonly kind: 'captured'; readonly captured: CapturedPage }
  | { readonly kind: 'failed'; readonly task: FetchTask; readonly error: ErrorRecord; readonly requests: number };

/** Deterministic: the same window of the same pass of the same run has the same id, within a mirror. */
export function taskId(task: Pick<FetchTask, 'runId' | 'pass' | 'window'>): string {
  return `r${task.runId}-p${task.pass}-${windowKey(task.window)}`;
}

export function windowKey(window: Window): string {
  return `${window.page}x${window.perPage}`;
}
