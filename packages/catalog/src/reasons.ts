/*
 * What a run could not prove, as codes with data. Rules decide by the codes; report/reason-text.ts alone makes sentences of
 * them, so other words change nothing of what runs do.
 */

/** Why an answer of the source does not count as whole; `said` is the message of the error that it was at first. */
export type Doubt = { readonly said: string } & (
  | /** Its totals contradict its items. */ { readonly code: 'contradiction' }
  /** A cache kept it for longer than the overlap. */
  | { readonly code: 'cached' }
  /** The source does not answer these offsets, whatever is tried. `to` null: nor anything after `from`. */
  | { readonly code: 'unreadable'; readonly from: number; readonly to: number | null }
);

/** How many items were read, of how many that the source's total counts, or that its list is long. */
export interface CountReason {
  readonly code: 'count';
  readonly wanted: number;
  readonly read: number;
  readonly of: 'total' | 'list';
}

/** Why removals are held. */
export type HoldReason =
  | { readonly code: 'empty' }
  /** `announced`: removals that the source announced; they do not count against the limit, but are held with the others. */
  | { readonly code: 'limit'; readonly removals: number; readonly limit: number; readonly announced: number }
  | CountReason;

/** The reason of a run that holds removals, or held them until an operator decided. */
export interface HeldReason {
  readonly code: 'held';
  readonly why: HoldReason;
  readonly verdict: 'approved' | 'rejected' | null;
}

/** Which list a run could not prove to be whole: the source's, or that of a delta. */
interface OfList {
  readonly list: 'list' | 'delta';
}

/** Seams that did not close, of how many. */
interface OpenSeams extends OfList {
  readonly open: number;
  readonly seams: number;
}

/** A product, and how many more there are like it; null: it was removed. */
interface Products {
  readonly vbid: string | null;
  readonly more: number;
}

/** Why the proof of a run is open, or what it holds. */
export type Reason =
  | Doubt
  | CountReason
  | HeldReason
  /** CATCHWORD_SEAM is off. */
  | { readonly code: 'plain-pages' }
  /** The source answers this page size, whatever it is asked for. */
  | { readonly code: 'page-size'; readonly perPage: number }
  | ({ readonly code: 'no-order' } & OfList)
  | ({ readonly code: 'seams' } & OpenSeams)
  /** As `seams`, and all that two windows share has another content in the second one. */
  | ({ readonly code: 'volatile' } & OpenSeams)
  /** A delta of plain pages changed while it was read. */
  | { readonly code: 'plain-delta' }
  /** The source changed faster than its deltas could be read. */
  | { readonly code: 'restless' }
  /** A delta shows nearly every product. */
  | { readonly code: 'whole-delta' }
  /** Products are at two distant places. */
  | ({ readonly code: 'two-places' } & Products)
  /** Products are at two places, with two contents. */
  | ({ readonly code: 'two-contents' } & Products)
  /** Deltas show products without these members; empty: some. */
  | { readonly code: 'partial'; readonly leftOut: readonly string[] }
  | { readonly code: 'rejected' }
  /** Of so many changes that the list shows, deltas did not tell some, mostly of these fields. */
  | { readonly code: 'untold'; readonly untold: number; readonly changed: number; readonly fields: readonly string[] }
  /** Changes to an earlier run were untold, and this run could not control its deltas. */
  | { readonly code: 'uncontrolled'; readonly run: number }
  /** The run had to settle, and could not. */
  | { readonly code: 'unsettled' };

interface Reasoned {
  readonly reasons: readonly Reason[];
}

/** Whether nothing in the window was read, however often it was asked for. */
export function isUnreadable(doubt: Doubt | null): boolean {
  return doubt?.code === 'unreadable';
}

/** Whether deltas did not tell every change, as far as is known. */
export function isUntold({ code }: Reason): boolean {
  return code === 'untold' || code === 'uncontrolled';
}

/** Why a run held removals, and how an operator decided about them; undefined if it held none. */
export function holdOf({ reasons }: Reasoned): HeldReason | undefined {
  return reasons.find((reason) => reason.code === 'held');
}

/** The reasons of a run once an operator has decided about its removals. */
export function decidedReasons({ reasons }: Reasoned, verdict: 'approved' | 'rejected'): Reason[] {
  return reasons.map((reason) => (reason.code === 'held' ? { ...reason, verdict } : reason));
}
