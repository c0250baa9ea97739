import { CatchwordError } from '@catchword/base/errors';
import { revertMembers } from '@catchword/catalog/content';
import type { RecordedChange } from '@catchword/catalog/event';
import { type Fields, named, storedOf } from '@catchword/catalog/field-values';
import { objectMembers, objectText } from '@catchword/catalog/json-text';
import type { ChangeFilter, RunKind } from '@catchword/catalog/run-types';
import type { ChangeRow, HeadedChange } from '../rows/changes.ts';
import type { ProductRow } from '../rows/product-rows.ts';
import type { Reader } from '../schema/reader.ts';
import { changesBack, createBodyHistory } from './body-history.ts';
import { createEventTexts, type Span } from './event-texts.ts';
import type { LineRange } from './made-lines.ts';

/**
 * The changes of a product up to its `changedSeq`, newest first, each with the texts of the members right after it (of a
 * removal: before it), valid until the next one is taken. Costs what is walked: there may be any number of changes.
 */
function* membersBack(
  store: Reader,
  { id, body, changedSeq }: ProductRow,
): Iterable<readonly [ChangeRow, ReadonlyMap<string, string>]> {
  const members = objectMembers(body);
  for (const change of changesBack(store, id, changedSeq)) {
    yield [change, members];
    if (change.before !== null) revertMembers(members, { before: change.before, added: change.added });
  }
}

/** How many changes are read at once that may be of any length. */
const FEW = 25;
/** Changes per step of `changesUpTo`, which takes a few milliseconds. It searches up to 20,000 records for them. */
const STEP = 100;

export type History = ReturnType<typeof createHistory>;

/** Reads the change log together with the products as they were. */
export function createHistory(store: Reader) {
  const kinds = new Map<number, RunKind>();
  const bodyAfter = createBodyHistory(store);

  function causeOf(runId: number): RunKind {
    const known = kinds.get(runId) ?? store.runs.get(runId)?.kind ?? 'full';
    kinds.set(runId, known);
    return known;
  }

  /** @param body the text right after the change; of a removal, the text before it */
  function recorded(change: ChangeRow, body: string, headSeq: number | undefined): RecordedChange {
    const { seq, era, at, op, vbid, runId, added } = change;
    const isRemoval = op === 'removed';
    // The tombstone holds the last known product; once the product is restored, the record holds it.
    const before = isRemoval && seq === headSeq ? body : change.before;
    return { seq, era, at, op, vbid, runId, cause: causeOf(runId), before, added, body: isRemoval ? null : body };
  }

  function headed(change: HeadedChange): RecordedChange {
    return recorded(change, change.op === 'removed' ? change.headBody : bodyAfter(change), change.headSeq);
  }

  function* within({ after, upTo, asOf, withRemoved }: Span): Iterable<RecordedChange> {
    for (let at = after; at < upTo; ) {
      const found = asOf === null ? store.changes.after(at, FEW) : store.changes.newest(at, upTo, asOf, FEW);
      const wanted = found.filter(({ seq, op }) => seq <= upTo && (asOf === null || withRemoved || op !== 'removed'));
      yield* wanted.map(headed);
      at = found.at(-1)?.seq ?? upTo;
    }
  }

  function* numbered(seqs: readonly number[]): Iterable<RecordedChange> {
    for (let at = 0; at < seqs.length; at += FEW) {
      yield* store.changes.numbered(seqs.slice(at, at + FEW)).map(headed);
    }
  }

  const lines = createEventTexts(store, within, numbered);

  return {
    /** Changes after `seq`, oldest first, at most `limit`. */
    after: (seq: number, limit: number): RecordedChange[] =>
      store.read(() => store.changes.after(seq, limit).map(headed)),
    /** Of the changes after `seq`, oldest first, at most `limit` that match; and how far the log was searched. */
    matching: (seq: number, limit: number, filter: ChangeFilter) =>
      store.read(() => {
        const { changes, to } = store.changes.matching(seq, limit, filter);
        return { changes: changes.map(headed), to };
      }),
    /**
     * Of the changes after `seq` up to `toSeq`, oldest first, at most `limit`: those that are their product's newest as
     * of `asOf`. All of them up to `asOf` together are the mirror as it was then.
     * @returns them, and how far the log was searched
     */
    newest: (seq: number, toSeq: number, asOf: number, limit: number): { changes: RecordedChange[]; to: number } =>
      store.read(() => {
        const found = store.changes.newest(seq, toSeq, asOf, limit);
        return { changes: found.map(headed), to: found.length === limit ? (found.at(-1)?.seq ?? toSeq) : toSeq };
      }),
    /** The same as texts of events, together of at most `most` bytes or one event; and how far the log was searched. */
    lines: (range: LineRange, most: number, incarnation: string, source: string) =>
      store.read(() => lines(range, { most, incarnation, source })),
    /** The changes whose texts `lines` returns, all of them up to `upTo`. */
    within: (span: Span): RecordedChange[] => store.read(() => [...within(span)]),
    /** A product's newest change as of `seq`, which the log must not be pruned beyond; null if the product was not there. */
    asOf: (vbid: string, seq: number): (RecordedChange & { readonly body: string }) | null =>
      store.read(() => {
        const product = store.products.get(vbid);
        const [change] = product === undefined ? [] : store.changes.ofProduct(product.id, seq + 1, 1);
        if (product === undefined || change === undefined || change.op === 'removed') return null;
        const body = bodyAfter({ ...change, headSeq: product.changedSeq, headBody: product.body });
        return { ...recorded(change, body, product.changedSeq), body };
      }),
    /** The changes of a product that the log still holds, newest first. */
    of: (vbid: string): RecordedChange[] =>
      store.read(() => {
        const product = store.products.get(vbid);
        if (product === undefined) return [];
        return Array.from(membersBack(store, product), ([change, members]) =>
          recorded(change, change.seq === product.changedSeq ? product.body : objectText(members), product.changedSeq),
        );
      }),
  };
}

/** The texts of a field of JSON before and after a change; null if the product did not have it. */
export interface FieldChange {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** A change of a product. The fields are those that changed: none for a creation or a removal. */
export interface ProductChange extends Pick<ChangeRow, 'seq' | 'at' | 'op' | 'runId'> {
  readonly fields: readonly FieldChange[];
}

function fieldsOf({ op, before, added }: ChangeRow, after: ReadonlyMap<string, string>): FieldChange[] {
  if (op === 'removed' || before === null) return [];
  const was = objectMembers(before);
  return [...was.keys(), ...added].map((field) => ({
    field,
    before: was.get(field) ?? null,
    after: after.get(field) ?? null,
  }));
}

/**
 * The changes of a product before `beforeSeq` that the log holds, newest first, at most `limit`; and whether there are older.
 * @param row the product as it is now, or as it was, which costs less for changes before then
 */
export function productChanges(
  store: Reader,
  row: ProductRow,
  beforeSeq: number,
  limit: number,
): { readonly changes: readonly ProductChange[]; readonly hasOlder: boolean } {
  const changes: ProductChange[] = [];
  for (const [change, members] of membersBack(store, row)) {
    const { seq, at, op, runId } = change;
    if (changes.length === limit) return { changes, hasOlder: true };
    if (seq < beforeSeq) changes.push({ seq, at, op, runId, fields: fieldsOf(change, members) });
  }
  return { changes, hasOlder: false };
}

/** The error for what the log no longer holds. @param asOf a change or a time, for people */
export function pruned({ changes }: Reader, what: string, asOf: string): CatchwordError {
  const hint = `Changes up to ${changes.prunedTo()} were pruned (CATCHWORD_LOG_RETENTION); use a later change.`;
  return new CatchwordError('NOT_FOUND', `the change log no longer holds ${what} as of ${asOf}`, { hint });
}

/** @throws CatchwordError NOT_FOUND if the log no longer holds the whole mirror as of a change */
export function requireKept(store: Reader, seq: number): void {
  if (store.changes.prunedTo() > seq) throw pruned(store, 'the mirror', `change ${seq}`);
}

/**
 * The product as it was right after a change. @throws CatchwordError USAGE if `at` is beyond the newest change; NOT_FOUND if
 * the product did not exist yet, or the log no longer reaches back so far
 */
export function productAsOf(store: Reader, row: ProductRow, at: number): ProductRow {
  const hint = `List the changes of this product with: npx catchword product ${row.vbid} --history.`;
  requireKnownSeq('--at', at, store.changes.lastSeq(), hint);
  let oldest: ChangeRow | undefined;
  for (const [change, members] of membersBack(store, row)) {
    oldest = change;
    if (change.seq > at) continue;
    const { seq: changedSeq, at: changedAt, op } = change;
    const body = changedSeq === row.changedSeq ? row.body : objectText(members);
    const columns = named(storedOf(JSON.parse(body) as Fields));
    return { ...row, ...columns, body, changedSeq, changedAt, removedAt: op === 'removed' ? changedAt : null };
  }
  if (oldest?.prevSeq != null) throw pruned(store, row.vbid, `change ${at}`);
  const created = `It was created with change ${oldest?.seq}.`;
  throw new CatchwordError('NOT_FOUND', `${row.vbid} did not exist at change ${at}`, { hint: created });
}

/**
 * The changes after `after` up to `seq`, oldest first; without `after`, each product's newest one as of `seq`: together the
 * mirror as it was then, whatever changes meanwhile. Each step is a transaction of its own, because a long one would keep
 * the WAL from being reused.
 * @throws CatchwordError NOT_FOUND if the log was pruned beyond `seq`, also meanwhile: until then all of them are there
 */
export function* changesUpTo(store: Reader, seq: number, after?: number): Generator<readonly RecordedChange[]> {
  const history = createHistory(store);
  for (let at = after ?? 0; at < seq; ) {
    const { changes, to } = store.read(() => {
      requireKept(store, seq);
      if (after === undefined) return history.newest(at, Math.min(at + 20_000, seq), seq, STEP);
      const next = history.after(at, STEP).filter((change) => change.seq <= seq);
      return { changes: next, to: next.at(-1)?.seq ?? seq };
    });
    yield changes;
    at = to;
  }
}

const OTHER_LOG = 'It belongs to another mirror, or to this one before a backup was restored. Read again from 0.';

/**
 * Checks that the log has reached `seq`: a reader that waits beyond its end would miss what comes before.
 * @param name the parameter to name in the error @returns `seq` @throws CatchwordError USAGE
 */
export function requireKnownSeq(name: string, seq: number, lastSeq: number, hint = OTHER_LOG): number {
  if (seq <= lastSeq) return seq;
  throw new CatchwordError('USAGE', `${name}: ${seq} is beyond the newest change, which is ${lastSeq}`, { hint });
}
