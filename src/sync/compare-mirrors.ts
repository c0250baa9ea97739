import { changedPointers, difference, type Pointer, sameContent } from '@catchword/catalog/content';
import { isWithdrawnBody } from '@catchword/catalog/field-values';
import type { Run } from '@catchword/catalog/run-types';
import type { ProductRow } from '../store/rows/product-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { Store } from '../store/store.ts';
import { isGone } from './judge-item.ts';
import type { RunSettings } from './run-settings.ts';

type Living = Pick<ProductRow, 'vbid' | 'title' | 'body'>;

export type Disagreement =
  | (Living & { readonly kind: 'only-here' | 'only-there' })
  | (Omit<Living, 'body'> & { readonly kind: 'differs'; readonly fields: readonly string[] });

function living(row: ProductRow | undefined): ProductRow | undefined {
  return row?.removedAt === null ? row : undefined;
}

/**
 * Yields every difference between a mirror and a copy of it that was brought up to date, ordered by key. Reads only what
 * the copy has changed. @param copiedAt the newest change when the copy was made
 */
export function* compareMirrors(
  here: Reader,
  there: Reader,
  ignoreFields: readonly Pointer[],
  copiedAt: number,
): Generator<Disagreement> {
  for (const vbid of there.products.changedAfter(copiedAt)) {
    const [a, b] = [living(here.products.get(vbid)), living(there.products.get(vbid))];
    if (a !== undefined && b !== undefined) {
      if (sameContent(a.body, b.body, ignoreFields)) continue;
      yield { kind: 'differs', vbid, title: b.title, fields: changedPointers(difference(a.body, b.body)) };
    } else if (a !== undefined) yield { kind: 'only-here', vbid, title: a.title, body: a.body };
    else if (b !== undefined) yield { kind: 'only-there', vbid, title: b.title, body: b.body };
  }
}

/**
 * `drift`: the next run changes it anyway. `difference`: it should not be. `unproven`: only the mirror has it, and the
 * reading cannot prove that the source does not; or it may be drift, because the delta was not read whole.
 */
export interface Verdict {
  readonly found: Disagreement;
  readonly as: 'drift' | 'difference' | 'unproven';
}

function keysOf({ runs, removals }: Store, run: Run): Set<string> {
  const ids = [...runs.eachIds(run.id)].flat();
  return new Set(ids.flatMap((id) => removals.living(id)?.vbid ?? []));
}

/**
 * Compares a mirror with the source.
 * @param scratch a copy of it as of the change `copiedAt`, with what `full` and then `delta` read
 * @param delta what changed since the mirror was last complete
 */
export function* verifyMirror(
  mirror: Store,
  scratch: Store,
  full: Run,
  delta: Run,
  { ignoreFields, withdrawnAs }: Pick<RunSettings, 'ignoreFields' | 'withdrawnAs'>,
  copiedAt: number,
): Generator<Verdict> {
  const changed = keysOf(scratch, delta);
  const isWhole = delta.reasons.length === 0 && delta.rejected === 0;
  for (const found of compareMirrors(mirror, scratch, ignoreFields, copiedAt)) {
    const isWithdrawn = found.kind !== 'differs' && isWithdrawnBody(found.body);
    if (found.kind === 'only-there' && isGone({ withdrawn: isWithdrawn }, { withdrawnAs })) continue;
    if (changed.has(found.vbid) || (found.kind === 'only-here' && isWithdrawn)) yield { found, as: 'drift' };
    else if (!isWhole || (found.kind === 'only-here' && full.proof !== 'sealed')) yield { found, as: 'unproven' };
    else yield { found, as: 'difference' };
  }
}
