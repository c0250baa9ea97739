import { eventText, type RecordedChange } from '../catalog/event.ts';
import type { ChangeOp } from '../catalog/run.ts';
import type { History } from '../store/history.ts';
import type { SinkRow } from '../store/sinks.ts';
import type { SinkEvent } from './sink.ts';

/** What is next for one sink. */
export interface Batch {
  /** The log is read up to here. */
  readonly to: number;
  readonly events: readonly SinkEvent[];
  /** Changes of products of which an earlier event is parked. */
  readonly waiting: readonly RecordedChange[];
}

export interface ReadOptions {
  readonly history: History;
  readonly incarnation: string;
  /** The `source` of events. */
  readonly source: string;
}

/** Records that are looked through at once while a new sink is filled. */
const SCAN = 20_000;
/** Records that are read at once: between them, what was read is measured. */
const STEP = 250;

/**
 * Its text is made when it is asked for: a store of rows does not ask. A class, as a million objects with a getter of
 * their own take a quarter of a second more.
 */
class LogEvent implements SinkEvent {
  readonly seq: number;
  readonly at: number;
  readonly op: ChangeOp;
  readonly vbid: string;
  readonly body: string | null;
  readonly #change: RecordedChange;
  readonly #options: ReadOptions;

  constructor(change: RecordedChange, options: ReadOptions) {
    this.seq = change.seq;
    this.at = change.at;
    this.op = change.op;
    this.vbid = change.vbid;
    this.body = change.body;
    this.#change = change;
    this.#options = options;
  }

  get text(): string {
    return eventText(this.#change, this.#options.incarnation, this.#options.source);
  }
}

export function sinkEvent(change: RecordedChange, options: ReadOptions): SinkEvent {
  return new LogEvent(change, options);
}

/** @throws Error where the log holds no such record */
export function recordAt(history: History, seq: number): RecordedChange {
  const [change] = history.after(seq - 1, 1);
  if (change?.seq !== seq) throw new Error(`the change log has no record ${seq}`);
  return change;
}

/** What an event's text adds to what is kept of its product. */
const ENVELOPE_CHARS = 400;

function charsOf({ body, before }: RecordedChange): number {
  return ENVELOPE_CHARS + (body?.length ?? 0) + (before?.length ?? 0);
}

/**
 * Reads on after `cursor`.
 *
 * Up to `backfillTo`, of each product only the newest change as of then is delivered: together these are the products as
 * of then, and none comes twice. From there on, every change. So a sink that is filled and one that is fed have the same
 * cursor, and being killed in between is nothing special.
 *
 * @param blocked products of which an event is parked, and its number: it and later ones are not for now
 * @param skipped events that the operator has given up
 * @returns null where there is nothing after `cursor`
 */
export function readBatch(
  options: ReadOptions,
  sink: Pick<SinkRow, 'backfillTo' | 'backfillRemoved'>,
  cursor: number,
  most: { readonly events: number; readonly chars: number },
  blocked: ReadonlyMap<string, number>,
  skipped: ReadonlySet<number>,
): Batch | null {
  const events: SinkEvent[] = [];
  const waiting: RecordedChange[] = [];
  let to = cursor;
  let chars = 0;
  let waitingChars = 0;

  /** @returns false when the batch is full */
  function take(change: RecordedChange): boolean {
    if (change.seq >= (blocked.get(change.vbid) ?? Number.POSITIVE_INFINITY)) {
      waiting.push(change);
      waitingChars += charsOf(change);
    } else if (!skipped.has(change.seq)) {
      const more = charsOf(change);
      if (events.length > 0 && chars + more > most.chars) return false;
      events.push(sinkEvent(change, options));
      chars += more;
    }
    to = change.seq;
    return events.length < most.events && waiting.length < most.events && waitingChars < most.chars;
  }

  const filling = cursor < sink.backfillTo;
  const end = Math.min(cursor + SCAN, sink.backfillTo);
  for (let at = cursor; ; ) {
    const room = Math.min(STEP, most.events - events.length);
    const found = filling
      ? options.history.newest(at, end, sink.backfillTo, room)
      : { changes: options.history.after(at, room), to: null };
    const wanted = found.changes.filter(({ op }) => !filling || op !== 'removed' || sink.backfillRemoved);
    for (const change of wanted) if (!take(change)) return { to, events, waiting };
    at = found.to ?? found.changes.at(-1)?.seq ?? at;
    to = Math.max(to, at);
    if (filling ? at >= end : found.changes.length < room) break;
  }
  return to === cursor ? null : { to, events, waiting };
}
