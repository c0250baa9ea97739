import { type EventSpan, eventId, eventText, type RecordedChange } from '@catchword/catalog/event';
import type { ChangeOp } from '@catchword/catalog/run-types';
import type { LineBuffer } from '@catchword/sink-kit/line-buffers';
import type { EventLines, Sink, SinkEvent } from '@catchword/sink-kit/sink';
import { createHistory, type History } from '../store/history/history.ts';
import { legOf } from '../store/rows/sink-legs.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import { eventSource } from '../store/rows/source-state.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { ViewedLog } from '../view/viewed-change.ts';
import type { BatchSize } from './batch-size.ts';
import type { RefusalSearch } from './refusal-search.ts';
import { type PreparedViews, viewedChanges } from './store-contents.ts';

/** Events of one delivery. */
export interface Delivery {
  readonly size: number;
  /** Their texts, if a sink wants no more; null if they were not read so. */
  readonly lines: EventLines | null;
  readonly events: () => readonly ChangeEvent[];
}

/** The next events of one sink. */
export interface Batch extends Delivery {
  /** The log is covered up to this change. */
  readonly to: number;
  /** Changes that wait for an earlier, parked event of their product. */
  readonly waiting: readonly RecordedChange[];
}

interface ReadOptions {
  readonly history: History;
  readonly incarnation: string;
  /** The `source` of events. */
  readonly source: string;
}

/** Records scanned per batch: during a fill, and of a log whose changes a sink does not see. */
const SCAN = 20_000;
/** Records read at once; the batch is measured between reads. */
const STEP = 250;
/** Texts made at once: first so many, then about so many bytes. Longer pieces are not faster (measured). */
const FIRST_TEXTS = 100;
const PIECE_BYTES = 120_000;

/**
 * Describes a change to a sink. Its text is made on demand: table sinks do not need it. A class, because a million object
 * literals with a getter take a quarter of a second longer.
 */
export class ChangeEvent implements SinkEvent {
  readonly seq: number;
  readonly at: number;
  readonly op: ChangeOp;
  readonly vbid: string;
  readonly body: string | null;
  /** As the sink gets it. */
  readonly change: RecordedChange;
  readonly #options: ReadOptions;

  constructor(change: RecordedChange, options: ReadOptions) {
    this.seq = change.seq;
    this.at = change.at;
    this.op = change.op;
    this.vbid = change.vbid;
    this.body = change.body;
    this.change = change;
    this.#options = options;
  }

  get id(): string {
    return eventId(this.#options.incarnation, this.change);
  }

  get text(): string {
    return eventText(this.change, this.#options.incarnation, this.#options.source);
  }
}

export function deliveryOf(events: readonly ChangeEvent[]): Delivery {
  return { size: events.length, lines: null, events: () => events };
}

/** Characters that an event's text adds to its product. */
const ENVELOPE_CHARS = 400;

/** Which of a sink's next changes to read: at most so many events, of so many characters, up to a change. */
interface Wanted extends Readonly<Record<'cursor' | 'events' | 'chars' | 'upTo', number>> {
  /** The end of the leg's products. */
  readonly asOf: number;
  /** Whether a fill delivers removals. */
  readonly withRemoved: boolean;
  /** During a fill, where this batch's search ends; null after it. */
  readonly end: number | null;
}

/**
 * Reads the next batch after `cursor`, in steps, so that other work can go on between them.
 *
 * Up to `asOf` it has only each product's newest change as of then: together, every product once. After that, it has every
 * change. A sink that is being filled and a live one have the same kind of cursor, so both resume alike.
 *
 * @param blocked products with a parked event, and its number: this event and later ones wait
 * @param skipped events not to deliver
 * @param viewed what the sink sees; null: every change as it is
 * @returns null if there is nothing after `cursor`
 */
function* readBatch(
  options: ReadOptions,
  { asOf, withRemoved, cursor, end, ...most }: Wanted,
  blocked: ReadonlyMap<string, number>,
  skipped: ReadonlySet<number>,
  viewed: ViewedLog | null,
): Generator<undefined, Batch | null> {
  const { history } = options;
  const events: ChangeEvent[] = [];
  const waiting: RecordedChange[] = [];
  let to = cursor;
  let chars = 0;
  let waitingChars = 0;

  /** Reads some of the changes after `at`. @returns them, as the sink gets them, and how far the log was searched */
  function changesAfter(at: number): { readonly changes: readonly RecordedChange[]; readonly reached: number } {
    const room = Math.min(STEP, most.events - events.length);
    const { changes, to } =
      end !== null
        ? history.newest(at, end, asOf, room)
        : viewed === null
          ? { changes: history.after(at, room), to: null }
          : history.matching(at, room, { keys: viewed.keys });
    const reached = to ?? changes.at(-1)?.seq ?? at;
    if (viewed !== null) return { changes: changes.flatMap((change) => viewed.of(change) ?? []), reached };
    const wanted = end === null || withRemoved ? changes : changes.filter(({ op }) => op !== 'removed');
    return { changes: wanted, reached };
  }

  /** @returns false when the batch is full */
  function take(change: RecordedChange): boolean {
    if (change.seq > most.upTo) {
      to = most.upTo;
      return false;
    }
    const more = ENVELOPE_CHARS + (change.body?.length ?? 0) + (change.before?.length ?? 0);
    if (change.seq >= (blocked.get(change.vbid) ?? Number.POSITIVE_INFINITY)) {
      waiting.push(change);
      waitingChars += more;
    } else if (!skipped.has(change.seq)) {
      if (events.length > 0 && chars + more > most.chars) return false;
      events.push(new ChangeEvent(change, options));
      chars += more;
    }
    to = change.seq;
    return events.length < most.events && waiting.length < most.events && waitingChars < most.chars;
  }

  const last = Math.min(end ?? (viewed === null ? most.upTo : cursor + SCAN), most.upTo);
  for (let at = cursor; at < last; ) {
    const { changes, reached } = changesAfter(at);
    for (const change of changes) if (!take(change)) return { ...deliveryOf(events), to, waiting };
    if (reached === at) break;
    at = reached;
    to = Math.max(to, Math.min(at, most.upTo));
    yield;
  }
  return to === cursor ? null : { ...deliveryOf(events), to, waiting };
}

/** Reads the next batch as `readBatch` does, but only its texts. Its events are read when a sink refuses one of them. */
function* readLines(
  options: ReadOptions,
  { asOf, withRemoved, cursor, end, ...most }: Wanted,
  buffer: LineBuffer,
): Generator<undefined, Batch | null> {
  const { history, incarnation, source } = options;
  const range = { upTo: end ?? most.upTo, asOf: end === null ? null : asOf, withRemoved };
  let span = null as EventSpan | null;
  let to = cursor;
  let size = 0;
  for (let step = FIRST_TEXTS; ; ) {
    const limit = Math.min(step, most.events - (span?.events ?? 0));
    const found = history.lines({ ...range, after: to, limit }, most.chars - size, incarnation, source);
    const { lines } = found;
    const more = lines?.bytes.length ?? 0;
    if (span !== null && size + more > most.chars) break;
    const isEnd = found.to === to || (end !== null && found.to >= end);
    to = found.to;
    if (lines !== null) {
      buffer.append(lines.bytes);
      size += more;
      const { events, last, lastId } = lines;
      span = { ...(span ?? lines), events: (span?.events ?? 0) + events, last, lastId };
      step = Math.ceil((PIECE_BYTES * events) / more);
    }
    // The next events are probably as long as these.
    if (isEnd || (span?.events ?? 0) >= most.events || size + more > most.chars) break;
    yield;
  }
  if (to === cursor) return null;
  const lines = span && { ...span, bytes: buffer.bytes() };
  const events = () =>
    history.within({ ...range, after: cursor, upTo: to }).map((change) => new ChangeEvent(change, options));
  return { size: span?.events ?? 0, lines, events, to, waiting: [] };
}

export interface ReadTarget {
  readonly batch: Sink['batch'];
  /** Where the texts of a batch go; null for a sink that takes events. */
  readonly nextBuffer: (() => LineBuffer) | null;
  /** Whether the end of a fill removes what the store should not have, so that no fill delivers removals. */
  readonly endsFills: boolean;
  /** After a fill, the last change that may be delivered; default: the newest. */
  readonly judgedTo?: () => number | null;
}

/** Reads what one sink gets next. @param source the `source` of events if the mirror has not stored its own */
export function createBatchReader(
  store: Reader,
  source: string,
  search: Pick<RefusalSearch, 'limit'>,
  batchSize: Pick<BatchSize, 'limit'>,
  prepare: PreparedViews,
) {
  const history = createHistory(store);
  const readOptions = () => ({ history, incarnation: store.incarnation, source: eventSource(store.source, source) });
  const mostEvents = (batch: Sink['batch']): number => Math.min(batch.events, search.limit(), batchSize.limit());

  /** Reads the next batch after `cursor` in steps. @param skipped events to omit, besides events that the operator skipped */
  function* steps(
    sink: SinkRow,
    { batch, nextBuffer, endsFills, judgedTo = () => Number.MAX_SAFE_INTEGER }: ReadTarget,
    cursor: number,
    skipped: readonly number[] = [],
  ): Generator<undefined, Batch | null> {
    const { what, to: asOf } = legOf(sink);
    const withRemoved = !endsFills && what !== 'first';
    // From an unusual run on, a decision is needed.
    const unusual = (store.runs.unusual(sink.approvedRun)?.from ?? Number.MAX_SAFE_INTEGER) - 1;
    const upTo = cursor < asOf ? unusual : Math.min(unusual, judgedTo() ?? cursor);
    const end = cursor < asOf ? Math.min(cursor + SCAN, asOf, upTo) : null;
    const wanted = { asOf, withRemoved, cursor, upTo, end, events: mostEvents(batch), chars: batch.chars };
    const viewed = viewedChanges(store, sink, cursor, withRemoved, prepare, history);
    const blocked = store.sinks.blocked(sink.id);
    const allSkipped = new Set([...store.sinks.skipped(sink.id), ...skipped]);
    const hasAll = blocked.size === 0 && allSkipped.size === 0 && search.limit() === Number.POSITIVE_INFINITY;
    return nextBuffer !== null && hasAll && viewed === null
      ? yield* readLines(readOptions(), wanted, nextBuffer())
      : yield* readBatch(readOptions(), wanted, blocked, allSkipped, viewed);
  }

  return {
    readOptions,
    /** The most events that the sink may get at once now. */
    mostEvents,
    /** Reads the next batch after `cursor` at once. */
    read: (...given: Parameters<typeof steps>): Batch | null => {
      const reading = steps(...given);
      for (;;) {
        const { done, value } = reading.next();
        if (done === true) return value;
      }
    },
    /** Reads the next batch while other work goes on, such as the writes of a delivery. */
    readMeanwhile: async (...given: Parameters<typeof steps>): Promise<Batch | null> => {
      const reading = steps(...given);
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        const { done, value } = reading.next();
        if (done === true) return value;
      }
    },
  };
}
