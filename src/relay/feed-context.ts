import type { Clock } from '../clock.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import type { Logger } from '../log.ts';
import { createHistory, type History } from '../store/history.ts';
import type { Leased } from '../store/lease.ts';
import type { Reader } from '../store/reader.ts';
import type { SinkRow } from '../store/sinks.ts';
import { eventSource } from '../store/source.ts';
import type { RelayWriter } from '../store/writers.ts';
import { withDeadline } from './deadline.ts';
import { type Batch, type ReadOptions, readBatch } from './read-batch.ts';
import { isSinkError, type Mark, type Sink } from './sink.ts';
import { type SinkConfig, withoutSecrets } from './sink-config.ts';

export interface FeedOptions {
  readonly store: Reader;
  readonly config: SinkConfig;
  readonly clock: Clock;
  readonly log: Logger;
  /** The `source` of events where the mirror has not noted its own. */
  readonly source: string;
  /** The relay's lease: an older relay cannot write. */
  readonly leased: Leased<RelayWriter>;
}

/** What the parts of feeding one sink share: the mirror's side of it. */
export interface FeedContext extends FeedOptions {
  readonly history: History;
  reading(): ReadOptions;
  /** The sink as the mirror knows it now. */
  readonly row: () => SinkRow;
  readonly markOf: (sink: SinkRow, cursor: number, late?: number) => Mark;
  /** What is next after `cursor`. @param limit at most so many events; @param apart events to leave out */
  readonly read: (
    sink: SinkRow,
    target: Sink,
    cursor: number,
    limit?: number,
    apart?: readonly number[],
  ) => Batch | null;
  /** An error in words, with its hint and without secrets. */
  readonly shown: (error: unknown) => string;
  readonly closeSink: (sink: Sink) => Promise<void>;
}

const CLOSE_TIMEOUT_MS = 5_000;

/** What a log line calls a failure of a sink, such as `SINK_GONE`. A sink may throw anything: then it is unavailable. */
export function sinkCode(error: unknown): string {
  if (error instanceof CatchwordError) return error.code;
  return `SINK_${(isSinkError(error) ? error.failure : 'unavailable').toUpperCase()}`;
}

export function createFeedContext(options: FeedOptions): FeedContext {
  const { store, config, log } = options;
  const history = createHistory(store);
  const reading = (): ReadOptions => ({
    history,
    incarnation: store.incarnation,
    source: eventSource(store.source, options.source),
  });

  function shown(error: unknown): string {
    const hint = error instanceof CatchwordError && error.hint !== undefined ? `. ${error.hint}` : '';
    return withoutSecrets(config, `${messageOf(error)}${hint}`);
  }

  return {
    ...options,
    history,
    reading,
    shown,
    row: () => {
      const found = store.sinks.get(config.name);
      if (found === undefined) throw new Error(`sink ${config.name} is not known to the mirror`);
      return found;
    },
    markOf: ({ generation }, cursor, late = 0) => {
      const at = store.changes.timeOf(cursor) ?? 0;
      return { incarnation: store.incarnation, generation, cursor, at, late };
    },
    read: (sink, { batch }, cursor, limit = Number.POSITIVE_INFINITY, apart = []) => {
      const most = { events: Math.min(batch.events, limit), chars: batch.chars };
      const skipped = new Set([...store.sinks.skipped(sink.id), ...apart]);
      return readBatch(reading(), sink, cursor, most, store.sinks.blocked(sink.id), skipped);
    },
    // Some drivers wait for a goodbye from a server that no longer answers.
    closeSink: async (sink) => {
      try {
        await withDeadline(new AbortController().signal, CLOSE_TIMEOUT_MS, () => sink.close());
      } catch (error) {
        log.debug({ sink: config.name, reason: shown(error) }, 'sink did not close');
      }
    },
  };
}
