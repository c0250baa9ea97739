import { CatchwordError } from '@catchword/base/errors';
import type { Mark, Opened } from '@catchword/sink-kit/sink';
import { feederOf } from '@catchword/sink-kit/stored-mark';
import { isFill, legOf, mayReplace, startOf } from '../store/rows/sink-legs.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { RelayWriter } from '../store/schema/writers.ts';
import { apartText } from './kinds/kinds.ts';
import { hasWhole } from './store-contents.ts';

/*
 * Where a sink is: a leg, and the cursor on it. Each restart of delivery begins a leg, which has the next generation.
 *
 *   leg           what it delivers                                   begins when                       at its end
 *   first         each living product's newest change up to `to`     a new or an emptied store         then every change;
 *   newest        the same, with removals if the store cannot list   a store with something unknown    `endFill` removes
 *   replacement   the same, also over another mirror's products      a replay of everything, restore
 *   difference    the products that differ from what the leg         a changed view, approve --newest, then every change
 *                 before made of the store up to its change `from`   if that leg was finished
 *   changes       every change after `from`                          a replay from a change; another   -
 *                                                                    sink's place was taken
 *
 * The mirror believes in (generation, cursor); the store says its own when it is opened, and wins:
 *
 *   the store says nothing              continue where the mirror is; the store may have got the last batch
 *   this leg, ahead or behind           continue where the store is; what was pruned meanwhile is a gap
 *   an earlier leg: a fill              begin it
 *                   changes             the same, from where the store is if that is before; unless it lacks products of a view
 *                   difference          begin it if the store was where the mirror believed, or ahead; else a fill
 *   nothing, and it had something       a fill; also if it is at the start of a difference
 *   another sink of this mirror         continue there if both have every product whole, else a fill
 *   another mirror, or a lost future    stop (SINK_CONFLICT), unless the leg is a replacement
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
  const { sinks, changes } = store;
  const { id, generation, cursor } = sink;
  const leg = legOf(sink);
  if (mark === null) {
    // After a crash, the store may have got what it has not confirmed.
    if (leg.what === 'difference' && cursor === 0) sinks.setLeg(sink, { to: changes.lastSeq() });
    sinks.setPosition(id, generation, cursor);
    return;
  }
  requireNoOtherSink(store, sink, mark);
  if (!isOfThisHistory(store, mark)) {
    requireOwnMark(store, sink, mark);
    // A store whose ids must grow has them start with the generation.
    const next = Math.max(generation, mark.generation + 1);
    sinks.setLeg(sink, { generation: next });
    sinks.setPosition(id, next, cursor);
  } else if ((feederOf(mark).sink ?? id) !== id) takePlace(store, sink, mark);
  else if (mark.generation < leg.generation) begin(store, sink, mark, nowMs);
  else if (mark.refill !== undefined && cursor > 0) sinks.refill(sink, mark.generation, 'first');
  else if (hasLostPlace(sink, mark)) sinks.refill(sink, mark.generation);
  else {
    placeFreed(store, sink, mark);
    recordGap(store, sink, mark.cursor, nowMs);
    sinks.setPosition(id, Math.max(generation, mark.generation), mark.cursor);
  }
}

/**
 * Whether a store to which something was delivered says that it is at the start of a difference: it has lost its mark, and maybe
 * what the leg before has made of it. With its first batch, a store takes a cursor above 0, and before that it has the mark of
 * that leg. A store that never got anything, because its view showed nothing, may have no mark, and lacks nothing.
 */
export function hasLostPlace(sink: SinkRow, mark: Mark): boolean {
  const { what, generation } = legOf(sink);
  return what === 'difference' && mark.generation === generation && mark.cursor === 0 && sink.delivered > 0;
}

/** Begins a leg of which the store has nothing yet, or nothing more. */
function begin(store: RelayWriter, sink: SinkRow, mark: Mark, nowMs: number): void {
  const { sinks } = store;
  const { id, generation } = sink;
  const leg = legOf(sink);
  const before = sink.legs.at(-2) ?? leg;
  // A view hides changes that make no difference, also of products that the store has not got yet.
  const isInside = before.tag !== null && mark.cursor < before.to;
  if (isFill(leg)) sinks.setPosition(id, generation, 0);
  else if (leg.what === 'changes' && mark.generation >= before.generation && !isInside) {
    recordGap(store, sink, mark.cursor, nowMs);
    sinks.setPosition(id, generation, Math.min(leg.from, mark.cursor));
  } else if (leg.what === 'difference' && mark.generation >= before.generation && mark.cursor >= leg.from) {
    sinks.setLeg(sink, { from: mark.cursor, to: Math.max(leg.to, mark.cursor) });
    sinks.setPosition(id, generation, startOf(sink) === 0 ? 0 : mark.cursor);
  } else sinks.refill(sink, mark.generation);
}

/** Goes on in a store that another sink of this mirror has fed, if both give it every product whole; else fills it. */
function takePlace({ sinks }: RelayWriter, sink: SinkRow, mark: Mark): void {
  const { id, cursor, generation } = sink;
  const leg = legOf(sink);
  const isPlaceTaken = leg.what === 'changes' && leg.generation <= mark.generation;
  const isOrdered = leg.what !== 'first' && !isPlaceTaken;
  if (isOrdered || mark.cursor === 0 || feederOf(mark).isPart || !hasWhole(sink, cursor)) {
    const isUnseen = isFill(leg) && leg.generation > mark.generation;
    if (isUnseen) sinks.setPosition(id, generation, 0);
    else sinks.refill(sink, mark.generation);
  } else sinks.beginChanges({ ...sink, legs: [] }, mark.cursor, Math.max(generation, mark.generation));
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
  if (
    mirror !== null &&
    (isOfThisHistory(mirror, mark) || mayReplace(mirror.sinks.get(name) ?? { legs: [], cursor: 0 }))
  )
    return;
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

/** Records the superseded changes that a sink with lost events cannot get again, because they were pruned. */
function recordGap(store: RelayWriter, sink: SinkRow, cursor: number, nowMs: number): void {
  const upTo = Math.min(store.changes.prunedTo(), sink.cursor);
  if (cursor > 0 && cursor < upTo) store.sinks.addGap({ id: sink.id, after: cursor, upTo, at: nowMs });
}
