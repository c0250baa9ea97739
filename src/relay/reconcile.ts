import { CatchwordError } from '../errors.ts';
import type { Reader } from '../store/reader.ts';
import type { SinkRow } from '../store/sinks.ts';
import type { RelayWriter } from '../store/writers.ts';
import type { Mark, Opened } from './sink.ts';

export interface Reconciled {
  readonly generation: number;
  readonly cursor: number;
}

/**
 * Brings together how far the mirror believes that a sink is, and how far the sink says that it is. The sink is right:
 * after a crash it may have more than was noted, after a loss of its own it has less.
 *
 * Inside a write transaction.
 *
 * @param mark what the sink told; null where it does not know
 * @throws CatchwordError SINK_CONFLICT where the sink was fed from another history: numbers there mean other changes
 */
export function reconcile(store: RelayWriter, sink: SinkRow, mark: Opened | null, nowMs: number): Reconciled {
  const { generation, cursor } = sink;
  if (mark === null) return adopt(store, sink, generation, cursor);
  if (!isOfThisHistory(store, mark)) {
    if (!sink.takeOver) {
      const elsewhere = mark.incarnation !== store.incarnation;
      const whose = elsewhere ? 'another mirror' : 'a later state of this mirror (it was restored from a backup?)';
      throw new CatchwordError('SINK_CONFLICT', `${sink.address} was fed by ${whose}`, {
        hint: `To replace what is there: npx catchword sink replay ${sink.name}, then: npx catchword sink resume ${sink.name}.`,
      });
    }
    // Where numbers must grow, they do so by their generation.
    const next = Math.max(generation, mark.generation + 1);
    return adopt(store, sink, next, cursor, next);
  }
  // To begin anew was ordered before anybody knew in which generation the sink is.
  if (!sink.opened && sink.beganGeneration > 1) {
    const next = Math.max(generation, mark.generation + 1);
    return adopt(store, sink, next, Math.min(sink.beganCursor, mark.cursor), next);
  }
  // Delivery was to begin anew. It has not, or the sink has lost that it did.
  if (mark.generation < sink.beganGeneration) {
    return adopt(store, sink, generation, Math.min(sink.beganCursor, mark.cursor));
  }
  if (mark.refill !== undefined && cursor > 0) {
    store.sinks.refill(sink.id);
    return { generation, cursor: 0 };
  }
  reconcileFreed(store, sink, mark);
  noteGap(store, sink, mark.cursor, nowMs);
  return adopt(store, sink, Math.max(generation, mark.generation), mark.cursor);
}

/** Another mirror's changes are not; one that was restored from a backup has fewer, or others under the same numbers. */
export function isOfThisHistory({ changes, incarnation }: Reader, mark: Mark): boolean {
  if (mark.incarnation !== incarnation || mark.cursor > changes.lastSeq()) return false;
  const recordedAt = mark.at === 0 ? undefined : changes.timeOf(mark.cursor);
  return recordedAt === undefined || recordedAt === mark.at;
}

/** Of what was set free, what the sink has by its own word is delivered; what it has lost since is ready again. */
function reconcileFreed({ sinks }: RelayWriter, { id, cursor }: SinkRow, mark: Mark): void {
  const { generation, late } = mark;
  const seqsOf = (rows: readonly { readonly seq: number }[]): number[] => rows.map(({ seq }) => seq);
  const lost = sinks
    .freed(id, 'delivered')
    .filter(({ seq, freed }) => freed > generation || (freed === generation && late > 0 && seq > late));
  sinks.setFreed(id, seqsOf(lost), 'ready');
  if (late === 0 || mark.cursor !== cursor) return;
  const has = sinks.freed(id, 'ready').filter(({ seq, freed }) => seq <= late && freed <= generation);
  sinks.setFreed(id, seqsOf(has), 'delivered');
}

function adopt(store: RelayWriter, sink: SinkRow, generation: number, cursor: number, began?: number): Reconciled {
  // Fed under another name or address before: from there on it misses removals and updates, not only products.
  const wasFed = !sink.opened && cursor > sink.cursor;
  store.sinks.reconcile(sink.id, generation, cursor, {
    ...(wasFed && { filledTo: cursor }),
    ...(began !== undefined && { began }),
  });
  return { generation, cursor };
}

/** Set back, it is sent what the log still has: superseded changes may be pruned. Filled anew, it misses nothing. */
function noteGap(store: RelayWriter, sink: SinkRow, cursor: number, nowMs: number): void {
  const upTo = Math.min(store.changes.prunedTo(), sink.cursor);
  if (cursor > 0 && cursor < upTo) store.sinks.addGap(sink.id, { after: cursor, upTo, at: nowMs });
}
