import { eventText } from '../catalog/event.ts';
import { createHistory } from '../store/history.ts';
import { eventSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import { checkPlace } from './parameters.ts';
import { type Beginning, beginningOf, placeText } from './start-position.ts';

/** Events of one read. For safety: more would hold up everything else in the process, and the memory of its readers. */
export const BATCH = 100;
/** An answer ends after the batch that reaches this many characters; `next` tells where to go on. For safety. */
const MAX_CHARACTERS = 8_000_000;

export interface SequencedEvent {
  readonly seq: number;
  /** Its place in the log, as a stream's id. */
  readonly id: string;
  /** A CloudEvent as `catchword changes` prints it: JSON without a line break. */
  readonly text: string;
}

/** The change log as events. */
export interface ChangeLog {
  lastSeq(): number;
  /** Where a stream begins; see `beginningOf`. */
  begin(asked: string, wantsPast: boolean): Beginning;
  /** Events after `seq`, oldest first, at most BATCH. */
  batch(seq: number): SequencedEvent[];
  /**
   * JSON of the events after `after`, of where to go on, and of the newest change: one state of the file.
   * @throws CatchwordError USAGE where `after` is beyond the newest change
   */
  answer(after: number, limit: number): string;
}

/** @param fallback the `source` of events where the mirror has not noted its own */
export function createChangeLog(store: Store, fallback: string): ChangeLog {
  const history = createHistory(store);

  function eventsAfter(seq: number, limit: number): SequencedEvent[] {
    const source = eventSource(store.source, fallback);
    const changes = history.after(seq, Math.min(limit, BATCH));
    return changes.map((change) => ({
      seq: change.seq,
      id: placeText(store.incarnation, change.seq, change.at),
      text: eventText(change, store.incarnation, source),
    }));
  }

  function answer(after: number, limit: number): string {
    const last = store.changes.lastSeq();
    const events: string[] = [];
    let next = checkPlace('after', after, last);
    for (let characters = 0; events.length < limit && characters < MAX_CHARACTERS; ) {
      const batch = eventsAfter(next, limit - events.length);
      if (batch.length === 0) break;
      for (const { seq, text } of batch) {
        events.push(text);
        characters += text.length;
        next = seq;
      }
    }
    // Set in as they are, so that no number is rounded.
    return `{"events":[${events.join(',')}],"next":${next},"last":${last}}`;
  }

  return {
    lastSeq: () => store.changes.lastSeq(),
    begin: (asked, wantsPast) => store.read(() => beginningOf(store, asked, wantsPast)),
    batch: (seq) => store.read(() => eventsAfter(seq, BATCH)),
    answer: (after, limit) => store.read(() => answer(after, limit)),
  };
}
