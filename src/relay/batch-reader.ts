import { createHistory } from '../store/history/history.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import { eventSource } from '../store/rows/source-state.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { BatchSize } from './batch-size.ts';
import type { RefusalSearch } from './bisect-rejected.ts';
import type { LineBuffer } from './line-buffers.ts';
import { type Batch, readBatch, readLines } from './read-batch.ts';
import type { Sink } from './sink.ts';
import { type PreparedViews, viewedChanges } from './store-contents.ts';

export interface ReadTarget {
  readonly batch: Sink['batch'];
  /** Where the texts of a batch go; null for a sink that takes events. */
  readonly nextBuffer: (() => LineBuffer) | null;
}

/**
 * Reads what one sink gets next.
 * @param source the `source` of events if the mirror has not stored its own
 * @param search limits batches while a refused event is searched for
 * @param batchSize limits batches of a slow store
 * @param prepare prepares its views
 */
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
    { batch, nextBuffer }: ReadTarget,
    cursor: number,
    skipped: readonly number[] = [],
  ): Generator<undefined, Batch | null> {
    // From an unusual run on, a decision is needed.
    const upTo = (store.runs.unusual(sink.approvedRun)?.from ?? Number.MAX_SAFE_INTEGER) - 1;
    const most = { events: mostEvents(batch), chars: batch.chars, upTo };
    const viewed = viewedChanges(store, sink, cursor, prepare, history);
    const blocked = store.sinks.blocked(sink.id);
    const allSkipped = new Set([...store.sinks.skipped(sink.id), ...skipped]);
    const hasAll = blocked.size === 0 && allSkipped.size === 0 && search.limit() === Number.POSITIVE_INFINITY;
    if (nextBuffer === null || !hasAll || viewed !== null) {
      return yield* readBatch(readOptions(), sink, cursor, most, blocked, allSkipped, viewed);
    }
    return yield* readLines(readOptions(), sink, cursor, most, nextBuffer());
  }

  return {
    history,
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
