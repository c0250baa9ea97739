import type { RecordedChange } from '../catalog/event.ts';
import type { History } from '../store/history/history.ts';
import type { SinkRow, SinkView } from '../store/rows/sink-rows.ts';
import type { From } from '../store/rows/write-sink-views.ts';
import { type View, type ViewText, viewOrNull } from '../view/view.ts';

/*
 * What a store has: V of the products as of its cursor, for its view. While it is brought from one view, or one moment, to
 * another, a part of the products is as after, and the rest as before.
 */

export const WHOLE: ViewText = { where: null, fields: null };

/** The view that a sink gets in a generation; undefined before its first one: every product whole. */
export function viewAt(views: readonly SinkView[], generation: number): SinkView | undefined {
  return views.findLast((view) => view.generation <= generation);
}

/** The view that a sink is being brought to, by sending what differs; undefined if that is not under way. */
export function transitionAt(
  views: readonly SinkView[],
  { generation, beganGeneration, backfillTo }: SinkRow,
  cursor: number,
): SinkView | undefined {
  const view = viewAt(views, generation);
  const isItsFill = view?.generation === beganGeneration && view.toCursor === backfillTo;
  return isItsFill && view.fromGeneration !== null && cursor < backfillTo ? view : undefined;
}

/** Prepares each view once. */
export function createPreparedViews(name: string) {
  const prepared = new Map<string, View | null>();
  return ({ where, fields }: ViewText): View | null => {
    const key = JSON.stringify([where, fields]);
    let view = prepared.get(key);
    if (view === undefined) {
      const what = `the view of sink ${name}`;
      view = viewOrNull({ where, fields }, { where: what, fields: what });
      prepared.set(key, view);
    }
    return view;
  };
}

export type PreparedViews = ReturnType<typeof createPreparedViews>;

/** A product as of a moment that is not before those of the question. */
type Product = Pick<RecordedChange, 'vbid' | 'seq' | 'body'>;

/**
 * @param prunedTo up to there the log does not hold every change
 * @returns what tells the JSON that the store has of a product; null: nothing; undefined: not known
 */
export function createContents(
  views: readonly SinkView[],
  prepare: PreparedViews,
  { asOf }: Pick<History, 'asOf'>,
  prunedTo: number,
) {
  function at(product: Product, moment: number): Pick<Product, 'seq' | 'body'> | null | undefined {
    if (product.seq <= moment) return product;
    return prunedTo > moment ? undefined : asOf(product.vbid, moment);
  }

  return function had(from: From, product: Product): string | null | undefined {
    const { fromGeneration: generation, fromCursor: cursor, fromBackfill: backfillTo, fromRemoved, exact } = from;
    const view = viewAt(views, generation ?? 0);
    const of = (body: string | null): string | null => {
      const prepared = prepare(view ?? WHOLE);
      return body === null || prepared === null ? body : prepared.of(product.vbid, body);
    };
    const isFilling = cursor < backfillTo;
    const there = at(product, isFilling ? backfillTo : cursor);
    if (there === undefined || (!exact && product.seq > cursor)) return undefined;
    if (!isFilling || (there !== null && there.seq <= cursor)) return of(there?.body ?? null);
    const isTransition =
      view?.generation === generation && view.fromGeneration !== null && view.toCursor === backfillTo;
    if (isTransition) return view.unsure.has(product.vbid) ? undefined : had(view, product);
    return fromRemoved ? undefined : null;
  };
}
