import type { RecordedChange } from '@catchword/catalog/event';
import { objectMembers } from '@catchword/catalog/json-text';
import type { ChangeFilter } from '@catchword/catalog/run-types';
import { createHistory, requireKept } from '../store/history/history.ts';
import type { ProductRow } from '../store/rows/product-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import { seenBy, type View } from './view.ts';
import { viewedLog } from './viewed-change.ts';

/** Whether a filter wants an event of a reader with a view. It judges the event, not the record of the log. */
function isWanted({ op, before, added }: RecordedChange, filter: ChangeFilter): boolean {
  if (filter.op?.includes(op) === false) return false;
  if (filter.field === undefined) return true;
  const changed = op === 'updated' ? [...objectMembers(before ?? '{}').keys(), ...added] : [];
  return filter.field.some((name) => changed.includes(name.replace(/^\//, '')));
}

/**
 * Reads what a reader gets who keeps its own position: over HTTP, in Node.js, of the command `changes`. A view that is null
 * yields whole products. `limit` is what is returned at most, `atOnce` what is read at most: each may have a megabyte. It ends
 * with the product after which `isOver`.
 */
export function createViewReader(store: Reader) {
  const history = createHistory(store);
  return {
    /** Of the changes after `seq`, oldest first, what the reader gets; what was read for it; and how far the log was searched. */
    changes: (
      seq: number,
      atOnce: number,
      limit: number,
      filter: ChangeFilter,
      view: View | null,
      isOver: () => boolean = () => false,
    ) =>
      store.read(() => {
        if (view === null) {
          const found = history.matching(seq, Math.min(atOnce, limit), filter);
          return { ...found, read: found.changes };
        }
        const viewed = viewedLog(view, view.digest, seq, store.changes.prunedTo());
        const { changes: read, to } = history.matching(seq, atOnce, { keys: viewed.keys });
        const changes: RecordedChange[] = [];
        for (const [at, record] of read.entries()) {
          const change = viewed.of(record);
          if (change !== null && isWanted(change, filter)) changes.push(change);
          if (changes.length === limit || isOver()) return { changes, to: record.seq, read: read.slice(0, at + 1) };
        }
        return { changes, to, read };
      }),
    /**
     * Of the products after a key, by key, what the reader gets, as `body`; what was read; and the key after which to
     * continue, if any. @param asOf as of this change; default: now
     * @throws CatchwordError NOT_FOUND if the log was pruned beyond it
     */
    products: (
      after: string,
      atOnce: number,
      limit: number,
      view: View | null,
      isOver: () => boolean = () => false,
      asOf = Number.MAX_SAFE_INTEGER,
    ) => {
      requireKept(store, asOf);
      const rows = store.products.livingPage(after, atOnce, asOf);
      const [products, read]: [ProductRow[], ProductRow[]] = [[], []];
      for (const row of rows) {
        const was = row.changedSeq <= asOf ? row : history.asOf(row.vbid, asOf);
        if (was === null) continue;
        read.push({ ...row, body: was.body });
        const body = seenBy(view, was);
        if (body !== null) products.push({ ...row, body });
        if (products.length === limit || isOver()) return { products, read, next: row.vbid };
      }
      return { products, read, next: rows.length < atOnce ? null : (rows.at(-1)?.vbid ?? null) };
    },
  };
}
