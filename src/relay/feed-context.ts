import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import type { Logger } from '@catchword/base/log';
import { isSinkError, type Mark, type Sink } from '@catchword/sink-kit/sink';
import { feederName } from '@catchword/sink-kit/stored-mark';
import { withTimeout } from '@catchword/sink-kit/with-timeout';
import { legOf } from '../store/rows/sink-legs.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { Leased } from '../store/schema/lease.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { RelayWriter } from '../store/schema/writers.ts';
import type { Store } from '../store/store.ts';
import { createAckWriter } from './ack-writer.ts';
import { createBatchSize } from './batch-size.ts';
import { createBatchReader } from './read-batch.ts';
import { createRefusalSearch } from './refusal-search.ts';
import type { SinkConfig } from './sink-config.ts';
import { createPreparedViews, hasWhole } from './store-contents.ts';

export interface FeedOptions {
  readonly store: Reader & Pick<Store, 'onChanges'>;
  readonly config: SinkConfig;
  readonly clock: Clock;
  readonly log: Logger;
  /** The `source` of events if the mirror has not stored its own. */
  readonly source: string;
  /** How many products a changed view may remove from a store that has so many, without a decision. */
  readonly removalLimit: (products: number) => number;
  /** The relay's lease: an older relay cannot write. */
  readonly leased: Leased<RelayWriter>;
  /** Aborts when no further batch may start; ends every call of the sink but a delivery. */
  readonly stopping: AbortSignal;
  /** Ends a running delivery as well. */
  readonly signal: AbortSignal;
}

const CLOSE_TIMEOUT_MS = 5_000;
/** Shorter when the relay stops: the process ends then, and with it every connection. */
const LAST_CLOSE_TIMEOUT_MS = 1_000;

/** The `code` of a log line about a failure, such as `SINK_GONE`. An error that is not a SinkError means unavailable. */
export function sinkCode(error: unknown): string {
  if (error instanceof CatchwordError) return error.code;
  return `SINK_${(isSinkError(error) ? error.failure : 'unavailable').toUpperCase()}`;
}

export type FeedContext = ReturnType<typeof createFeedContext>;

/** Makes what the parts of feeding one sink share. */
export function createFeedContext(options: FeedOptions) {
  const { store, config, clock, log, source, leased, stopping } = options;
  const search = createRefusalSearch();
  const batchSize = createBatchSize();
  const prepare = createPreparedViews(config.name);
  const reader = createBatchReader(store, source, search, batchSize, prepare);
  const acks = createAckWriter(clock, (sink, ack) => {
    const before = row();
    const { to } = legOf(before);
    const noted = leased.write(({ sinks }) => sinks.ack(sink, ack));
    const isFilled = noted && before.cursor < to && ack.cursor >= to;
    if (isFilled)
      log.info({ sink: config.name, cursor: ack.cursor }, 'the initial load, or the reconciliation, is delivered');
  });

  /** Returns the sink as the mirror has it now. */
  function row(): SinkRow {
    const found = store.sinks.get(config.name);
    if (found === undefined) throw new Error(`the mirror does not have the sink ${config.name}`);
    return found;
  }

  let failuresNoted = 0;
  /** Notes products that an expression of the view failed on. @param write false: forgets them */
  function noteViewFailures(write = true): void {
    const { count, last } = (config.view && prepare(config.view))?.failures() ?? { count: 0, last: null };
    const found = count - failuresNoted;
    failuresNoted = count;
    if (!write || found === 0) return;
    leased.write(({ sinks }) => sinks.noteViewFailures(found, last, row().id));
    const reason = `${found} products; the last: ${last}`;
    const isFirst = row().viewFailures === found;
    log[isFirst ? 'warn' : 'debug'](
      { code: 'VIEW_FAILED', sink: config.name, reason },
      'an expression of the view failed',
    );
  }

  function markAt(sink: SinkRow, cursor: number, late = 0): Mark {
    const { id, generation } = sink;
    const at = store.changes.timeOf(cursor) ?? 0;
    return { incarnation: feederName(store.incarnation, id, hasWhole(sink, cursor)), generation, cursor, at, late };
  }

  /** Returns the message and hint of an error, without secrets. */
  function errorText(error: unknown): string {
    const hint = error instanceof CatchwordError && error.hint !== undefined ? `. ${error.hint}` : '';
    return `${config.errorText(error)}${hint}`;
  }

  /** Closes a sink, but does not wait long: some drivers wait for a goodbye of a server that is gone. */
  async function closeSink(sink: Sink): Promise<void> {
    try {
      const timeoutMs = stopping.aborted ? LAST_CLOSE_TIMEOUT_MS : CLOSE_TIMEOUT_MS;
      await withTimeout(timeoutMs, () => sink.close());
    } catch (error) {
      log.debug({ sink: config.name, reason: errorText(error) }, 'closing the sink failed');
    }
  }

  return {
    ...options,
    ...reader,
    acks,
    search,
    batchSize,
    prepare,
    noteViewFailures,
    row,
    markAt,
    errorText,
    closeSink,
  };
}
