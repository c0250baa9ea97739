import { type Difference, difference, sameContent } from '../catalog/content.ts';
import type { CapturedPage, Page, PageResponse } from '../catalog/page.ts';
import type { Product } from '../catalog/product.ts';
import { momentOf } from '../catalog/watermark.ts';
import type { KnownProduct } from '../store/products.ts';
import type { Reader } from '../store/reader.ts';
import type { Checkpoint } from '../store/runs.ts';
import type { RunSettings } from './run-settings.ts';

/** A page in the batch. */
export interface WaitingPage extends Omit<CapturedPage, 'page' | 'response'>, Omit<Page, 'products'> {
  readonly response: Omit<PageResponse, 'text'>;
  /** In the order of the response: null for a rejected item, only the id if the mirror already holds the same text. */
  readonly products: readonly (Product | number | null)[];
  /** Products that are neither in the mirror nor in an earlier page of the batch. */
  readonly unknown: ReadonlySet<string>;
}

export interface DraftContext extends Pick<RunSettings, 'ignoreFields' | 'withdrawnAs'> {
  readonly store: Reader;
  readonly runId: number;
}

/** Compares a page with the mirror, without writing. Call it in the transaction that writes the draft. */
export function draftPage({ store, runId, withdrawnAs, ignoreFields }: DraftContext, captured: WaitingPage) {
  const created = new Map<string, { id: number; product: Product }>();
  const changed = new Map<string, { known: KnownProduct; product: Product; change: Difference }>();
  /** Ids of products that the source withdrew. */
  const withdrawn = new Set<number>();
  let later: Set<number> | undefined;
  let nextId = 0;

  /** Whether another window of this pass has shown the product as of a later moment. */
  function isOutdated({ id }: KnownProduct): boolean {
    const moment = momentOf(captured.response);
    later ??= new Set([...store.runs.idsReadAfter(runId, captured.task.pass, moment)].flat());
    return later.has(id);
  }

  /** @returns the product's id; 0 if this page does not show that it exists */
  function compare(product: Product | null): number {
    if (product === null) return 0;
    const { vbid } = product;
    const gone = product.withdrawn && withdrawnAs === 'removed';
    const known = captured.unknown.has(vbid) ? undefined : store.products.find(vbid);
    if (known === undefined) {
      const createdId = created.get(vbid)?.id;
      if (gone) return createdId ?? 0;
      nextId ||= store.products.lastId() + 1;
      const id = createdId ?? nextId++;
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
    if (!known.removed && sameContent(known.body, product.body, ignoreFields)) return known.id;
    // The product exists, as the later read shows; this read of it is outdated.
    if (isOutdated(known)) return 0;
    const change = difference(known.body, product.body);
    const same = change.before === '{}' && change.added.length === 0;
    if (known.removed || !same) changed.set(vbid, { known, product, change });
    return known.id;
  }

  const ids = captured.products.map((product) => (typeof product === 'object' ? compare(product) : product));
  const restored = [...changed.values()].filter(({ known }) => known.removed).length;
  return { ids, created, changed, withdrawn, restored };
}

/** What a page changes, before anything is written. */
export type Draft = ReturnType<typeof draftPage>;

export function checkpointOf({ store, runId }: DraftContext, captured: WaitingPage, draft: Draft): Checkpoint {
  const { task, envelope, response, rejected, requests } = captured;
  return {
    runId,
    pass: task.pass,
    ...task.window,
    numItems: envelope.numItems,
    totalPages: envelope.totalPages,
    requestedAt: momentOf(response),
    items: captured.products.length,
    created: draft.created.size,
    updated: draft.changed.size - draft.restored,
    removed: draft.withdrawn.size,
    restored: draft.restored,
    rejected: rejected.length,
    requests,
    doubt: captured.doubt,
    seq: store.changes.lastSeq(),
    ids: draft.ids,
  };
}
