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
  const { change, body } = createHistory(store).asOf(row.vbid, at);
  const { seq: changedSeq, at: changedAt, op } = change;
  const columns = columnsOf(JSON.parse(body) as Record<string, unknown>);
  return { ...row, ...columns, body, changedSeq, changedAt, removedAt: op === 'removed' ? changedAt : null };
}
