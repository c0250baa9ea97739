import { withDeadline } from '../abort.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import type { Logger } from '../log.ts';
import { createHistory, type History } from '../store/history.ts';
import type { SinkRow } from '../store/sinks.ts';
import { eventSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import { type AckWriter, createAckWriter } from './ack-writer.ts';
import { answerWithin } from './answer-within.ts';
import { type Batch, type ReadOptions, readBatch } from './read-batch.ts';
import { createRefusalSearch, type RefusalSearch } from './refusal-search.ts';
import { isSinkError, type Mark, type Sink } from './sink.ts';
import { type SinkConfig, withoutSecrets } from './sink-config.ts';

export interface FeedOptions {
  readonly store: Store;
  readonly config: SinkConfig;
  readonly clock: Clock;
  readonly log: Logger;
  /** The `source` of events if the mirror has not stored its own. */
  readonly source: string;
  /** Epoch of the relay's lease: the mirror ignores what an older relay reports. */
  readonly epoch: number;
  /** Aborts when no further batch may start. */
  readonly stopping: AbortSignal;
  /** Aborts running calls of the sink as well. */
  readonly signal: AbortSignal;
}

/** What the parts of feeding one sink share. */
export interface FeedContext extends FeedOptions {
  readonly history: History;
  readonly acks: AckWriter;
  readonly search: RefusalSearch;
  readonly readOptions: () => ReadOptions;
  /** The sink as the mirror has it now. */
  readonly row: () => SinkRow;
  /** Writes to the mirror while this relay holds the lease. @throws CatchwordError LEASE_LOST */
  readonly guarded: <T>(work: () => T) => T;
  readonly markAt: (sink: SinkRow, cursor: number, late?: number) => Mark;
  /** Reads the next batch after `cursor`. @param skipped events to leave out, besides those that the operator skipped */
  readonly read: (sink: SinkRow, target: Sink, cursor: number, skipped?: readonly number[]) => Batch | null;
  /** The message and hint of an error, without secrets. */
  readonly errorText: (error: unknown) => string;
  readonly closeSink: (sink: Sink) => Promise<void>;
}

const CLOSE_TIMEOUT_MS = 5_000;

/** The `code` of a log line about a failure, such as `SINK_GONE`. An error that is not a SinkError means unavailable. */
export function sinkCode(error: unknown): string {
  if (error instanceof CatchwordError) return error.code;
  return `SINK_${(isSinkError(error) ? error.failure : 'unavailable').toUpperCase()}`;
}

export function createFeedContext(options: FeedOptions): FeedContext {
  const { store, config, clock, log, epoch } = options;
  const history = createHistory(store);
  const search = createRefusalSearch();
  const readOptions = (): ReadOptions => ({
    history,
    incarnation: store.incarnation,
    source: eventSource(store.source, options.source),
  });

  function row(): SinkRow {
    const found = store.sinks.get(config.name);
    if (found === undefined) throw new Error(`the mirror does not have the sink ${config.name}`);
    return found;
  }

  function guarded<T>(work: () => T): T {
    return store.write(() => {
      store.relayLease.check(epoch);
      return work();
    });
  }

  const acks = createAckWriter(clock, (sink, ack) => {
    const { cursor: before, backfillTo } = row();
    const noted = guarded(() => store.sinks.ack(sink, ack));
    const isFilled = noted && before < backfillTo && ack.cursor >= backfillTo;
    if (isFilled) log.info({ sink: config.name, cursor: ack.cursor }, 'backfill ended');
  });

  function errorText(error: unknown): string {
    const hint = error instanceof CatchwordError && error.hint !== undefined ? `. ${error.hint}` : '';
    return withoutSecrets(config, `${messageOf(error)}${hint}`);
  }

  return {
    ...options,
    history,
    acks,
    search,
    readOptions,
    row,
    guarded,
    errorText,
    markAt: ({ generation }, cursor, late = 0) => {
      const at = store.changes.timeOf(cursor) ?? 0;
      return { incarnation: store.incarnation, generation, cursor, at, late };
    },
    read: (sink, { batch }, cursor, skipped = []) => {
      const most = { events: Math.min(batch.events, search.limit()), chars: batch.chars };
      const allSkipped = new Set([...store.sinks.skipped(sink.id), ...skipped]);
      return readBatch(readOptions(), sink, cursor, most, store.sinks.blocked(sink.id), allSkipped);
    },
    // Some drivers wait for a goodbye of a server that does not answer any more.
    closeSink: async (sink) => {
      try {
        await withDeadline(new AbortController().signal, answerWithin(CLOSE_TIMEOUT_MS), () => sink.close());
      } catch (error) {
        log.debug({ sink: config.name, reason: errorText(error) }, 'closing the sink failed');
      }
    },
  };
}
