import { revert } from '../catalog/content.ts';
import type { RecordedChange } from '../catalog/event.ts';
import type { RunKind } from '../catalog/run.ts';
import type { ChangeRow } from './changes.ts';
import type { Store } from './store.ts';

/** The item's text right after each change of `chain` (newest first), starting from its present text. */
function* bodiesBack(chain: readonly ChangeRow[], present: string): Iterable<[ChangeRow, string]> {
  let body = present;
  for (const change of chain) {
    yield [change, body];
    if (change.before !== null) body = revert(body, { before: change.before, added: change.added });
  }
}

/**
 * The item's text right after `change`; null when the change removed it. Later changes are taken back one by one, so the
 * cost is their number, which is nearly always none.
 */
function bodyAfter(store: Store, change: ChangeRow): string | null {
  if (change.op === 'removed') return null;
  const product = store.products.get(change.vbid);
  if (product === undefined) return null;
  for (const [at, body] of bodiesBack(store.changes.chain(product.changedSeq), product.body)) {
    if (at.seq === change.seq) return body;
  }
  return null;
}

/** Reads the log with the products as they were. */
export interface History {
  /** Changes after `seq`, oldest first, at most `limit`. */
  after(seq: number, limit: number): RecordedChange[];
  /** A product's changes that are still kept, newest first. */
  of(vbid: string): RecordedChange[];
  /** The item's text as of `seq`; null where it did not exist or was removed then. */
  bodyAt(vbid: string, seq: number): string | null;
}

export function createHistory(store: Store): History {
  const kinds = new Map<number, RunKind>();

  function causeOf(runId: number): RunKind {
    const known = kinds.get(runId) ?? store.runs.get(runId)?.kind ?? 'full';
    kinds.set(runId, known);
    return known;
  }

  function recorded(change: ChangeRow, body: string | null): RecordedChange {
    return { ...change, cause: causeOf(change.runId), body };
  }

  return {
    after: (seq, limit) => store.changes.after(seq, limit).map((change) => recorded(change, bodyAfter(store, change))),
    of: (vbid) => {
      const product = store.products.get(vbid);
      if (product === undefined) return [];
      const chain = store.changes.chain(product.changedSeq);
      return [...bodiesBack(chain, product.body)].map(([change, body]) =>
        recorded(change, change.op === 'removed' ? null : body),
      );
    },
    bodyAt: (vbid, seq) => {
      const product = store.products.get(vbid);
      if (product === undefined) return null;
      for (const [change, body] of bodiesBack(store.changes.chain(product.changedSeq), product.body)) {
        if (change.seq <= seq) return change.op === 'removed' ? null : body;
      }
      return null;
    },
  };
}
