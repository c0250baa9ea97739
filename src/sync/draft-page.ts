import { type Difference, difference, sameContent } from '../catalog/content.ts';
import type { CapturedPage, Envelope, PageResponse, RejectedItem } from '../catalog/page.ts';
import type { Product } from '../catalog/product.ts';
import { momentOf } from '../catalog/watermark.ts';
import type { KnownProduct } from '../store/products.ts';
import type { Reader } from '../store/reader.ts';
import type { Checkpoint } from '../store/runs.ts';
import type { RunSettings } from './run-settings.ts';

/** A page in the batch. Products whose text the mirror already holds are kept as ids. */
export interface WaitingPage extends Omit<CapturedPage, 'page' | 'response'> {
  readonly response: Omit<PageResponse, 'text'>;
  readonly envelope: Envelope;
  readonly doubt: string | null;
  readonly rejected: readonly RejectedItem[];
  /** In the order of the response; null for a rejected item. */
  readonly products: readonly (Product | number | null)[];
  /** Products that are neither in the mirror nor in an earlier page of the batch. */
  readonly unknown: ReadonlySet<string>;
}

/** What a page changes, before anything is written. */
export interface Draft {
  readonly ids: number[];
  readonly created: Map<string, { id: number; product: Product }>;
  readonly changed: Map<string, { known: KnownProduct; product: Product; change: Difference }>;
  /** Ids of products that the source withdrew. */
  readonly withdrawn: Set<number>;
}

export interface DraftContext extends Pick<RunSettings, 'ignoreFields' | 'withdrawnAs'> {
  readonly store: Reader;
  readonly runId: number;
}

/** Ids that another window of this pass has shown as of a later moment. */
function readLater({ store, runId }: DraftContext, { task: { pass }, response }: WaitingPage): Set<number> {
  const later = new Set<number>();
  for (const ids of store.runs.idsReadAfter(runId, pass, momentOf(response))) for (const id of ids) later.add(id);
  return later;
}

/** Compares a page with the mirror, without writing. Call it in the transaction that writes the draft. */
export function draftPage(context: DraftContext, captured: WaitingPage): Draft {
  const { store, withdrawnAs, ignoreFields } = context;
  const draft: Draft = { ids: [], created: new Map(), changed: new Map(), withdrawn: new Set() };
  let later: Set<number> | undefined;
  let nextId = 0;
  for (const product of captured.products) {
    if (product === null || typeof product === 'number') {
      draft.ids.push(product ?? 0);
      continue;
    }
    const known = captured.unknown.has(product.vbid) ? undefined : store.products.find(product.vbid);
    const gone = product.withdrawn && withdrawnAs === 'removed';
    if (known === undefined && gone) {
      draft.ids.push(draft.created.get(product.vbid)?.id ?? 0);
      continue;
    }
    if (known === undefined) {
      nextId ||= store.products.lastId() + 1;
      const id = draft.created.get(product.vbid)?.id ?? nextId++;
      draft.created.set(product.vbid, { id, product });
      draft.ids.push(id);
      continue;
    }
    draft.ids.push(known.id);
    // If a product is on the page twice, the later one counts, even if it equals the mirror's.
    draft.changed.delete(product.vbid);
    draft.withdrawn.delete(known.id);
    if (gone) {
      later ??= readLater(context, captured);
      if (!known.removed && !later.has(known.id)) draft.withdrawn.add(known.id);
      continue;
    }
    if (!known.removed && sameContent(known.body, product.body, ignoreFields)) continue;
    later ??= readLater(context, captured);
    if (later.has(known.id)) {
      // The product exists, as the later read shows; this read of it is outdated.
      draft.ids[draft.ids.length - 1] = 0;
      continue;
    }
    const change = difference(known.body, product.body);
    const same = change.before === '{}' && change.added.length === 0;
    if (known.removed || !same) draft.changed.set(product.vbid, { known, product, change });
  }
  return draft;
}

export function checkpointOf({ store, runId }: DraftContext, captured: WaitingPage, draft: Draft): Checkpoint {
  const { task, envelope, response, rejected, requests } = captured;
  const restored = [...draft.changed.values()].filter(({ known }) => known.removed).length;
  return {
    runId,
    pass: task.pass,
    ...task.window,
    numItems: envelope.numItems,
    totalPages: envelope.totalPages,
    requestedAt: momentOf(response),
    items: captured.products.length,
    created: draft.created.size,
    updated: draft.changed.size - restored,
    removed: draft.withdrawn.size,
    restored,
    rejected: rejected.length,
    requests,
    doubt: captured.doubt,
    seq: store.changes.lastSeq(),
    ids: draft.ids,
  };
}
