import type { RecordedChange } from '../catalog/event.ts';
import type { History } from '../store/history/history.ts';
import type { SinkRow, SinkView } from '../store/rows/sink-rows.ts';
import type { From } from '../store/rows/write-sink-views.ts';
import type { Reader } from '../store/schema/reader.ts';
import { seenBy, type View, type ViewText, viewOrNull } from '../view/view.ts';
import { changeBetween, type ViewedLog, viewedChange, viewedLog } from '../view/viewed-change.ts';

/*
 * What a store has: V of the products as of its cursor, for its view. While it is brought from one view, or one moment, to
 * another, a part of the products is as after, and the rest as before.
 */

export const WHOLE: ViewText = { where: null, fields: null };

/** The view that a sink gets in a generation; undefined before its first one: every product whole. */
export function viewAt(views: readonly SinkView[], generation: number): SinkView | undefined {
  return views.findLast((view) => view.generation <= generation);
}

/** Whether a store that is at `cursor` of a generation has every product whole: it has no view, and has left an earlier one. */
export function hasWhole(views: readonly SinkView[], generation: number, cursor: number): boolean {
  const { where, fields, toCursor } = viewAt(views, generation) ?? { ...WHOLE, toCursor: 0 };
  return where === null && fields === null && cursor >= toCursor;
}

/** The view that a sink is being brought to, by sending what differs; undefined if that is not under way. */
export function transitionAt(views: readonly SinkView[], sink: SinkRow, cursor = sink.cursor): SinkView | undefined {
  const { generation, beganGeneration, backfillTo } = sink;
  const view = viewAt(views, generation);
  const isItsFill = view?.generation === beganGeneration && view.toCursor === backfillTo;
  return isItsFill && view.fromGeneration !== null && cursor < backfillTo ? view : undefined;
}

/**
 * The views under which a store got changes since its last fill, the oldest first, each with the change after which it
 * applied. A changed view is not a fill: the store keeps what both show.
 */
export function viewsSinceFill(views: readonly SinkView[], { beganGeneration, backfillTo }: SinkRow) {
  const found: { readonly view: SinkView | undefined; readonly after: number }[] = [];
  for (let [generation, after] = [beganGeneration, backfillTo]; ; ) {
    const view = viewAt(views, generation);
    found.unshift({ view, after });
    // `sendNewest` keeps the tag of the view, and an operator has decided about what was sent then.
    const isChange = view?.generation === generation && view.tag !== (viewAt(views, generation - 1)?.tag ?? null);
    if (!isChange || view.fromGeneration === null || view.toCursor === -1) return found;
    [generation, after] = [view.fromGeneration, view.fromBackfill];
  }
}

/** Whether a fill knows what its store may have had before: only such a fill has a view that ends before all changes. */
export function knowsBefore({ generation, fromGeneration, toCursor }: SinkView, sink: SinkRow): boolean {
  return generation === sink.beganGeneration && fromGeneration !== null && toCursor === -1;
}

/** Prepares each view once. What a view may cost is checked where it is set: a store may have an older one. */
export function createPreparedViews(name: string) {
  const prepared = new Map<string, View | null>();
  const what = `the view of sink ${name}`;
  return ({ where, fields }: ViewText): View | null => {
    const key = JSON.stringify([where, fields]);
    if (!prepared.has(key)) prepared.set(key, viewOrNull({ where, fields }, { where: what, fields: what }, null));
    return prepared.get(key) ?? null;
  };
}

export type PreparedViews = ReturnType<typeof createPreparedViews>;

/** A product as of a moment that is not before those of the question. */
type Product = Pick<RecordedChange, 'vbid' | 'seq' | 'body'>;

/** @returns what tells the JSON that the store has of a product; null: nothing; undefined: not known */
export function createContents(
  { sinks, changes }: Reader,
  sinkId: number,
  prepare: PreparedViews,
  { asOf }: Pick<History, 'asOf'>,
) {
  const views = sinks.views(sinkId);
  const prunedTo = changes.prunedTo();

  function at(product: Product, moment: number): Pick<Product, 'seq' | 'body'> | null | undefined {
    if (product.seq <= moment) return product;
    return prunedTo > moment ? undefined : asOf(product.vbid, moment);
  }

  return function had(from: From, product: Product): string | null | undefined {
    const { fromGeneration: generation, fromCursor: cursor, fromBackfill: backfillTo, fromRemoved, exact } = from;
    const view = viewAt(views, generation ?? 0);
    const isFilling = cursor < backfillTo;
    const there = at(product, isFilling ? backfillTo : cursor);
    if (there === undefined || (!exact && product.seq > cursor)) return undefined;
    if (!isFilling || (there !== null && there.seq <= cursor)) {
      return seenBy(prepare(view ?? WHOLE), { vbid: product.vbid, body: there?.body ?? null });
    }
    const isTransition =
      view?.generation === generation && view.fromGeneration !== null && view.toCursor === backfillTo;
    if (isTransition) return view.unsure.has(product.vbid) ? undefined : had(view, product);
    return fromRemoved ? undefined : null;
  };
}

/**
 * How a sink with a view gets changes.
 * @param cursor where reading starts
 * @returns null if the sink gets every change as it is
 */
export function viewedChanges(
  store: Reader,
  sink: SinkRow,
  cursor: number,
  prepare: PreparedViews,
  history: Pick<History, 'asOf'>,
): ViewedLog | null {
  const views = store.sinks.views(sink.id);
  const current = viewAt(views, sink.generation);
  if (current === undefined) return null;
  const view = prepare(current);
  const tag = current.tag ?? 'all';
  const transition = transitionAt(views, sink, cursor);
  if (transition !== undefined) {
    const had = createContents(store, sink.id, prepare, history);
    return {
      keys: null,
      of: (change) => {
        const before = transition.unsure.has(change.vbid) ? undefined : had(transition, change);
        // Another transition, or the same one from another generation or position, may send the change with another content.
        const { fromGeneration, fromCursor } = transition;
        const from = `${current.generation}.${before === undefined ? 'x' : `${fromGeneration}.${fromCursor}`}`;
        return changeBetween(change, before ?? null, seenBy(view, change), `${tag}.${from}`, before === undefined);
      },
    };
  }
  // A view without a tag is that of a sink that never had one.
  if (current.tag === null) return null;
  if (cursor < sink.backfillTo) {
    const had = knowsBefore(current, sink) ? createContents(store, sink.id, prepare, history) : null;
    const mayHave = (change: RecordedChange): boolean =>
      sink.backfillRemoved && (had === null || current.unsure.has(change.vbid) || had(current, change) !== null);
    return {
      keys: null,
      of: (change) => {
        const viewed = viewedChange(view, change, tag, true);
        return viewed?.op === 'removed' && !mayHave(change) ? null : viewed;
      },
    };
  }
  return viewedLog(view, tag, cursor, store.changes.prunedTo());
}
