import { isUtf8 } from 'node:buffer';
import {
  CLOSE_BRACKET,
  COMMA,
  endOfObject,
  membersParsed,
  membersWritten,
  OPEN_BRACE,
  parsed,
  scanPage,
  skipSpace,
} from './cut-page.ts';
import { type Fields, isWithdrawn } from './field-values.ts';
import type { FetchTask, Page, Window } from './page-types.ts';
import { checkItem, envelopeOf, MAX_DEPTH } from './validate-page.ts';

/** Living products of a mirror, in the order of their ids. */
export interface Neighbours {
  readonly ids: readonly number[];
  /** Of the text of each product, bytes. */
  readonly lengths: readonly number[];
  /** Joined by commas. */
  readonly texts: Uint8Array;
  /** Ids of products that the source has withdrawn. */
  readonly withdrawn: readonly number[];
}

/** A mirror, as of one moment. */
export interface KnownProducts {
  /** The newest change. */
  readonly seq: number;
  /** The living products after an id, at most `limit` of them. */
  after(id: number, limit: number): Neighbours;
  /** The id of the living product that has exactly this text; negative for another text or a tombstone; 0 if unknown. */
  find(vbid: string, body: Uint8Array): number;
}

const ITEMS = /"items"\s*:\s*\[\s*/;
/** The beginning of a page in which the items must begin. Bytes. */
const HEAD = 4096;
/** Items that are looked up by their keys, and their share of the items before: a page with more of them is parsed. */
const FEW = 16;
const SHARE = 1 / 8;
const NONE: Neighbours = { ids: [], lengths: [], texts: new Uint8Array(), withdrawn: [] };

function equal(bytes: Buffer, start: number, texts: Uint8Array, from: number, length: number): boolean {
  return start + length <= bytes.length && bytes.compare(texts, from, from + length, start, start + length) === 0;
}

/** The products that probably follow in the list. */
function createRun(mirror: KnownProducts, perPage: number) {
  let { ids, lengths, texts }: Neighbours = NONE;
  /** The next of them, and where its text begins. */
  const at = { next: 0, from: 0 };
  /** Products that followed each other since neighbours were read: about as many will follow the next one. */
  let followed = perPage;
  const withdrawn = new Set<number>();
  /** Whether all that are left may be compared at once: that fails once for each product that differs. */
  let mayBeEqual = false;
  /** Products from the next one on that are known to be equal. */
  let equals = 0;

  function step(): void {
    at.from += (lengths[at.next] ?? 0) + 1;
    at.next++;
  }

  function isEqual(bytes: Buffer, start: number, length: number): boolean {
    if (mayBeEqual && equal(bytes, start, texts, at.from, texts.length - at.from)) equals = ids.length - at.next;
    mayBeEqual = false;
    return equals > 0 ? equals-- > 0 : equal(bytes, start, texts, at.from, length);
  }

  return {
    /** The id and the length of the next product if its text begins at `start`, then steps on. */
    take: (bytes: Buffer, start: number): readonly [id: number, length: number] | null => {
      const length = lengths[at.next] ?? 0;
      if (length === 0 || !isEqual(bytes, start, length)) return null;
      const id = ids[at.next] ?? 0;
      step();
      followed++;
      return [id, length];
    },
    /** Continues after a product. @param read whether to read its neighbours, if they were not read */
    moveAfter: (id: number, read: boolean, limit: number): void => {
      const known = ids.indexOf(id, at.next);
      if (known < 0 && !read) return;
      mayBeEqual = true;
      while (at.next <= known) step();
      if (known >= 0) return;
      const found = mirror.after(id, Math.min(limit, FEW + 2 * followed));
      followed = 0;
      ({ ids, lengths, texts } = found);
      for (const one of found.withdrawn) withdrawn.add(one);
      at.next = 0;
      at.from = 0;
    },
    isWithdrawn: (id: number) => withdrawn.has(id),
  };
}

/** Whether the mirror probably has most products of the page, in the order of the list. */
export function isProbablyKnown({ vbid, from, filling }: FetchTask): boolean {
  return vbid === undefined && from === null && filling !== true;
}

/**
 * Validates a page of products that the mirror probably has, in the order in which it first saw them, and compares it with
 * the mirror. A product whose bytes equal the mirror's is not parsed: it was validated when it was stored.
 * @returns null if the page is not of this kind, or anything is wrong with it: then `validatePage` says what
 * @throws CatchwordError PAGE_INVALID as `validatePage`
 */
export function unchangedPage(source: Uint8Array<ArrayBuffer>, window: Window, mirror: KnownProducts): Page | null {
  const bytes = Buffer.from(source.buffer, source.byteOffset, source.length);
  const head = ITEMS.exec(bytes.toString('latin1', 0, HEAD));
  if (head === null) return null;
  const first = head.index + head[0].length;
  const run = createRun(mirror, window.perPage);
  const ids: number[] = [];
  const spans: number[] = [];
  const withdrawn: number[] = [];
  let odd = 0;
  let previous = 0;

  /** Compares an item by its key. @returns its id as `find`; null if it is not valid */
  function lookUp(start: number, end: number): number | null {
    const body = bytes.subarray(start, end);
    const fields = parsed(body);
    const checked = checkItem(fields, () => body.toString('utf8'));
    if (typeof checked === 'string' || !isUtf8(body) || scanPage(body, MAX_DEPTH - 2) === null) return null;
    // `validatePage` rewrites it.
    if (membersWritten(body) !== membersParsed(fields)) return null;
    if (isWithdrawn(fields as Fields)) withdrawn.push(ids.length);
    return mirror.find(checked.vbid, body);
  }

  let at = first;
  for (;;) {
    const taken = run.take(bytes, at);
    let end = at;
    if (taken !== null) {
      const [id, length] = taken;
      if (run.isWithdrawn(id)) withdrawn.push(ids.length);
      ids.push(id);
      previous = id;
      end += length;
    } else {
      if (bytes[at] !== OPEN_BRACE || odd > FEW + ids.length * SHARE) return null;
      odd++;
      end = endOfObject(bytes, at);
      const found = lookUp(at, end);
      if (found === null) return null;
      ids.push(found);
      const id = Math.abs(found);
      // A product that has moved stands alone: its neighbours are read when a second one follows it.
      if (id > 0) run.moveAfter(id, id === previous + 1 || previous === 0, window.perPage - ids.length);
      if (id > 0) previous = id;
    }
    spans.push(at, end - at);
    at = skipSpace(bytes, end);
    if (bytes[at] === CLOSE_BRACKET) break;
    if (bytes[at] !== COMMA) return null;
    at = skipSpace(bytes, at + 1);
  }

  // The envelope, with 0 instead of the items.
  const rest = Uint8Array.from(Buffer.concat([bytes.subarray(0, first), Buffer.from('0'), bytes.subarray(at)]));
  if (scanPage(rest, MAX_DEPTH)?.spans.join() !== `${first},1`) return null;
  const { envelope, doubt } = envelopeOf(rest, window, ids.length);
  const about = { rows: '', isComplete: false, used: [], hasWords: false, withdrawn };
  const items = { count: ids.length, bytes: source, spans: Uint32Array.from(spans), ...about };
  return { envelope, items, rejected: [], doubt, matched: { seq: mirror.seq, ids: new Int32Array(ids) } };
}
