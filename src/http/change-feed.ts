import { unlessAborted } from '@catchword/base/abort';
import type { Clock } from '@catchword/base/clock';
import type { ChangeFilter } from '@catchword/catalog/run-types';
import { approvedTo } from '../state/mirror-state.ts';
import { requireKnownSeq } from '../store/history/history.ts';
import { findPosition, idAt, MISPLACED } from '../store/history/log-position.ts';
import type { Store } from '../store/store.ts';
import type { ReadSteps, Steps } from './read-steps.ts';
import { type ReaderView, WHOLE } from './reader-views.ts';

/*
 * Many readers follow the log at the same place, its end. One poll wakes all of them, and the first one that reads a
 * batch reads and formats it for all: the newest batches are kept. Readers elsewhere read their own.
 */

/** Batches to keep for other readers; the least recently used are dropped first. */
const KEPT_BYTES = 4_000_000;
/** A page ends after the batch that reaches this many characters; `next` says where to continue. For safety. */
const PAGE_CHARACTERS = 8_000_000;
/** And after so many changes that a view judged, which takes a second at most. */
const PAGE_JUDGED = 10_000;

/** Events as messages of a stream, ready to be written by any number of readers. */
export interface Batch {
  /** The last event's number. */
  readonly to: number;
  readonly bytes: Buffer;
}

/** Keeps the batches that were used last, by the view and the number that they follow: what is recorded never changes. */
function createKeptBatches(read: (seq: number, view: ReaderView) => Promise<Batch | null>) {
  const kept = new Map<string, Batch>();
  const underWay = new Map<string, Promise<Batch | null>>();
  let bytes = 0;

  function drop(key: string): void {
    bytes -= kept.get(key)?.bytes.length ?? 0;
    kept.delete(key);
  }

  function readOnce(key: string, seq: number, view: ReaderView): Promise<Batch | null> {
    const found = underWay.get(key) ?? read(seq, view).finally(() => underWay.delete(key));
    underWay.set(key, found);
    return found;
  }

  return async (seq: number, view: ReaderView = WHOLE): Promise<Batch | null> => {
    const key = `${view.digest ?? ''}:${seq}`;
    const batch = kept.get(key) ?? (await readOnce(key, seq, view));
    if (batch === null) return null;
    drop(key);
    kept.set(key, batch);
    bytes += batch.bytes.length;
    // The batch that was just kept stays, however large: other readers share it.
    for (const old of kept.keys()) {
      if (bytes <= KEPT_BYTES || old === key) break;
      drop(old);
    }
    return batch;
  };
}

/** Waits for the next poll of the mirror, which all that wait share. @returns the newest change */
function createPoll({ changes }: Store, clock: Clock, pollMs: number) {
  let poll: Promise<number> | null = null;

  return (signal: AbortSignal): Promise<number> => {
    poll ??= clock
      .sleep(pollMs)
      .finally(() => {
        poll = null;
      })
      .then(() => changes.lastSeq());
    return unlessAborted(poll, signal);
  };
}

/**
 * Where a stream starts; with `event: reset` if the position is not in this log, because any status but 200 would end an
 * EventSource for good. Call inside a read transaction.
 * @param requested a position, such as the id of an event, or `latest` for changes recorded from now on
 * @param view names the view of the reader, if it has one
 * @param wantsPast whether a reader whose position is not in this log gets the whole log, or only new changes
 * @param last where new changes begin
 * @returns the change after which the events start, the first message, and why the position is not in this log, if so
 */
export function streamStart(
  store: Store,
  requested: string,
  wantsPast: boolean,
  view?: string,
  last = store.changes.lastSeq(),
) {
  if (requested === 'latest') {
    // It has data because the npm package `eventsource` keeps no id of a block without data: a reader that was cut off
    // before its first event would resume at the newest change of that later moment.
    return {
      from: last,
      block: `event: start\nid: ${idAt(store, last, view)}\ndata: {"after":${last}}\n\n`,
      reset: null,
    };
  }
  const found = findPosition(store, requested, view);
  // A reader that is cut off before its first event resumes where it started.
  if ('seq' in found) return { from: found.seq, block: `id: ${idAt(store, found.seq, view)}\n\n`, reset: null };
  const { code } = found;
  const from = wantsPast ? 0 : last;
  const data = JSON.stringify({ code, message: MISPLACED[code], after: from, last });
  return { from, block: `event: reset\nid: ${idAt(store, from, view)}\ndata: ${data}\n\n`, reset: code };
}

export type ChangeFeed = ReturnType<typeof createChangeFeed>;

/**
 * Reads the change log as events.
 * @param here reads whole products
 * @param steps evaluates the expressions of readers
 * @param pollMs pause between two polls of the mirror, milliseconds
 */
export function createChangeFeed(
  store: Store,
  here: Pick<ReadSteps, 'changes'>,
  steps: Pick<Steps, 'changes'>,
  clock: Clock,
  pollMs: number,
) {
  async function eventsAfter(view: ReaderView, ...wanted: [seq: number, limit?: number, filter?: ChangeFilter]) {
    const found = view === WHOLE ? here.changes({}, ...wanted) : await steps.changes(view.given, ...wanted);
    store.check();
    return found;
  }

  async function readBatch(seq: number, view: ReaderView, upTo = Number.MAX_SAFE_INTEGER): Promise<Batch | null> {
    const found = await eventsAfter(view, seq);
    const to = Math.min(found.to, upTo);
    if (to === seq) return null;
    const events = found.events.filter((event) => event.seq <= to);
    const blocks = events.map(({ id, text }) => `id: ${id}\ndata: ${text}\n\n`);
    // Otherwise a reader that is cut off would let the same changes be judged again.
    if (view !== WHOLE && events.at(-1)?.seq !== to) blocks.push(`id: ${idAt(store, to, view.digest)}\n\n`);
    return { to, bytes: Buffer.from(blocks.join('')) };
  }

  const keptBatch = createKeptBatches(readBatch);

  /** Events after `seq`, oldest first; null if there are none. */
  async function batch(seq: number, view: ReaderView = WHOLE, isApproved = false): Promise<Batch | null> {
    const end = isApproved ? approvedTo(store) : Number.MAX_SAFE_INTEGER;
    const found = seq < end ? await keptBatch(seq, view) : null;
    return found === null || found.to <= end ? found : await readBatch(seq, view, end);
  }

  /**
   * JSON with the events after `after`, in pieces that are read one by one.
   * @throws the first piece: CatchwordError USAGE if `after` is beyond the newest change; each: MIRROR_REPLACED, SEARCH_TIMEOUT
   */
  async function* page(
    after: number,
    limit: number,
    filter: ChangeFilter,
    view: ReaderView,
    last = store.changes.lastSeq(),
  ): AsyncGenerator<string, void> {
    const sum = { count: 0, characters: 0, read: 0, failed: 0 };
    const isFull = (): boolean =>
      sum.count >= limit || sum.characters >= PAGE_CHARACTERS || (view !== WHOLE && sum.read >= PAGE_JUDGED);
    let next = requireKnownSeq('after', after, store.changes.lastSeq());
    let head = '{"events":[';
    let isSlow = false;
    while (next < last && !isFull() && !isSlow) {
      const { events: found, to, read, failed, ...step } = await eventsAfter(view, next, limit - sum.count, filter);
      isSlow = step.isSlow;
      const events = found.filter(({ seq }) => seq <= last);
      next = Math.min(to, last);
      // The texts are inserted unparsed, so that no number is rounded.
      const text = events.map((event) => event.text).join(',');
      // An empty piece lets others have their turn.
      yield events.length === 0 ? '' : head + text;
      if (events.length > 0) head = ',';
      sum.count += events.length;
      sum.characters += text.length;
      sum.read += read;
      sum.failed += failed;
    }
    const nextId = store.read(() => {
      store.check();
      return idAt(store, next, view.digest);
    });
    const failures = view === WHOLE ? '' : `,"failed":${sum.failed}`;
    yield `${sum.count === 0 ? head : ''}],"next":${next},"last":${Math.max(last, next)},"next_id":"${nextId}"${failures}}`;
  }

  return {
    lastSeq: () => store.changes.lastSeq(),
    find: (position: string, view?: string) => store.read(() => findPosition(store, position, view)),
    /** The change as of which a reader asks; undefined: the newest. */
    asOf: (approved?: 'true') => (approved === undefined ? undefined : approvedTo(store)),
    start: (...given: [requested: string, wantsPast: boolean, view?: string, last?: number]) =>
      store.read(() => streamStart(store, ...given)),
    batch,
    polled: createPoll(store, clock, pollMs),
    page,
  };
}
