import type { Store } from '../store/store.ts';

/*
 * Where a stream begins.
 *
 * A stream's ids name a place in the log: `<incarnation>:<seq>:<time>`, the id of the event and when it was recorded
 * (milliseconds since 1970; 0 where the log no longer says). A standard EventSource sends back the last one it saw. The
 * number alone would not do: in a mirror that was restored from a backup, the same numbers come to mean other changes.
 *
 * A place that is not in this log cannot be refused: any status but 200 ends an EventSource for good. It is answered with
 * `event: reset`, and with all that there is.
 */

/** Milliseconds, of `at`; null where only the number is known, as in `?after=12`. */
interface Place {
  readonly incarnation: string | null;
  readonly seq: number;
  readonly at: number | null;
}

/** Why a reader must forget what it has. Readers match on it. */
export type ResetCode = 'OTHER_MIRROR' | 'RESTORED' | 'UNKNOWN_PLACE';

const MESSAGES: Record<ResetCode, string> = {
  OTHER_MIRROR: 'the last id comes from another mirror',
  RESTORED: 'the last id comes from a later state of this mirror, which was restored since',
  UNKNOWN_PLACE: 'the last id is not one of these streams',
};

export interface Beginning {
  /** The stream brings the events after this change. */
  readonly from: number;
  /** What it sends first. */
  readonly block: string;
  /** Null where the place that was asked for is in the log. */
  readonly reset: ResetCode | null;
}

/** @param at when the change was recorded, milliseconds since 1970; 0 where that is not known */
export function placeText(incarnation: string, seq: number, at: number): string {
  return `${incarnation}:${seq}:${at}`;
}

/** @returns null for a text that is not a place: `<seq>`, `<incarnation>:<seq>` or `<incarnation>:<seq>:<time>` */
export function parsePlace(text: string): Place | null {
  const [, incarnation = null, digits = '', time] = /^(?:([\w-]{1,64}):)?(\d{1,16})(?::(\d{1,16}))?$/.exec(text) ?? [];
  const seq = Number(digits);
  if (digits === '' || !Number.isSafeInteger(seq) || (incarnation === null && time !== undefined)) return null;
  return { incarnation, seq, at: time === undefined ? null : Number(time) };
}

function mismatch(place: Place | null, { changes, incarnation }: Store): ResetCode | null {
  if (place === null) return 'UNKNOWN_PLACE';
  if (place.incarnation !== null && place.incarnation !== incarnation) return 'OTHER_MIRROR';
  if (place.seq > changes.lastSeq()) return 'RESTORED';
  const recordedAt = changes.timeOf(place.seq);
  const isOther = (place.at ?? 0) !== 0 && recordedAt !== undefined && recordedAt !== place.at;
  return isOther ? 'RESTORED' : null;
}

/**
 * Inside a read transaction.
 * @param asked a place, or `latest`: what is recorded from now on
 * @param wantsPast whether a reader whose place is not in this log is sent the log from its first change on; else, from
 *   now on
 */
export function beginningOf(store: Store, asked: string, wantsPast: boolean): Beginning {
  const last = store.changes.lastSeq();
  const idOf = (seq: number): string => placeText(store.incarnation, seq, store.changes.timeOf(seq) ?? 0);
  if (asked === 'latest') {
    // With data, because the npm package `eventsource` keeps no id of a block without: cut off before its first event,
    // it would come back to what is newest then.
    return { from: last, block: `event: start\nid: ${idOf(last)}\ndata: {"after":${last}}\n\n`, reset: null };
  }
  const place = parsePlace(asked);
  const reset = mismatch(place, store);
  // A reader that is cut off before its first event comes back to where it began.
  if (place !== null && reset === null) return { from: place.seq, block: `id: ${idOf(place.seq)}\n\n`, reset };
  const code = reset ?? 'UNKNOWN_PLACE';
  const from = wantsPast ? 0 : last;
  const data = JSON.stringify({ code, message: MESSAGES[code], after: from, last });
  return { from, block: `event: reset\nid: ${idOf(from)}\ndata: ${data}\n\n`, reset: code };
}
