/// <reference lib="esnext.disposable" preserve="true" />

import { setImmediate as otherWork } from 'node:timers/promises';
import { withAbort } from '@catchword/base/abort';
import { systemClock } from '@catchword/base/clock';
import { CatchwordError, hasCode, usageError } from '@catchword/base/errors';
import { eventText } from '@catchword/catalog/event';
import type { Summary } from '@catchword/catalog/fields';
import type { CatalogItem, CatalogProduct } from '@catchword/catalog/product-type';
import { CHANGE_OPS, type ChangeFilter, type Run } from '@catchword/catalog/run-types';
import type { CatchwordEvent } from '../events/events.ts';
import { completeAt } from '../state/mirror-state.ts';
import { requireKnownSeq } from '../store/history/history.ts';
import { findPosition, MISPLACED } from '../store/history/log-position.ts';
import { findProduct } from '../store/rows/find-product.ts';
import type { ProductRow } from '../store/rows/product-rows.ts';
import { eventSource } from '../store/rows/source-state.ts';
import { openStore, type Store } from '../store/store.ts';
import { createViewReader } from '../view/read-view.ts';
import { type GivenView, readerView, type View } from '../view/view.ts';

/*
 * The mirror for programs in Node.js: `import { openMirror } from 'catchword/mirror'`. It opens the file for reading only,
 * next to a running catchword or without one.
 *
 * Each call, and each batch of an iterator, reads one state of the file. Between batches no transaction is open, so that
 * a slow reader does not keep the write-ahead log from being emptied.
 */

/** Changes read at once. For safety: a product may have a megabyte. */
const CHANGES_AT_ONCE = 100;
/** How often `follow` looks for new changes, milliseconds. */
const FOLLOW_MS = 500;
const MAX_BATCH = 10_000;
const MAX_HITS = 1_000;
const REPLACED_HINT = 'Discard what you have, open the mirror again, and read all products and changes.';

/** A product that a search has found. */
export interface MirrorHit extends Summary {
  readonly vbid: string;
}

/** A product that is not removed. */
export interface MirrorProduct extends MirrorHit, CatalogItem {
  readonly firstSeenAt: Date;
  readonly changedAt: Date;
  /** Number of its newest change. */
  readonly changedSeq: number;
}

export interface MirrorStatus {
  readonly path: string;
  /** Random id of the mirror's history: another one means that numbers mean other changes. */
  readonly incarnation: string;
  /** How many products are not removed. */
  readonly products: number;
  readonly lastSeq: number;
  /** When the mirror was last complete, by the clock of the machine that filled it; null if it never was. */
  readonly completeAt: Date | null;
  readonly lastRun: Readonly<
    Pick<Run, 'id' | 'kind' | 'state' | 'proof' | 'error'> & { startedAt: Date; finishedAt: Date | null }
  > | null;
}

/** `op` and `field` name the changes that are read; default: all. With `where` or `fields`, they judge the events that these make. */
export interface ChangesOptions extends Pick<ChangeFilter, 'op' | 'field'>, GivenView {
  /**
   * The number of a change, or the `id` of an event: start after it. Default 0: from the beginning. Keep ids rather than
   * numbers: an id of another mirror, or of changes that were lost when a backup was restored, is recognized; so is one
   * of other `where` and `fields`.
   */
  readonly after?: number | string;
  /** Skip changes that were recorded before this time. */
  readonly since?: Date;
  /** Wait for new changes when all are read. Default: end. */
  readonly follow?: boolean;
  /** Ends the iteration, without an error. */
  readonly signal?: AbortSignal;
}

/** With `where` or `fields`, `product` and `body` are what these yield, and batches may be smaller. */
export interface ProductsOptions extends GivenView {
  /** Products per batch, 1 to 10,000; default 500. */
  readonly batch?: number;
  /** Start after this key. Default: the first product. */
  readonly after?: string;
}

/**
 * An open mirror. Everything may throw CatchwordError MIRROR_REPLACED (the file was deleted, replaced or restored: open it
 * again, and read everything again), MIRROR_BUSY (retry), and INTERRUPTED after `close`.
 */
export interface Mirror {
  /**
   * Finds a product by its key, or by an ISBN: 10 or 13 digits, with or without dashes, print or electronic.
   * @returns undefined if the mirror does not have it, or it was removed
   * @throws CatchwordError USAGE if several products have the ISBN
   */
  get(vbid: string): MirrorProduct | undefined;
  /**
   * Finds products that contain every word in title, contributors, publisher or an identifier, the best first. `hist*`
   * matches words that begin with `hist`.
   * @param options `limit`: 1 to 1,000, default 20
   * @throws CatchwordError USAGE, also for more than 16 words
   */
  search(words: string, options?: { readonly limit?: number }): MirrorHit[];
  /**
   * Reads all products, ordered by key. Each batch is one state of the mirror, and later batches show later states. For an
   * exact copy, note `lastSeq()` first, read all products, then apply `changes` after that number.
   * @throws CatchwordError USAGE
   */
  products(options?: ProductsOptions): AsyncGenerator<MirrorProduct[], void, undefined>;
  /**
   * Reads the change log, the oldest change first, without gaps and duplicates. Of pruned changes, the newest of each
   * product is left.
   * @throws CatchwordError USAGE for an invalid `after`, one beyond the newest change, or one of another view; MIRROR_REPLACED if it is the id
   *   of an event that is not in this log
   */
  changes(options?: ChangesOptions): AsyncGenerator<CatchwordEvent, void, undefined>;
  /** Reads like `changes`; each event is JSON text on one line, with every digit of its numbers. */
  changeTexts(options?: ChangesOptions): AsyncGenerator<string, void, undefined>;
  status(): MirrorStatus;
  /** The number of the newest change; 0 if there is none. */
  lastSeq(): number;
  close(): void;
  [Symbol.dispose](): void;
}

function between(name: string, value: number, min: number, max = Number.MAX_SAFE_INTEGER): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw usageError(`${name}: ${String(value)} is not valid`, `Use a whole number from ${min} to ${max}.`);
}

/** For callers in JavaScript: an ISBN may be a number there, and a setting undefined. */
function requireText(name: string, value: unknown): void {
  if (typeof value !== 'string') throw usageError(`${name}: ${String(value)} is not a text`, 'Use a string.');
}

/** Not all is left to the types: a date may be invalid, and callers in JavaScript pass one word for a list. */
function requireFilter({ op, field }: ChangeFilter, since: Date): void {
  if (Number.isNaN(Number(since))) throw usageError(`since: ${String(since)} is not valid`, 'Use a Date.');
  for (const [name, words] of Object.entries({ op, field })) {
    if (words !== undefined && !Array.isArray(words))
      throw usageError(`${name}: ${String(words)} is not a list`, 'Use an array.');
  }
  const unknown = op?.find((one) => !CHANGE_OPS.includes(one));
  if (unknown !== undefined) throw usageError(`op: ${String(unknown)} is not valid`, `Use ${CHANGE_OPS.join(', ')}.`);
}

function viewOf({ where, fields }: GivenView): View | null {
  for (const [name, text] of Object.entries({ where, fields })) if (text !== undefined) requireText(name, text);
  return readerView({ where, fields });
}

const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

function productOf({ id: _id, removedAt: _removedAt, firstSeenAt, changedAt, ...row }: ProductRow): MirrorProduct {
  return {
    ...row,
    firstSeenAt: new Date(firstSeenAt),
    changedAt: new Date(changedAt),
    product: JSON.parse(row.body) as CatalogProduct,
  };
}

function statusOf(store: Store): MirrorStatus {
  const [lastRun = null] = store.runs.list(1).map(({ id, kind, state, proof, error, startedAt, finishedAt }) => {
    return { id, kind, state, proof, error, startedAt: new Date(startedAt), finishedAt: dateOf(finishedAt) };
  });
  return {
    path: store.path,
    incarnation: store.incarnation,
    products: store.products.living(),
    lastSeq: store.changes.lastSeq(),
    completeAt: dateOf(completeAt(store)),
    lastRun,
  };
}

/** Finds the number of the change after which to read. */
function startOf(store: Store, after: number | string, view: View | null): number {
  const last = store.changes.lastSeq();
  if (typeof after === 'number') return requireKnownSeq('after', between('after', after, 0), last);
  if (/^\d+$/.test(after)) return requireKnownSeq('after', Number(after), last);
  const found = findPosition(store, after, view?.digest);
  if ('seq' in found) return found.seq;
  if (found.code === 'UNKNOWN_PLACE') {
    const hint = 'Use the number of a change, or the id of an event.';
    throw usageError(`after: ${JSON.stringify(after).slice(0, 80)} is not valid`, hint);
  }
  if (found.code === 'OTHER_VIEW') {
    const hint = 'Use the where and fields with which you read it, or discard what you have, and start after 0.';
    throw usageError(`after: ${MISPLACED.OTHER_VIEW}`, hint);
  }
  throw new CatchwordError('MIRROR_REPLACED', `after: ${MISPLACED[found.code]}`, { hint: REPLACED_HINT });
}

/**
 * Opens a mirror for reading. It never writes to the file, and does not upgrade one of an older version. Reading takes
 * milliseconds or less of the calling thread; a search may take tens of milliseconds.
 * @param path the path of the file, as in `CATCHWORD_DB`
 * @throws CatchwordError NOT_FOUND, MIRROR_UNUSABLE, MIRROR_BUSY, MIRROR_REPLACED, USAGE
 */
export function openMirror(path: string): Mirror {
  requireText('path', path);
  const store = openStore(path, { mustExist: true, readOnly: true });
  const reader = createViewReader(store);
  const closing = new AbortController();

  /** Reads one state of the file, after checking that it is still the mirror at its path. */
  function read<T>(work: () => T): T {
    if (closing.signal.aborted) {
      throw new CatchwordError('INTERRUPTED', 'the mirror was closed', { hint: 'Open it again.' });
    }
    try {
      store.check();
    } catch (error) {
      throw hasCode(error, 'MIRROR_REPLACED') ? error.with({ hint: REPLACED_HINT }) : error;
    }
    return store.read(work);
  }

  async function* changeTexts(options: ChangesOptions = {}) {
    const { after = 0, since = new Date(0), follow = false, signal, ...filter } = options;
    requireFilter(filter, since);
    const view = viewOf(filter);
    const isOver = () => signal?.aborted === true;
    let cursor = read(() => Math.max(startOf(store, after, view), store.changes.seqAt(Number(since))));
    while (!isOver()) {
      const { texts, to } = read(() => {
        // Events of a mirror that has not noted its service have no address.
        const source = eventSource(store.source, '/v4/products');
        const found = reader.changes(cursor, CHANGES_AT_ONCE, CHANGES_AT_ONCE, filter, view);
        return { texts: found.changes.map((change) => eventText(change, store.incarnation, source)), to: found.to };
      });
      for (const text of texts) {
        if (isOver()) return;
        yield text;
      }
      const isRead = to === cursor;
      cursor = to;
      if (texts.length === 0) await otherWork();
      if (!isRead) continue;
      if (!follow) return;
      const ends = signal === undefined ? [closing.signal] : [closing.signal, signal];
      await withAbort(ends, (over) => systemClock.sleep(FOLLOW_MS, over)).catch(() => {});
    }
  }

  async function* products({ batch = 500, after = '', ...text }: ProductsOptions = {}) {
    const limit = between('batch', batch, 1, MAX_BATCH);
    requireText('after', after);
    const view = viewOf(text);
    for (let next: string | null = after; next !== null; ) {
      const last: string = next;
      const found = read(() => reader.products(last, limit, limit, view));
      if (found.products.length > 0) yield found.products.map(productOf);
      else await otherWork();
      next = found.next;
    }
  }

  const close = (): void => {
    closing.abort();
    store.close();
  };
  return {
    get: (vbid) => {
      requireText('vbid', vbid);
      const row = read(() => findProduct(store, vbid));
      return row === undefined || row.removedAt !== null ? undefined : productOf(row);
    },
    search: (words, { limit = 20 } = {}) => {
      requireText('words', words);
      const count = between('limit', limit, 1, MAX_HITS);
      return read(() => store.search(words, count));
    },
    products,
    changes: async function* (options) {
      for await (const text of changeTexts(options)) yield JSON.parse(text) as CatchwordEvent;
    },
    changeTexts,
    status: () => read(() => statusOf(store)),
    lastSeq: () => read(() => store.changes.lastSeq()),
    close,
    [Symbol.dispose]: close,
  };
}

export type { Contributor, Numeric, Price, Subject, Variant } from '@catchword/catalog/product-type';
export type { CatalogProduct, CatchwordEvent };
export { CatchwordError };
