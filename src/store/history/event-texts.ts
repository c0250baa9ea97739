import { isPlain } from '@catchword/base/plain';
import { type EventSpan, eventText, idStart, type RecordedChange, timeText } from '@catchword/catalog/event';
import type { Reader } from '../schema/reader.ts';
import type { LineHead, LineRange } from './made-lines.ts';

/** The texts of events, each a line that ends with a line break. */
export interface EventLines extends EventSpan {
  readonly bytes: Buffer;
}

export type Span = Omit<LineRange, 'limit'>;

interface Form {
  /** Bytes of all together, unless it is one event alone. */
  readonly most: number;
  readonly incarnation: string;
  readonly source: string;
}

export interface Texts {
  readonly lines: EventLines | null;
  /** How far the log was searched. */
  readonly to: number;
}

const LINE_BREAK = 10;
const CARRIAGE_RETURN = 13;

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LINE_BREAK); at !== -1; at = bytes.indexOf(LINE_BREAK, at + 1)) lines++;
  return lines;
}

/** Takes the first `limit` lines, of which one may be longer than `most` bytes but not several. */
function takeLines(lines: Iterable<Buffer>, most: number, limit: number): Buffer[] {
  const taken: Buffer[] = [];
  let size = 0;
  for (const line of lines) {
    size += line.length;
    if (size > most && taken.length > 0) break;
    taken.push(line);
    if (taken.length === limit) break;
  }
  return taken;
}

function* singleLines(changes: Iterable<RecordedChange>, { incarnation, source }: Form): Generator<Buffer> {
  for (const change of changes) yield Buffer.from(`${eventText(change, incarnation, source)}\n`);
}

/** Puts lines in the place of empty ones. */
function* filled(bytes: Buffer, lines: Iterator<Buffer>): Iterable<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(LINE_BREAK, at) + 1;
    yield end - at > 1 ? bytes.subarray(at, end) : (lines.next().value as Buffer);
    at = end;
  }
}

/** @param start of the ids */
function textsOf(lines: Omit<EventLines, 'firstId' | 'lastId'>, start: string, to: number): Texts {
  return { lines: { ...lines, firstId: `${start}${lines.first}`, lastId: `${start}${lines.last}` }, to };
}

/** Makes the texts of events: the plain way, or with those that SQLite makes. */
export function createEventTexts(
  store: Reader,
  within: (span: Span) => Iterable<RecordedChange>,
  numbered: (seqs: readonly number[]) => Iterable<RecordedChange>,
) {
  /** The plain way: one event after the other. @param range within one era, whose ids begin with `start` */
  function plainLines(range: LineRange, start: string, form: Form): Texts {
    const { limit, asOf, upTo } = range;
    const read: number[] = [];
    function* changes(): Iterable<RecordedChange> {
      for (const change of within(range)) {
        read.push(change.seq);
        yield change;
      }
    }
    const taken = takeLines(singleLines(changes(), form), form.most, limit);
    const events = taken.length;
    const [first, last] = [read[0], read[events - 1]];
    if (first === undefined || last === undefined) return { lines: null, to: upTo };
    const isAll = asOf !== null && events === read.length && events < limit;
    return textsOf({ bytes: Buffer.concat(taken), events, first, last }, start, isAll ? upTo : last);
  }

  /** The same with the texts that SQLite makes; null if a body has line breaks. */
  function madeLines(range: LineRange, head: LineHead, start: string, form: Form): Texts | null {
    const { most, source } = form;
    const made = store.lines.make(range, head, {
      start: `{"specversion":"1.0","id":"${start}`,
      middle: `","source":${JSON.stringify(source)},"type":"catchword.product.created","subject":`,
      time: timeText(head.at),
    });
    if (made === null) return { lines: null, to: range.upTo };
    const { events, first, last, unmade } = made;
    let { bytes } = made;
    if (bytes.includes(CARRIAGE_RETURN) || countLines(bytes) !== events) return null;
    if (unmade.length > 0 || bytes.length > most) {
      const taken = takeLines(filled(bytes, singleLines(numbered(unmade), form)), most, events);
      if (taken.length < events) return madeLines({ ...range, limit: taken.length }, head, start, form);
      bytes = Buffer.concat(taken);
    }
    const to = range.asOf === null || events === range.limit ? last : range.upTo;
    return textsOf({ bytes, events, first, last }, start, to);
  }

  /** Up to the end of an era. */
  return (range: LineRange, form: Form): Texts => {
    const head = store.lines.head(range.after);
    if (head === undefined) return { lines: null, to: range.after };
    const upTo = Math.min(range.upTo, (head.nextEra ?? Number.POSITIVE_INFINITY) - 1);
    const span = { ...range, upTo };
    const start = idStart(form.incarnation, head.era);
    return (isPlain ? null : madeLines(span, head, start, form)) ?? plainLines(span, start, form);
  };
}
