import { type Difference, difference, isEmpty, sameContent } from '../catalog/content.ts';
import type { IdSet } from '../catalog/id-set.ts';
import type { CapturedPage, Page } from '../catalog/page.ts';
import { type PageItems, productAt } from '../catalog/page-items.ts';
import type { Product } from '../catalog/product.ts';
import { momentOf } from '../catalog/watermark.ts';
import type { KnownProduct, NewRows } from '../store/products.ts';
import type { Reader } from '../store/reader.ts';
import type { Checkpoint } from '../store/runs.ts';
import type { AppliedReads } from './applied-reads.ts';
import type { RunSettings } from './run-settings.ts';

/** The items of a page in the batch. */
type WaitingItems =
  | {
      readonly items: PageItems;
      /** In the order of the response: the id if the mirror has the same text, 0 for a rejected item, otherwise null. */
      readonly ids: readonly (number | null)[];
    }
  | { readonly items: null; readonly ids: readonly number[] };

/** A page in the batch. */
export type WaitingPage = Omit<CapturedPage, 'page'> & Omit<Page, 'items'> & WaitingItems;

export interface DraftContext extends Pick<RunSettings, 'ignoreFields' | 'withdrawnAs'> {
  readonly store: Reader;
  readonly runId: number;
  readonly reads: Pick<AppliedReads, 'productsAfter'>;
}

/** A smaller part of a page is inserted one by one: a statement for a part reads all rows of the page. */
const LEAST_PART = 1 / 20;
/** The share of a page at each of its ends that may overlap with other pages. */
const END = 1 / 10;

/** The positions of items without an id. */
function open(ids: readonly (number | null)[]): number[] {
  const positions: number[] = [];
  for (let position = 0; position < ids.length; position++) if (ids[position] === null) positions.push(position);
  return positions;
}

/** Joins neighbouring positions. */
function neighbours(positions: readonly number[]): { readonly from: number; readonly to: number }[] {
  const parts: { from: number; to: number }[] = [];
  for (const position of positions) {
    const last = parts.at(-1);
    if (last?.to === position - 1) last.to = position;
    else parts.push({ from: position, to: position });
  }
  return parts;
}

/**
 * The parts of a page with complete rows that hold only products which the mirror does not know.
 * @param lookUpAll whether to look up every item; otherwise only those near the ends of the page
 */
function newParts(
  { store, withdrawnAs }: DraftContext,
  items: PageItems,
  ids: readonly (number | null)[],
  lookUpAll: boolean,
) {
  const end = lookUpAll ? items.count : Math.ceil(items.count * END);
  const known = new Set(store.products.known(items, end, items.count - end));
  if (withdrawnAs === 'removed') for (const position of items.withdrawn) known.add(position);
  const unknown = open(ids).filter((position) => !known.has(position));
  return neighbours(unknown).filter(({ from, to }) => to - from + 1 >= items.count * LEAST_PART);
}

/**
 * Compares a page with the mirror, without writing. Call it in the transaction that writes the draft.
 * @param lookUpAll whether to look up every item of a page whose products are probably new. Otherwise those in its middle are
 *   taken for new, and SQLite may refuse to insert one: looking them up took 5% of the main thread's time in a first load
 */
export function draftPage(context: DraftContext, captured: WaitingPage, lookUpAll: boolean) {
  const { store, reads, withdrawnAs, ignoreFields } = context;
  const created = new Map<string, { id: number; product: Product }>();
  const changed = new Map<string, { known: KnownProduct; product: Product; change: Difference }>();
  /** Ids of products that the source withdrew. */
  const withdrawn = new Set<number>();
  /** Without their changes, which are numbered when they are written. */
  const rows: Omit<NewRows, 'seq'>[] = [];
  let later: Pick<IdSet, 'has'> | undefined;
  /** The oldest change that an outdated read of this page does not show. */
  let outdatedFrom = Number.POSITIVE_INFINITY;
  let nextId = 0;

  function newId(count = 1): number {
    nextId ||= store.products.lastId() + 1;
    nextId += count;
    return nextId - count;
  }

  /** Whether another window of this pass has shown the product as of a later moment. */
  function isOutdated({ id }: KnownProduct): boolean {
    const moment = momentOf(captured.response);
    later ??= reads.productsAfter(captured.task.pass, moment);
    return later.has(id);
  }

  /** @returns the product's id; 0 if the mirror does not have it, and it is withdrawn */
  function compare(product: Product): number {
    const { vbid } = product;
    const gone = product.withdrawn && withdrawnAs === 'removed';
    const known = store.products.find(vbid);
    if (known === undefined) {
      const createdId = created.get(vbid)?.id;
      if (gone) {
        if (createdId !== undefined) withdrawn.add(createdId);
        return createdId ?? 0;
      }
      const id = createdId ?? newId();
      withdrawn.delete(id);
      created.set(vbid, { id, product });
      return id;
    }
    // If a product is on the page twice, the later one counts, even if it equals the mirror's.
    changed.delete(vbid);
    withdrawn.delete(known.id);
    if (gone) {
      if (!known.removed && !isOutdated(known)) withdrawn.add(known.id);
      return known.id;
    }
    // Deltas go on to tell of products that a run has removed since they were withdrawn.
    if (known.removed && product.withdrawn && captured.task.from !== null) return known.id;
    const change = difference(known.body, product.body);
    const isSame = isEmpty(change) || (ignoreFields.length > 0 && sameContent(known.body, product.body, ignoreFields));
    if (!known.removed && isSame) return known.id;
    if (isOutdated(known)) {
      // The product exists, as the later read shows, but it is not as this page shows it: so it must not join windows.
      outdatedFrom = Math.min(outdatedFrom, known.changedSeq);
      return known.id;
    }
    changed.set(vbid, { known, product, change });
    return known.id;
  }

  /** The ids of all items. */
  function idsOf(items: PageItems, given: readonly (number | null)[]): number[] {
    const ids = [...given];
    const parts = items.isComplete ? newParts(context, items, ids, lookUpAll) : [];
    const isRow = new Uint8Array(ids.length);
    for (const { from, to } of parts) isRow.fill(1, from, to + 1);
    for (const position of open(ids)) {
      if (isRow[position] === 0) ids[position] = compare(productAt(items, position));
    }
    // Last, so that products of both kinds get ids in a row.
    for (const part of parts) {
      const id = newId(part.to - part.from + 1);
      for (let at = part.from; at <= part.to; at++) ids[at] = id + at - part.from;
      rows.push({ ...part, id });
    }
    return ids.map((id) => id ?? 0);
  }

  const ids = captured.items === null ? captured.ids : idsOf(captured.items, captured.ids);
  const restored = [...changed.values()].filter(({ known }) => known.removed).length;
  return { ids, created, changed, withdrawn, restored, items: captured.items, rows, outdatedFrom };
}

/** What a page changes, before anything is written. */
export type Draft = ReturnType<typeof draftPage>;

/** Number of products that the page creates. */
export function newProducts({ created, rows }: Draft): number {
  return rows.reduce((sum, { from, to }) => sum + to - from + 1, created.size);
}

export function checkpointOf({ store, runId }: DraftContext, captured: WaitingPage, draft: Draft): Checkpoint {
  const { task, envelope, response, rejected, requests } = captured;
  return {
    runId,
    pass: task.pass,
    ...task.window,
    numItems: envelope.numItems,
    totalPages: envelope.totalPages,
    requestedAt: momentOf(response),
    items: draft.ids.length,
    created: newProducts(draft),
    updated: draft.changed.size - draft.restored,
    removed: draft.withdrawn.size,
    restored: draft.restored,
    rejected: rejected.length,
    requests,
    doubt: captured.doubt,
    seq: Math.min(store.changes.lastSeq(), draft.outdatedFrom - 1),
    ids: draft.ids,
  };
}
