import type { ErrorRecord } from '@catchword/base/errors';
import { iso } from '@catchword/base/iso-time';
import type { PageItems } from './page-items.ts';
import type { Doubt } from './reasons.ts';

/** What one request reads of the list: offsets (page-1)·perPage … page·perPage-1. `page` ≥ 1; `perPage` 1 to 1000. */
export interface Window {
  readonly page: number;
  readonly perPage: number;
}

/** One window of one pass of a run, to be fetched. Plain data, because it is sent through queues. */
export interface FetchTask {
  /** Incarnation of the mirror. Several mirrors may share fetchers, and each has a run 1. */
  readonly mirror: string;
  readonly runId: number;
  readonly pass: number;
  readonly window: Window;
  /** Lists only products changed since then, milliseconds since 1970. Null lists all products. */
  readonly from: number | null;
  /** Whether most of the window's products are probably new to the mirror; default: no. */
  readonly filling?: boolean;
  /** Whether the source has answered another request of the run with a page; default: no. */
  readonly answered?: boolean;
  /** Requests until the task fails, the first one included; at least 1. */
  readonly maxAttempts: number;
  /** If set, looks up this one product; the window then only identifies the task, by the product's id. */
  readonly vbid?: string;
}

/** The page envelope (interface, section 2.5). Totals are hints, because the list changes while it is read. */
export interface Envelope {
  readonly numItems: number;
  readonly page: number;
  readonly perPage: number;
  readonly totalPages: number;
}

export interface RejectedItem {
  /** Index in the response's `items`, from 0. */
  readonly position: number;
  readonly reason: string;
  readonly body: string;
}

/** A response of the source, not yet validated. */
export interface PageResponse {
  /** The body exactly as sent, after content decoding. It may not be UTF-8. */
  readonly body: Uint8Array<ArrayBuffer>;
  /** The response's `Date`, milliseconds since 1970 in whole seconds; null if it is absent or invalid. */
  readonly sourceTime: number | null;
  /** Local clock, milliseconds since 1970. */
  readonly requestedAt: number;
  readonly receivedAt: number;
  /** How long a cache had stored the response (`Age`), milliseconds; absent if the response does not say. */
  readonly ageMs?: number;
  /** Whether a proxy or a cache says that it passed the response on (`Via`); absent if none does. */
  readonly isRelayed?: boolean;
}

/** What the mirror has of a page, as of a change. */
export interface Matched {
  /** The mirror's newest change at that time. */
  readonly seq: number;
  /** For each item as `ProductReader.match`. */
  readonly ids: Int32Array<ArrayBuffer>;
}

export interface Page {
  /** Absent if the page was not compared with the mirror yet. */
  readonly matched?: Matched | undefined;
  readonly envelope: Envelope;
  readonly items: PageItems;
  readonly rejected: readonly RejectedItem[];
  /** Null if it counts as whole. */
  readonly doubt: Doubt | null;
  /** Whether some rejected item is not JSON, perhaps because it was damaged on the way; absent: none. */
  readonly isDamaged?: boolean;
}

/** A fetched page, sent from a fetcher to the keeper. */
export interface CapturedPage {
  readonly task: FetchTask;
  readonly page: Page;
  /** Without the body, which `page.items` has. */
  readonly response: Omit<PageResponse, 'body'>;
  /** Requests made, failed attempts included; at least 1. */
  readonly requests: number;
}

/** The result of a task: a page, or the error of the last attempt. */
export type FetchOutcome =
  | ({ readonly kind: 'captured' } & CapturedPage)
  | { readonly kind: 'failed'; readonly task: FetchTask; readonly error: ErrorRecord; readonly requests: number };

/** Identifies a task within a mirror by its run, pass and window. */
export function taskId(task: Pick<FetchTask, 'runId' | 'pass' | 'window'>): string {
  return `r${task.runId}-p${task.pass}-${windowKey(task.window)}`;
}

/** What a task asks for, as an error names it. */
export function requestOf({ window, from, vbid }: Pick<FetchTask, 'window' | 'from' | 'vbid'>): string {
  if (vbid !== undefined) return `lookup of ${vbid}`;
  const { page, perPage } = window;
  const listed = from === null ? 'the list' : `the delta since ${iso(from)}`;
  return `page ${page} of ${listed}, offset ${(page - 1) * perPage}, size ${perPage}`;
}

export function windowKey(window: Window): string {
  return `${window.page}x${window.perPage}`;
}
