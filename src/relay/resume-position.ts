import { CatchwordError } from '../base/errors.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { RelayWriter } from '../store/schema/writers.ts';
import { apartText } from './kinds/kinds.ts';
import type { Mark, Opened } from './sink.ts';
import { hasWhole, knowsBefore, viewAt } from './store-contents.ts';
import { feederOf } from './stored-mark.ts';

/*
 * Where a sink is: a leg, and the cursor on it. Each restart of delivery begins a leg, which has the next generation.
 *
 *   leg          what it delivers                                     begins when                        at its end
 *   fill         each product's newest change up to `backfillTo`      a new or emptied store, a replay   then every change;
 *                                                                     of everything, a taken-over store  `endFill` removes
 *   transition   what differs from the leg before, up to              a changed view, approve --newest   then every change
 *                `backfillTo` (store-contents.ts)
 *   every one    each change after the cursor                         a replay from a change             -
 *
 * The mirror believes in (generation, cursor); the store says its own when it is opened, and wins:
 *
 *   the store says nothing             continue where the mirror is; the store may have got the last batch
 *   same leg, ahead or behind          continue where the store is; what was pruned meanwhile is a gap
 *   an earlier leg                     the restart did not reach it: begin it there, or a fill if what it has is not known
 *   nothing, and it had something      a fill (`refill`)
 *   another sink of this mirror        continue there if both have every product whole, else a fill
 *   another mirror, or a lost future   stop (SINK_CONFLICT), unless an operator has let it take the store over: a fill
 *
 * A fill has not ended until `fillEnd` says at which cursor it did. A store that is set back to then or before ends it again.
 */

/**
 * Decides where delivery continues, from the mirror's row of a sink and the mark that the sink returned, and writes it to
 * the row. The mark wins: after a crash the sink may have more than the mirror wrote down, and after a loss of its own it
 * has less.
 *
 * Call inside a write transaction.
 *
 * @param mark null if the sink does not store one
 * @throws CatchwordError SINK_CONFLICT if another sink feeds the store, or another history did, whose numbers mean other
 *   changes
 */
export function resume(store: RelayWriter, sink: SinkRow, mark: Opened | null, nowMs: number): void {
  const { generation, cursor } = sink;
  if (mark !== null) requireNoOtherSink(store, sink, mark);
  if (mark === null) {
    const view = viewAt(store.sinks.views(sink.id), generation);
    const isTransition = view?.generation === generation && view.fromGeneration !== null && !knowsBefore(view, sink);
    const isBegun = isTransition && cursor === sink.beganCursor;
    // After a crash, the store may have got what it has not confirmed.
    if (isBegun && (cursor < view.fromCursor || cursor === 0)) store.sinks.placeTransition(sink.id, generation, null);
    continueAt(store, sink, generation, cursor);
  } else if (!isOfThisHistory(store, mark)) {
    requireOwnMark(store, sink, mark);
    const view = viewAt(store.sinks.views(sink.id), generation);
    const isBehind = mark.cursor < (view?.fromCursor ?? 0) || mark.generation < (view?.fromGeneration ?? 0);
    // The store was set back, too: it may have what left its view before the mirror was backed up.
    if (view !== undefined && knowsBefore(view, sink) && isBehind) store.sinks.forgetTransition(sink.id);
    // A store whose ids must grow has them start with the generation.
    const next = Math.max(generation, mark.generation + 1);
    continueAt(store, sink, next, cursor, next);
  } else if (isUnlike(store, sink, mark)) {
    store.sinks.refill(sink.id, true);
    const next = Math.max(generation, mark.generation + 1);
    continueAt(store, sink, next, 0, next);
  } else if (!sink.opened && sink.beganGeneration > 1) {
    // The restart was ordered before the mirror knew the sink's generation.
    if (mark.cursor > 0) store.sinks.fillRemoved(sink.id);
    const next = Math.max(generation, mark.generation + 1);
    continueAt(store, sink, next, Math.min(sink.beganCursor, mark.cursor), next);
  } else if (mark.generation < sink.beganGeneration) {
    // The sink has not seen the restart, or has lost what it got since.
    if (!knowsView(store, sink, mark)) store.sinks.refill(sink.id, true);
    else continueAt(store, sink, generation, Math.min(sink.beganCursor, mark.cursor));
  } else if (mark.refill !== undefined && cursor > 0) store.sinks.refill(sink.id);
  else {
    placeFreed(store, sink, mark);
    recordGap(store, sink, mark.cursor, nowMs);
    continueAt(store, sink, Math.max(generation, mark.generation), mark.cursor);
  }
}

/**
 * Whether it is known what a store has that is as before a restart: the view of before, or the one that the restart brings to
 * the present one. Notes how far the store is.
 */
function knowsView({ sinks }: RelayWriter, sink: SinkRow, mark: Mark): boolean {
  const views = sinks.views(sink.id);
  const view = viewAt(views, sink.generation);
  const isOfRestart = view?.generation === sink.beganGeneration;
  if (isOfRestart && view.fromGeneration !== null) {
    // Restarts that the store has not seen, such as a view that was put back while it was down, changed nothing there.
    for (let from: number | null | undefined = view.fromGeneration; mark.generation < from; ) {
      from = views.find(({ generation }) => generation === from)?.fromGeneration;
      if (from == null) return false;
      sinks.skipTransition(sink.id, view.generation);
    }
    sinks.placeTransition(sink.id, view.generation, mark.cursor);
    return true;
  }
  const isWholeFill = sink.beganCursor === 0 && sink.backfillTo > 0;
  // Before the end of its fill, the store may have a part of the products as of an earlier view.
  const isFilled = view === undefined || mark.cursor >= view.toCursor;
  return isWholeFill || (isFilled && viewAt(views, mark.generation)?.generation === view?.generation);
}

/** Whether another sink has fed the store, and it or this one has a view: then the store does not have what this one expects. */
function isUnlike({ sinks }: Reader, row: SinkRow, mark: Mark): boolean {
  const { sink = row.id, isPart } = feederOf(mark);
  return sink !== row.id && (isPart || !hasWhole(sinks.views(row.id), row.generation, row.cursor));
}

type Fed = Pick<SinkRow, 'name' | 'kind' | 'address'>;

/**
 * A sink has left its store to the next one if its setting is gone, or names another store: that one has a row of its own.
 * @param isFed whether the settings let the sink of a row feed the store of this row
 * @throws CatchwordError SINK_CONFLICT if another sink of this mirror feeds the store
 */
function requireNoOtherSink(
  mirror: Reader,
  { name, kind, address }: Fed,
  mark: Mark,
  isFed = ({ configured }: SinkRow): boolean => configured,
): void {
  const { mirror: fedBy, sink } = feederOf(mark);
  const other = mirror.sinks.list().find(({ id }) => id === sink && fedBy === mirror.incarnation);
  if (other === undefined || other.name === name || !isFed(other)) return;
  const hint = `Let ${name} have ${apartText(kind)}, or remove the setting of ${other.name}. Do not replay ${name}: that would remove what ${other.name} has delivered.`;
  throw new CatchwordError('SINK_CONFLICT', `${address}: the sink ${other.name} writes here`, { hint });
}

/**
 * @param mirror null if there is none yet
 * @param isFed see `requireNoOtherSink`; without it, the mirror's note of what is configured counts
 * @throws CatchwordError SINK_CONFLICT if another sink feeds the store, or another history did and may not be replaced
 */
export function requireOwnMark(mirror: Reader | null, sink: Fed, mark: Mark, isFed?: (row: SinkRow) => boolean): void {
  const { name, kind, address } = sink;
  if (mirror !== null) requireNoOtherSink(mirror, sink, mark, isFed);
  if (mirror !== null && (isOfThisHistory(mirror, mark) || mirror.sinks.get(name)?.takeOver === true)) return;
  const isOther = feederOf(mark).mirror !== mirror?.incarnation;
  const whose = isOther ? 'another mirror' : 'a later state of this mirror (was it restored from a backup?)';
  const other = apartText(kind);
  throw new CatchwordError('SINK_CONFLICT', `${address} was fed by ${whose}${isOther ? `: use ${other}` : ''}`, {
    hint: `To replace its contents: npx catchword sink replay ${name}, then: npx catchword sink resume ${name}.`,
  });
}

/** Whether the mark belongs to this log: not to another mirror, nor to changes that were lost when a backup was restored. */
export function isOfThisHistory({ changes, incarnation }: Reader, mark: Mark): boolean {
  if (feederOf(mark).mirror !== incarnation || mark.cursor > changes.lastSeq()) return false;
  const recordedAt = mark.at === 0 ? null : changes.timeOf(mark.cursor);
  return recordedAt === null || recordedAt === mark.at;
}

/** Marks freed events that the sink has as delivered, and freed events that it lost as ready. */
function placeFreed({ sinks }: RelayWriter, { id, cursor }: SinkRow, mark: Mark): void {
  const { generation, late } = mark;
  const seqsOf = (rows: readonly { readonly seq: number }[]): number[] => rows.map(({ seq }) => seq);
  const lost = sinks
    .freed(id, 'delivered')
    .filter(({ seq, freed }) => freed > generation || (freed === generation && late > 0 && seq > late));
  sinks.setFreed(id, seqsOf(lost), 'ready');
  if (late === 0 || mark.cursor !== cursor) return;
  const arrived = sinks.freed(id, 'ready').filter(({ seq, freed }) => seq <= late && freed <= generation);
  sinks.setFreed(id, seqsOf(arrived), 'delivered');
}

function continueAt(store: RelayWriter, sink: SinkRow, generation: number, cursor: number, began = 0): void {
  // The store was fed under another name or address: from its cursor on, it needs every change.
  const wasFed = !sink.opened && cursor > sink.cursor;
  store.sinks.setPosition(sink.id, generation, cursor, { filledTo: wasFed ? cursor : Number.MAX_SAFE_INTEGER, began });
}

/** Records the superseded changes that a sink with lost events cannot get again, because they were pruned. */
function recordGap(store: RelayWriter, sink: SinkRow, cursor: number, nowMs: number): void {
  const upTo = Math.min(store.changes.prunedTo(), sink.cursor);
  if (cursor > 0 && cursor < upTo) store.sinks.addGap({ id: sink.id, after: cursor, upTo, at: nowMs });
}
