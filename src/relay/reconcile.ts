import { CatchwordError } from '../errors.ts';
import type { SinkRow } from '../store/sinks.ts';
import type { Store } from '../store/store.ts';
import type { Mark } from './sink.ts';

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
export function reconcile(store: Store, sink: SinkRow, mark: Mark | null): Reconciled {
  const { generation, cursor } = sink;
  if (mark === null) return adopt(store, sink, generation, cursor);
  const elsewhere = mark.incarnation !== store.incarnation;
  if (elsewhere || mark.cursor > store.changes.lastSeq()) {
    if (!sink.takeOver) {
      const whose = elsewhere ? 'another mirror' : 'a later state of this mirror (it was restored from a backup?)';
      throw new CatchwordError('SINK_CONFLICT', `${sink.address} was fed by ${whose}`, {
        hint: `To replace what is there: npx catchword sink replay ${sink.name}, then: npx catchword sink resume ${sink.name}.`,
      });
    }
    // Where numbers must grow, they do so by their generation.
    const next = Math.max(generation, mark.generation + 1);
    return adopt(store, sink, next, cursor, next);
  }
  // Delivery was to begin anew. It has not, or the sink has lost that it did.
  if (mark.generation < sink.beganGeneration) return adopt(store, sink, generation, sink.beganCursor);
  if (mark.late > 0 && mark.cursor === cursor) {
    const done = store.sinks.ready(sink.id).filter(({ seq, freed }) => seq <= mark.late && freed <= mark.generation);
    store.sinks.unpark(
      sink.id,
      done.map(({ seq }) => seq),
    );
  }
  return adopt(store, sink, Math.max(generation, mark.generation), mark.cursor);
}

function adopt(store: Store, sink: SinkRow, generation: number, cursor: number, began?: number): Reconciled {
  // Fed under another name or address before: from there on it misses removals and updates, not only products.
  const wasFed = !sink.opened && cursor > sink.cursor;
  store.sinks.reconcile(sink.id, generation, cursor, {
    ...(wasFed && { filledTo: cursor }),
    ...(began !== undefined && { began }),
  });
  return { generation, cursor };
}
