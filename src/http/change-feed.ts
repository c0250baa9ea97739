import { unlessAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { eventId, eventText } from '../catalog/event.ts';
import type { ChangeFilter } from '../catalog/run-types.ts';
import { createHistory, requireKnownSeq } from '../store/history/history.ts';
import { findPosition, idAt } from '../store/history/log-position.ts';
import { eventSource } from '../store/rows/source-state.ts';
import type { Store } from '../store/store.ts';
import { streamStart } from './start-position.ts';

/*
 * Many readers follow the log at the same place, its end. One poll wakes all of them, and the first one that reads a
 * batch reads and formats it for all: the newest batches are kept. Readers elsewhere read their own.
 */

/** Events per batch. For safety: more would block the process. */
const BATCH = 100;
/** A batch ends with the event that reaches this many characters. For safety: each reader may hold a batch. */
const BATCH_CHARACTERS = 65_536;
/** Batches to keep for other readers; the least recently used are dropped first. */
const KEPT_BYTES = 4_000_000;
/** A page ends after the batch that reaches this many characters; `next` says where to continue. For safety. */
const PAGE_CHARACTERS = 8_000_000;

/** Events as messages of a stream, ready to be written by any number of readers. */
export interface Batch {
  /** The last event's number. */
  readonly to: number;
  readonly bytes: Buffer;
}

/** Keeps the batches that were used last, by the number that they follow. */
function createKeptBatches() {
  const kept = new Map<number, Batch>();
  let bytes = 0;

  function drop(seq: number): void {
    bytes -= kept.get(seq)?.bytes.length ?? 0;
    kept.delete(seq);
  }

  function keep(seq: number, batch: Batch): void {
    drop(seq);
    kept.set(seq, batch);
    bytes += batch.bytes.length;
    // The batch that was just kept stays, however large: other readers share it.
    for (const old of kept.keys()) {
      if (bytes <= KEPT_BYTES || old === seq) break;
      drop(old);
    }
  }

  return {
    /** The batch after `seq`; `read` makes it if it is not kept. What has been recorded never changes. */
    after: (seq: number, read: (seq: number) => Batch | null): Batch | null => {
      const batch = kept.get(seq) ?? read(seq);
      if (batch !== null) keep(seq, batch);
      return batch;
    },
  };
}

/**
 * Polls the mirror while a reader waits, once for all that wait.
 * @returns a function that waits for the next poll, and returns the newest change; it throws what reading the mirror
 *   threw, and the signal's reason when that aborts
 */
function createPoll({ changes }: Store, clock: Clock, pollMs: number) {
  let poll: Promise<number> | null = null;

  async function wake(): Promise<number> {
    try {
      await clock.sleep(pollMs);
    } finally {
      poll = null;
    }
    return changes.lastSeq();
  }

  return (signal: AbortSignal): Promise<number> => {
    poll ??= wake();
    return unlessAborted(poll, signal);
  };
}

/** Reads events after a change, as many as fit a batch. */
function createEventReader(store: Store, fallback: string) {
  const history = createHistory(store);
  /** Size of an event of the batch before: events next to each other are alike. */
  let eventCharacters = BATCH_CHARACTERS / BATCH;

  /** @returns the events, and how far the log was searched */
  return (seq: number, limit = BATCH, filter: ChangeFilter = {}) =>
    store.read(() => {
      // A mirror that was restored meanwhile has other changes at the same numbers.
      store.check();
      const source = eventSource(store.source, fallback);
      const fitting = Math.ceil(BATCH_CHARACTERS / eventCharacters);
      const events = [];
      let characters = 0;
      const { changes, to } = history.matching(seq, Math.min(limit, BATCH, fitting), filter);
      for (const change of changes) {
        const text = eventText(change, store.incarnation, source);
        events.push({ seq: change.seq, id: eventId(store.incarnation, change), text });
        characters += text.length;
        if (characters >= BATCH_CHARACTERS) break;
      }
      if (events.length > 0) eventCharacters = characters / events.length;
      return { events, to: events.length < changes.length ? (events.at(-1)?.seq ?? seq) : to };
    });
}

export type ChangeFeed = ReturnType<typeof createChangeFeed>;

interface ChangeFeedOptions {
  readonly store: Store;
  /** The `source` of events if the mirror has not stored its own. */
  readonly fallback: string;
  readonly clock: Clock;
  /** Pause between two polls of the mirror, milliseconds. */
  readonly pollMs: number;
}

/** Reads the change log as events. */
export function createChangeFeed({ store, fallback, clock, pollMs }: ChangeFeedOptions) {
  const eventsAfter = createEventReader(store, fallback);
  const kept = createKeptBatches();

  function readBatch(seq: number): Batch | null {
    const { events, to } = eventsAfter(seq);
    if (to === seq) return null;
    return { to, bytes: Buffer.from(events.map(({ id, text }) => `id: ${id}\ndata: ${text}\n\n`).join('')) };
  }

  function* pieces(after: number, limit: number, last: number, filter: ChangeFilter): Generator<string, void> {
    let next = after;
    let count = 0;
    let head = '{"events":[';
    for (let characters = 0; count < limit && characters < PAGE_CHARACTERS && next < last; ) {
      const { events: found, to } = eventsAfter(next, limit - count, filter);
      const events = found.filter(({ seq }) => seq <= last);
      next = Math.min(to, last);
      // The texts are inserted unparsed, so that no number is rounded.
      const text = events.map((event) => event.text).join(',');
      // An empty piece lets others have their turn.
      yield events.length === 0 ? '' : head + text;
      if (events.length > 0) head = ',';
      count += events.length;
      characters += text.length;
    }
    const nextId = store.read(() => {
      store.check();
      return idAt(store, next);
    });
    yield `${count === 0 ? head : ''}],"next":${next},"last":${last},"next_id":"${nextId}"}`;
  }

  return {
    lastSeq: () => store.changes.lastSeq(),
    find: (position: string) => store.read(() => findPosition(store, position)),
    start: (requested: string, wantsPast: boolean) => store.read(() => streamStart(store, requested, wantsPast)),
    /** Events after `seq`, oldest first; null if there are none. */
    batch: (seq: number) => kept.after(seq, readBatch),
    polled: createPoll(store, clock, pollMs),
    /**
     * JSON with the events after `after`, the number to continue after, and the newest change as of now, in pieces that
     * are read one by one.
     * @throws CatchwordError USAGE if `after` is beyond the newest change; a piece MIRROR_REPLACED
     */
    page: (after: number, limit: number, filter: ChangeFilter): Iterator<string, void> => {
      const last = store.changes.lastSeq();
      return pieces(requireKnownSeq('after', after, last), limit, last, filter);
    },
  };
}
