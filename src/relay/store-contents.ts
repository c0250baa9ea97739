import type { RecordedChange } from '@catchword/catalog/event';
import type { History } from '../store/history/history.ts';
import { isSameView, legBefore, legOf } from '../store/rows/sink-legs.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { SinkLeg } from '../store/schema/sink-tables.ts';
import { seenBy, type View, type ViewText, viewOrNull } from '../view/view.ts';
import { changeBetween, type ViewedLog, viewedChange, viewedLog } from '../view/viewed-change.ts';

/*
 * What a store has: V of the products as of its cursor, for the view of its leg. While a fill or a difference is under way, a
 * part of the products is as after it, and the rest as before.
 */

export const WHOLE: ViewText = { where: null, fields: null };

/** Whether a store that is at `cursor` of the last leg has every product whole. */
export function hasWhole(sink: Pick<SinkRow, 'legs'>, cursor: number): boolean {
  const leg = legOf(sink);
  return leg.tag === null || (isSameView(leg, WHOLE) && cursor >= leg.to);
}

/**
 * The legs under whose views a store got changes since its last fill, the oldest first, each with the change after which it
 * applied. A changed view is not a fill: the store keeps what both show.
 */
export function legsSinceFill({ legs }: Pick<SinkRow, 'legs'>) {
  const found: { readonly leg: SinkLeg; readonly after: number }[] = [];
  let replayedFrom = Number.POSITIVE_INFINITY;
  for (const [at, leg] of [...legs.entries()].reverse()) {
    if (leg.what === 'changes') replayedFrom = leg.from;
    if (leg.what === 'changes' && at > 0) continue;
    found.unshift({ leg, after: leg.what === 'changes' ? leg.from : Math.min(leg.to, replayedFrom) });
    // A difference of one view was approved: an operator has decided about what was sent then.
    if (leg.what !== 'difference' || leg.tag === legs[at - 1]?.tag) break;
  }
  return found;
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
export function createContents({ changes }: Reader, prepare: PreparedViews, { asOf }: Pick<History, 'asOf'>) {
  const prunedTo = changes.prunedTo();

  /** What a store has that has V of the products as of a moment. */
  function shown(view: ViewText, product: Product, moment: number): string | null | undefined {
    if (product.seq > moment && prunedTo > moment) return undefined;
    const { body = null } = (product.seq > moment ? asOf(product.vbid, moment) : product) ?? {};
    return seenBy(prepare(view), { vbid: product.vbid, body });
  }

  /** What the store had before a difference. Of another view, it may have got more than it confirmed. */
  function before(sink: SinkRow, product: Product): string | null | undefined {
    const { from, tag } = legOf(sink);
    const earlier = legBefore(sink);
    return product.seq > from && tag !== earlier.tag ? undefined : shown(earlier, product, from);
  }

  return {
    shown,
    before,
    has: (sink: SinkRow, product: Product, cursor: number): string | null | undefined => {
      const leg = legOf(sink);
      if (cursor >= leg.to) return shown(leg, product, cursor);
      if (product.seq > leg.to && prunedTo > leg.to) return undefined;
      const there = product.seq > leg.to ? asOf(product.vbid, leg.to) : product;
      if (there !== null && there.seq <= cursor) return shown(leg, there, cursor);
      if (leg.what === 'difference') return before(sink, product);
      return leg.what === 'first' ? null : undefined;
    },
  };
}

/**
 * How a sink with a view gets changes.
 * @param cursor where reading starts
 * @param withRemoved whether a fill delivers removals
 * @returns null if the sink gets every change as it is
 */
export function viewedChanges(
  store: Reader,
  sink: SinkRow,
  cursor: number,
  withRemoved: boolean,
  prepare: PreparedViews,
  history: Pick<History, 'asOf'>,
): ViewedLog | null {
  const leg = legOf(sink);
  const { generation, what, from, to } = leg;
  const view = prepare(leg);
  const tag = leg.tag ?? 'all';
  if (what === 'difference' && cursor < to) {
    const { before } = createContents(store, prepare, history);
    return {
      keys: null,
      of: (change) => {
        const had = before(sink, change);
        // Another leg, or the same one from another position, may send the change with another content.
        const id = `${tag}.${generation}.${had === undefined ? 'x' : from}`;
        return changeBetween(change, had ?? null, seenBy(view, change), id, had === undefined);
      },
    };
  }
  // A view without a tag is that of a sink that never had one.
  if (leg.tag === null) return null;
  if (cursor >= to) return viewedLog(view, tag, cursor, store.changes.prunedTo());
  return {
    keys: null,
    of: (change) => {
      const viewed = viewedChange(view, change, tag, true);
      return viewed?.op === 'removed' && !withRemoved ? null : viewed;
    },
  };
}
