import { contentDigest, type Difference, sameContent } from '@catchword/catalog/content';
import { objectMembers } from '@catchword/catalog/json-text';
import { type PageItems, productAt } from '@catchword/catalog/page-items';
import type { CapturedPage, Page, RejectedItem } from '@catchword/catalog/page-types';
import type { Product } from '@catchword/catalog/product';
import { startOf } from '../proof/plan.ts';
import { momentOf } from '../proof/watermark.ts';
import { BEHIND } from '../store/rows/ids.ts';
import type { KnownProduct, NewRows } from '../store/rows/product-rows.ts';
import type { Checkpoint } from '../store/rows/runs.ts';
import { onFirstUse } from '../store/schema/queries.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { AppliedReads } from './applied-reads.ts';
import { newRows } from './fast/new-rows.ts';
import { type Judgement, type JudgeRules, judgeItem, mayBeDeleted } from './judge-item.ts';
import type { RunSettings } from './run-settings.ts';

/** A page in the batch. */
export interface WaitingPage extends Omit<CapturedPage, 'page'>, Omit<Page, 'items'> {
  /** Null if each item has an id. */
  readonly items: PageItems | null;
  /** In the order of the response: the id if the mirror has the same text, 0 for a rejected item, otherwise null. */
  readonly ids: readonly (number | null)[];
}

export interface DraftContext
  extends Pick<RunSettings, 'ignoreFields' | 'volatileFields' | 'withdrawnAs' | 'deletedField'>,
    Pick<JudgeRules, 'hasList' | 'notInDeltas'> {
  readonly store: Reader;
  readonly runId: number;
  readonly reads: Pick<AppliedReads, 'productsAfter' | 'sideOf' | 'hasFront'>;
  /** Keys of products of which the previous full run has found two contents in the list: the first one may come later. */
  readonly twice: ReadonlySet<string>;
}

/** What to say of an item that is in another form than the list. */
function whyPartial({ missing }: Judgement & { readonly kind: 'partial' }, body: string): string {
  const rest = [...objectMembers(body).keys()].length - 1;
  const deleted = rest <= 1 ? ': if this says that it is gone, set CATCHWORD_DELETED_FIELD' : '';
  return `the delta shows it without ${missing.join(', ')}${deleted}`;
}

/** Products of the mirror that show whether a member is common. */
const COMMON_SAMPLE = 100;

/** Of a page of a delta: the members of its items, and how many products it shows without one that the mirror has. */
function formOf({ products }: Reader, { items, ids }: WaitingPage) {
  const shown = new Set<string>();
  const lacking = new Map<string, number>();
  for (const [at, known] of ids.entries()) {
    if (items === null || known === 0) continue;
    const { vbid, body } = productAt(items, at);
    const members = objectMembers(body);
    for (const name of members.keys()) shown.add(name);
    for (const name of objectMembers(products.find(vbid)?.body ?? '{}').keys()) {
      if (!members.has(name)) lacking.set(name, (lacking.get(name) ?? 0) + 1);
    }
  }
  const others = onFirstUse(() => products.livingPage('', COMMON_SAMPLE).map(({ body }) => objectMembers(body)));
  return {
    shown,
    without: (name: string): number => (shown.has(name) ? 0 : (lacking.get(name) ?? 0)),
    isCommon: (name: string): boolean => others().every((members) => members.has(name)),
  };
}

/** Members that deltas left out before and that this page of a delta shows. */
function shownAgain(
  { notInDeltas }: DraftContext,
  { items, task }: WaitingPage,
  form: () => ReturnType<typeof formOf>,
) {
  if (task.from === null || items === null || !notInDeltas?.size) return [];
  return [...notInDeltas].filter((name) => form().shown.has(name));
}

/** Compares a page with the mirror, in the transaction that writes the draft. @param lookUpAll as `newRows` */
export function draftPage(context: DraftContext, captured: WaitingPage, lookUpAll: boolean) {
  const { store, reads, twice, volatileFields } = context;
  const created = new Map<string, { id: number; product: Product }>();
  const changed = new Map<string, { known: KnownProduct; product: Product; change: Difference }>();
  /** Items of a delta that is in another form than the list. */
  const partial: RejectedItem[] = [];
  /** Members that such items leave out. */
  const leftOut = new Set<string>();
  const form = onFirstUse(() => formOf(store, captured));
  const withdrawn = new Set<number>();
  /** Digests of products whose content the mirror does not take up: whether two windows show one alike counts. */
  const shown = new Map<number, number>();
  /** Without their changes, which are numbered when they are written. */
  const rows: Omit<NewRows, 'seq'>[] = [];
  const later = onFirstUse(() => reads.productsAfter(captured.task.pass, momentOf(captured.response)));
  /** The oldest change that an outdated read of this page does not show. */
  let outdatedFrom = Number.POSITIVE_INFINITY;
  let nextId = 0;
  /** Of the item that is judged. */
  let offset = 0;

  function newId(count = 1): number {
    nextId ||= store.products.lastId() + 1;
    nextId += count;
    return nextId - count;
  }

  const { from, vbid: lookedUp, window } = captured.task;
  const isList = from === null && lookedUp === undefined;
  const ids = [...captured.ids];

  const rules: JudgeRules = {
    ...context,
    isDelta: from !== null,
    without: (name) => form().without(name),
    isCommon: (name) => form().isCommon(name),
    isBehind: ({ id, vbid }) =>
      isList && (reads.sideOf(id, offset) === 'front' || (twice.has(vbid) && !reads.hasFront(window))),
    isOutdated: ({ id }) => later().has(id),
  };

  /** @returns the product's id; 0 if the mirror does not have it, and it is withdrawn */
  function judge(product: Product, position: number): number {
    const { vbid, body } = product;
    offset = startOf(window) + position;
    const known = store.products.find(vbid);
    const found = judgeItem(product, known, rules);
    const id = known?.id ?? created.get(vbid)?.id ?? (found.kind === 'absent' ? 0 : newId());
    const firstAt = isList && id > 0 ? ids.indexOf(id) : -1;
    const isAgain = firstAt !== -1 && firstAt < position;
    const first = (changed.get(vbid) ?? created.get(vbid))?.product.body ?? known?.body ?? body;
    if (found.kind === 'behind' || (isAgain && (withdrawn.has(id) || !sameContent(first, body, volatileFields)))) {
      shown.set(id, BEHIND + contentDigest(body, volatileFields));
    }
    if (found.kind === 'behind' || isAgain) return id;
    // If a product is twice on a page of a delta, the later one counts, even if it equals the mirror's.
    changed.delete(vbid);
    withdrawn.delete(id);
    if (found.kind === 'new') created.set(vbid, { id, product });
    if (found.kind === 'withdrawn' || (found.kind === 'absent' && id > 0)) withdrawn.add(id);
    if (found.kind === 'partial') {
      partial.push({ position, reason: whyPartial(found, body), body });
      for (const name of found.leftOut) leftOut.add(name);
    }
    if (known === undefined) return id;
    shown.delete(id);
    const isKept = found.kind === 'same' || found.kind === 'withdrawn' || found.kind === 'partial';
    if (isKept && !sameContent(known.body, product.body, volatileFields)) {
      shown.set(id, contentDigest(product.body, volatileFields));
    }
    // A place behind this one showed the former content, and this one counts instead.
    if (found.kind === 'changed' && isList && reads.sideOf(id, offset) === 'behind') {
      shown.set(id, BEHIND + contentDigest(known.body, volatileFields));
    }
    if (found.kind === 'changed') changed.set(vbid, { known, product, change: found.change });
    // The product exists, as the later read shows, but it is not as this page shows it: so it must not join windows.
    if (found.kind === 'outdated') outdatedFrom = Math.min(outdatedFrom, known.changedSeq);
    return id;
  }

  /** Gives each item an id. */
  function judgeAll(items: PageItems): void {
    const positions = ids.flatMap((id, at) => (id === null ? [at] : []));
    const parts = mayBeDeleted(items, context) ? [] : newRows(store.products, context, items, positions, lookUpAll);
    const isRow = new Uint8Array(ids.length);
    for (const { from, to } of parts) isRow.fill(1, from, to + 1);
    for (const position of positions) {
      if (isRow[position] === 0) ids[position] = judge(productAt(items, position), position);
    }
    // Last, so that products of both kinds get ids in a row.
    for (const part of parts) {
      const id = newId(part.to - part.from + 1);
      for (let at = part.from; at <= part.to; at++) ids[at] = id + at - part.from;
      rows.push({ ...part, id });
    }
  }

  if (captured.items !== null) judgeAll(captured.items);
  const restored = [...changed.values()].filter(({ known }) => known.removed).length;
  return {
    ids: ids.map((id) => id ?? 0),
    created,
    changed,
    withdrawn,
    shown,
    restored,
    items: captured.items,
    rows,
    partial,
    leftOut,
    shownAgain: shownAgain(context, captured, form),
    outdatedFrom,
  };
}

/** What a page changes, before anything is written. */
export type Draft = ReturnType<typeof draftPage>;

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
    ids: draft.ids.flatMap((id) => {
      const digest = draft.shown.get(id);
      return digest === undefined ? id : [id, -digest];
    }),
  };
}
