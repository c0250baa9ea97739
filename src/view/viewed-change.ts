import { difference, isEmpty, revert } from '@catchword/catalog/content';
import type { RecordedChange } from '@catchword/catalog/event';
import { objectMembers } from '@catchword/catalog/json-text';
import { seenBy, type View } from './view.ts';

/*
 * What a change is for a reader with a view. With b = V(before) and a = V(after):
 *
 *   b        a
 *   nothing  nothing   -
 *   nothing  x         created, or restored
 *   x        nothing   removed
 *   x        y         updated
 *   x        x         -
 *
 * At most one event for a change, so that numbers, order and positions equal the log's.
 */

/** The product right before a change; null if it was not there. */
function bodyBefore({ op, before, added, body }: RecordedChange): string | null {
  if (op === 'removed') return before;
  return op === 'updated' && body !== null ? revert(body, { before: before ?? '{}', added }) : null;
}

/**
 * The event between two states of a product, as the reader sees them.
 * @param change the newest of the changes between the two
 * @param always whether the reader gets an event even if it sees no difference, because its version is not known
 */
export function changeBetween(
  change: RecordedChange,
  before: string | null,
  after: string | null,
  tag: string,
  always = false,
): RecordedChange | null {
  if (after === null) {
    if (before === null && !always) return null;
    const left = change.op === 'removed' ? undefined : ('left' as const);
    return { ...change, op: 'removed', before, added: [], body: null, tag, view: left };
  }
  if (before === null) {
    const op = change.op === 'restored' ? 'restored' : 'created';
    return { ...change, op, before: null, added: [], body: after, tag, view: 'entered' };
  }
  const found = difference(before, after);
  return isEmpty(found) && !always ? null : { ...change, op: 'updated', ...found, body: after, tag };
}

/** Of a view, what judges changes; null: it shows every product whole. */
type Judge = Pick<View, 'of' | 'keys'> | null;

/** Whether a change cannot make a product look different. */
function isUnseen({ op, before, added }: RecordedChange, keys: View['keys'] | undefined): boolean {
  if (op !== 'updated' || !keys) return false;
  return ![...objectMembers(before ?? '{}').keys(), ...added].some((key) => keys.has(key));
}

/**
 * A change as a reader with a view gets it; null if not at all.
 * @param tag names the view in the ids of events: without it, one id would name two contents
 * @param always as `changeBetween`: in a fill, and where the log no longer holds every change
 */
export function viewedChange(view: Judge, change: RecordedChange, tag: string, always = false): RecordedChange | null {
  if (!always && isUnseen(change, view?.keys)) return null;
  const of = (body: string | null): string | null => seenBy(view, { vbid: change.vbid, body });
  return changeBetween(change, of(bodyBefore(change)), of(change.body), tag, always);
}

/** How a reader with a view reads the log after a position. */
export interface ViewedLog {
  /** Only updates of these members can make a difference; null: of any member. */
  readonly keys: View['keys'];
  /** The change as the reader gets it; null: not at all. */
  readonly of: (change: RecordedChange) => RecordedChange | null;
}

/** @param prunedTo up to there, the log does not hold every change: the reader may have missed that a product left */
export function viewedLog(view: Judge, tag: string, after: number, prunedTo: number): ViewedLog {
  const keys = after < prunedTo ? null : (view?.keys ?? null);
  return { keys, of: (change) => viewedChange(view, change, tag, change.seq <= prunedTo) };
}
