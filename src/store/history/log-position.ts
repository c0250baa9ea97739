import { eventId, incarnationOf } from '@catchword/catalog/event';
import type { Reader } from '../schema/reader.ts';

/*
 * A position in the change log, as readers note it: the id of the newest event that they have. A number alone does not
 * tell whether the mirror was restored from a backup since: then the same numbers mean other changes.
 */

/** Why a position is not in this log: the reader must discard what it has. Readers match on the code. */
export const MISPLACED = {
  OTHER_MIRROR: 'the last id belongs to another mirror',
  RESTORED: 'the last id belongs to a later state of this mirror, which was restored from a backup since',
  OTHER_VIEW: 'the last id belongs to other where and fields, or to a sink with some',
  UNKNOWN_PLACE: 'the last id is not an id of this stream',
};

export type Misplaced = keyof typeof MISPLACED;

/** `<seq>`, `<incarnation>_<era>:<seq>` (the id of an event, with `.<tag>` before the colon for a view), or `<incarnation>:0` (before all changes). */
const FORM = /^(?:([\w-]{1,64})(?:\.([\w.]{1,40}))?:)?(\d{1,16})$/;

/** Whether a text may be a position: a number or an id. */
export function isPosition(text: string): boolean {
  return Number.isSafeInteger(Number(FORM.exec(text)?.[3]));
}

/**
 * The id of the change `seq`, also of one that was pruned; of 0, the position before all changes.
 * @param tag names the view of the reader, if it has one
 */
export function idAt({ changes, incarnation }: Reader, seq: number, tag?: string): string {
  const era = changes.eraOf(seq);
  return era === null ? `${incarnation}:${seq}` : eventId(incarnation, { seq, era, ...(tag && { tag }) });
}

/**
 * Finds a position in this log, inside a read transaction.
 * @param text a number, which is believed, or an id
 * @param view names the view of the reader, if it has one
 */
export function findPosition(
  store: Reader,
  text: string,
  view?: string,
): { readonly seq: number } | { readonly code: Misplaced } {
  const [, history, tag, digits] = FORM.exec(text) ?? [];
  const seq = Number(digits);
  if (!Number.isSafeInteger(seq)) return { code: 'UNKNOWN_PLACE' };
  if (history !== undefined && incarnationOf(`${history}:0`) !== store.incarnation) return { code: 'OTHER_MIRROR' };
  if (seq > store.changes.lastSeq()) return { code: 'RESTORED' };
  if (history === undefined || seq === 0) return { seq };
  if (`${history}:${digits}` !== idAt(store, seq)) return { code: 'RESTORED' };
  return tag === view ? { seq } : { code: 'OTHER_VIEW' };
}
