import { type Position, parsePosition } from '../catalog/position.ts';
import type { Store } from '../store/store.ts';

/*
 * A stream's ids are positions in the log: `<incarnation>:<seq>:<time>`, the event's id and when the change was recorded
 * (milliseconds since 1970; 0 if the log no longer has it). A standard EventSource sends the last one back. The number
 * alone would not do: after a mirror is restored from a backup, the same numbers mean other changes.
 *
 * A position that is not in this log cannot be rejected, because any status but 200 ends an EventSource for good. The
 * stream then starts with `event: reset`.
 */

/** Why a reader must forget what it has. Readers match on the code. */
const MESSAGES = {
  OTHER_MIRROR: 'the last id belongs to another mirror',
  RESTORED: 'the last id belongs to a later state of this mirror, which was restored from a backup since',
  UNKNOWN_PLACE: 'the last id is not an id of this stream',
};

type ResetCode = keyof typeof MESSAGES;

export interface StreamStart {
  /** It sends the events after this change. */
  readonly from: number;
  /** What it sends first. */
  readonly block: string;
  /** Null if the requested position is in the log. */
  readonly reset: ResetCode | null;
}

export function positionText(incarnation: string, seq: number, at: number): string {
  return `${incarnation}:${seq}:${at}`;
}

function resetCodeOf(position: Position | null, store: Store): ResetCode | null {
  if (position === null) return 'UNKNOWN_PLACE';
  const { incarnation, seq, at } = position;
  if (incarnation !== null && incarnation !== store.incarnation) return 'OTHER_MIRROR';
  if (seq > store.changes.lastSeq()) return 'RESTORED';
  const recordedAt = store.changes.timeOf(seq) ?? at;
  return (at ?? 0) !== 0 && recordedAt !== at ? 'RESTORED' : null;
}

/**
 * Call inside a read transaction.
 * @param requested a position, or `latest` for changes recorded from now on
 * @param wantsPast whether a reader whose position is not in this log gets the whole log, or only new changes
 */
export function streamStart(store: Store, requested: string, wantsPast: boolean): StreamStart {
  const last = store.changes.lastSeq();
  const idOf = (seq: number): string => positionText(store.incarnation, seq, store.changes.timeOf(seq) ?? 0);
  if (requested === 'latest') {
    // It has data because the npm package `eventsource` keeps no id of a block without data: a reader that was cut off
    // before its first event would resume at what is newest then.
    return { from: last, block: `event: start\nid: ${idOf(last)}\ndata: {"after":${last}}\n\n`, reset: null };
  }
  const position = parsePosition(requested);
  const code = resetCodeOf(position, store);
  if (position !== null && code === null) {
    // A reader that is cut off before its first event resumes where it started.
    return { from: position.seq, block: `id: ${idOf(position.seq)}\n\n`, reset: null };
  }
  const reset = code ?? 'UNKNOWN_PLACE';
  const from = wantsPast ? 0 : last;
  const data = JSON.stringify({ code: reset, message: MESSAGES[reset], after: from, last });
  return { from, block: `event: reset\nid: ${idOf(from)}\ndata: ${data}\n\n`, reset };
}
