import { columnsOf } from '../catalog/product.ts';
import { CatchwordError } from '../errors.ts';
import { createHistory } from './history.ts';
import type { ProductRow } from './products.ts';
import type { Store } from './store.ts';

/**
 * The product as it was right after a change.
 * @throws CatchwordError USAGE if `at` is beyond the newest change; NOT_FOUND if the product did not exist then, or the log no
 *   longer holds what it was
 */
export function productAsOf(store: Store, row: ProductRow, at: number): ProductRow {
  const last = store.changes.lastSeq();
  if (at > last) {
    throw new CatchwordError('USAGE', `--at: ${at} is beyond the newest change, which is ${last}`, {
      hint: `List the changes of this product with: npx catchword product ${row.vbid} --history.`,
    });
  }
  const history = createHistory(store);
  const past = history.asOf(row.vbid, at);
  if (past === null) {
    throw new CatchwordError('NOT_FOUND', `${row.vbid} did not exist at change ${at}`, {
      hint: `It was created with change ${history.of(row.vbid).at(-1)?.seq ?? row.changedSeq}.`,
    });
  }
  const { seq: changedSeq, at: changedAt, op } = past.change;
  const columns = columnsOf(JSON.parse(past.body) as Record<string, unknown>);
  const removedAt = op === 'removed' ? changedAt : null;
  return { ...row, ...columns, body: past.body, changedSeq, changedAt, removedAt };
}
