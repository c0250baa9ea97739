import { type EventSpan, eventId, eventText, type RecordedChange } from '../catalog/event.ts';
import type { ChangeOp } from '../catalog/run-types.ts';
import type { History } from '../store/history/history.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { ViewedLog } from '../view/viewed-change.ts';
import type { LineBuffer } from './line-buffers.ts';
import type { EventLines, SinkEvent } from './sink.ts';

/** Events of one delivery. */
export interface Delivery {
  readonly size: number;
  /** Their texts, if a sink wants no more; null if they were not read so. */
  readonly lines: EventLines | null;
  readonly events: () => readonly SinkEvent[];
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

export function deliveryOf(events: readonly SinkEvent[]): Delivery {
  return { size: events.length, lines: null, events: () => events };
}

/** Characters that an event's text adds to its product. */
const ENVELOPE_CHARS = 400;

/** Where reading ends, if it is before the end of the log, and what the sink sees of the changes. */
export interface ReadLimits {
  readonly events: number;
  readonly chars: number;
  readonly upTo: number;
}

/** Reads some of the next changes after `at`. @returns them, as the sink gets them, and how far the log was searched */
function nextChanges(
  { history }: ReadOptions,
  { backfillTo, backfillRemoved }: Pick<SinkRow, 'backfillTo' | 'backfillRemoved'>,
  at: number,
  end: number | null,
  room: number,
  viewed: ViewedLog | null,
): { readonly changes: readonly RecordedChange[]; readonly to: number } {
  const { changes, to } =
    end !== null
      ? history.newest(at, end, backfillTo, room)
      : viewed === null
        ? { changes: history.after(at, room), to: null }
        : history.matching(at, room, { keys: viewed.keys });
  const reached = to ?? changes.at(-1)?.seq ?? at;
  if (viewed !== null) return { changes: changes.flatMap((change) => viewed.of(change) ?? []), to: reached };
  const wanted = end === null || backfillRemoved ? changes : changes.filter(({ op }) => op !== 'removed');
  return { changes: wanted, to: reached };
}

/**
 * Reads the next batch after `cursor`.
 *
 * Up to `backfillTo` it has only each product's newest change as of then: together, every product once. After that, it has
 * every change. A sink that is being filled and a live one have the same kind of cursor, so both resume alike.
 *
 * @param blocked products with a parked event, and its number: this event and later ones wait
 * @param skipped events not to deliver
 * @param viewed what the sink sees; null: every change as it is
 * Reads in steps, so that other work can go on between them.
 * @returns null if there is nothing after `cursor`
 */
export function* readBatch(
  options: ReadOptions,
  sink: Pick<SinkRow, 'backfillTo' | 'backfillRemoved'>,
  cursor: number,
  most: ReadLimits,
  blocked: ReadonlyMap<string, number>,
  skipped: ReadonlySet<number>,
  viewed: ViewedLog | null,
): Generator<undefined, Batch | null> {
  const events: SinkEvent[] = [];
  const waiting: RecordedChange[] = [];
  let to = cursor;
  let chars = 0;
  let waitingChars = 0;

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

  const end = cursor < sink.backfillTo ? Math.min(cursor + SCAN, sink.backfillTo, most.upTo) : null;
  const last = Math.min(end ?? (viewed === null ? most.upTo : cursor + SCAN), most.upTo);
  for (let at = cursor; at < last; ) {
    const found = nextChanges(options, sink, at, end, Math.min(STEP, most.events - events.length), viewed);
    for (const change of found.changes) if (!take(change)) return { ...deliveryOf(events), to, waiting };
    if (found.to === at) break;
    at = found.to;
    to = Math.max(to, Math.min(at, most.upTo));
    yield;
  }
  return to === cursor ? null : { ...deliveryOf(events), to, waiting };
}

function joined(first: EventSpan | null, next: EventSpan): EventSpan {
  if (first === null) return next;
  const { events, last, lastId } = next;
  return { ...first, events: first.events + events, last, lastId };
}

/** Reads the next batch as `readBatch` does, but only its texts. Its events are read when a sink refuses one of them. */
export function* readLines(
  options: ReadOptions,
  { backfillTo, backfillRemoved }: Pick<SinkRow, 'backfillTo' | 'backfillRemoved'>,
  cursor: number,
  most: ReadLimits,
  buffer: LineBuffer,
): Generator<undefined, Batch | null> {
  const { history, incarnation, source } = options;
  const filling = cursor < backfillTo;
  const upTo = filling ? Math.min(cursor + SCAN, backfillTo, most.upTo) : most.upTo;
  const range = { upTo, asOf: filling ? backfillTo : null, withRemoved: backfillRemoved };
  let span: EventSpan | null = null;
  let to = cursor;
  let size = 0;
  for (let step = FIRST_TEXTS; ; ) {
    const limit = Math.min(step, most.events - (span?.events ?? 0));
    const found = history.lines({ ...range, after: to, limit }, most.chars - size, incarnation, source);
    const { lines } = found;
    const more = lines?.bytes.length ?? 0;
    if (span !== null && size + more > most.chars) break;
    const isEnd = found.to === to || (filling && found.to >= upTo);
    to = found.to;
    if (lines !== null) {
      buffer.append(lines.bytes);
      size += more;
      span = joined(span, lines);
      step = Math.ceil((PIECE_BYTES * lines.events) / more);
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
