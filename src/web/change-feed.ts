import { eventText } from '../catalog/event.ts';
import { createHistory, requireKnownSeq } from '../store/history.ts';
import { eventSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import { positionText, streamStart } from './start-position.ts';

/** Events per read. For safety: more would block the process, and use its readers' memory. */
const BATCH = 100;
/** A page ends after the batch that reaches this many characters; `next` says where to continue. For safety. */
const MAX_CHARACTERS = 8_000_000;

export type ChangeFeed = ReturnType<typeof createChangeFeed>;

/**
 * Reads the change log as events.
 * @param fallback the `source` of events if the mirror has not stored its own
 */
export function createChangeFeed(store: Store, fallback: string) {
  const history = createHistory(store);

  function eventsAfter(seq: number, limit: number) {
    const source = eventSource(store.source, fallback);
    const changes = history.after(seq, Math.min(limit, BATCH));
    return changes.map((change) => ({
      seq: change.seq,
      /** Its position in the log, the `id` of its stream message. */
      id: positionText(store.incarnation, change.seq, change.at),
      /** A CloudEvent as `catchword changes` prints it: JSON without a line break. */
      text: eventText(change, store.incarnation, source),
    }));
  }

  function page(after: number, limit: number): string {
    const last = store.changes.lastSeq();
    const events: string[] = [];
    let next = requireKnownSeq('after', after, last);
    for (let characters = 0; events.length < limit && characters < MAX_CHARACTERS; ) {
      const batch = eventsAfter(next, limit - events.length);
      if (batch.length === 0) break;
      for (const { seq, text } of batch) {
        events.push(text);
        characters += text.length;
        next = seq;
      }
    }
    // The texts are inserted unparsed, so that no number is rounded.
    return `{"events":[${events.join(',')}],"next":${next},"last":${last}}`;
  }

  return {
    lastSeq: () => store.changes.lastSeq(),
    /** Where a stream starts; see `streamStart`. */
    start: (requested: string, wantsPast: boolean) => store.read(() => streamStart(store, requested, wantsPast)),
    /** Events after `seq`, oldest first, at most BATCH. */
    batch: (seq: number) => store.read(() => eventsAfter(seq, BATCH)),
    /**
     * JSON with the events after `after`, the number to continue after, and the newest change, all of one state of the file.
     * @throws CatchwordError USAGE if `after` is beyond the newest change
     */
    page: (after: number, limit: number) => store.read(() => page(after, limit)),
  };
}
