import { createContents, createPreparedViews } from '../relay/store-contents.ts';
import { createHistory } from '../store/history/history.ts';
import type { ProductRow } from '../store/rows/product-rows.ts';
import { legOf } from '../store/rows/sink-legs.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Store } from '../store/store.ts';
import { seenBy, type View } from '../view/view.ts';
import { heldSinkText } from './sink-report.ts';

export type SinkProduct = ReturnType<typeof sinkProduct>;

/**
 * What a sink's store has of a product, as the mirror knows it, and why.
 * @param row null: a sink that was not fed yet
 * @param view of the settings; null: every product whole
 * @returns `has`: JSON as of the change `position`, null for nothing or if it is not `known`; `gets`: JSON as of now
 */
export function sinkProduct(store: Store, name: string, row: SinkRow | null, view: View | null, product: ProductRow) {
  const { vbid, changedSeq: seq, removedAt } = product;
  const body = removedAt === null ? product.body : null;
  const gets = seenBy(view, { vbid, body });
  const failure = view?.failures().last;
  const mismatch = failure ? `an expression fails on ${failure}` : 'it does not match';
  const reason = body === null ? 'the product is removed' : mismatch;
  const answer = (position: number, has: string | null | undefined, why: string) => {
    return { sink: name, position, known: has !== undefined, has: has ?? null, gets, why };
  };
  if (row === null) {
    return answer(0, null, `the sink was not fed yet; ${gets === null ? reason : 'the store will get it'}`);
  }
  const { id, state, cursor } = row;
  const history = createHistory(store);
  const parked = store.sinks.blocked(id).get(vbid);
  // What the store refused, it does not have.
  const position = parked === undefined || cursor < legOf(row).to ? cursor : Math.min(cursor, parked - 1);
  if (store.sinks.skipped(id).has(history.asOf(vbid, position)?.seq ?? 0)) {
    return answer(
      position,
      undefined,
      'an event of it was skipped, so the store may have an older version, or nothing',
    );
  }
  const has = createContents(store, createPreparedViews(name), history).has(row, { vbid, seq, body }, position);
  if (parked !== undefined) {
    return answer(position, has, `event ${parked} of it is parked: npx catchword sink parked ${name}`);
  }
  const held = heldSinkText(store, row);
  if (held !== null) return answer(position, has, `the sink is held: ${held.reason}`);
  const halt = state === 'running' ? '' : `, and is ${state}`;
  if (seq > cursor) return answer(position, has, `change ${seq} of it waits: the sink is at ${cursor}${halt}`);
  if (has === gets) return answer(position, has, gets === null ? reason : 'the store has it as it is now');
  return answer(position, has, 'the view was changed; the store gets what differs when the daemon starts again');
}
