import type { ProxySettings } from '@catchword/base/proxy';
import type { Hide } from '@catchword/base/redact';
import type { EventSpan } from '@catchword/catalog/event';
import type { ChangeOp } from '@catchword/catalog/run-types';

/*
 * The interface of a downstream store. To write your own, export `createSink` (a `SinkFactory`) from a module, and name
 * the module in the settings: CATCHWORD_SINK_MINE=module:./my-sink.mjs?any=options. docs/stores/module.md has an example;
 * `catchword/sink-contract` has the checks that every sink of catchword passes.
 *
 * The relay calls each sink like this, one call at a time (except `prepareNext`):
 *
 *   open ─► deliver ─► deliver ─► … ─► list ─► apply ─► deliver ─► … ─► close     (after an error: close, a pause, open again)
 *
 * A fill delivers every living product once (with a view: every one that it shows). Where a store has `list` and `apply`, the
 * relay ends a fill with them: it removes what the store has and should not have. Any other store gets removals in its fill.
 *
 * Events arrive in the order of their `seq`; with a view, only those that it shows. After a crash, an event may arrive
 * again. A sink that stores the `Mark` with the events, in one atomic step, and returns it from `open`, gets every event
 * effectively once.
 */

/** One change of one product. */
export interface SinkEvent {
  /** Names this change, and never another one, not even after the mirror was restored from a backup. Compare it only. */
  readonly id: string;
  /** Number of the change, in the order of all changes. */
  readonly seq: number;
  /** When the mirror recorded it, milliseconds since 1970. */
  readonly at: number;
  readonly op: ChangeOp;
  /** The product's key. */
  readonly vbid: string;
  /** JSON of the product right after the change, as the source sent it, or what the sink's view shows of it; null if removed. */
  readonly body: string | null;
  /** The event as a CloudEvents 1.0 event: JSON on one line. */
  readonly text: string;
}

/** The texts of events. */
export interface EventLines extends EventSpan {
  /** UTF-8: a line for each event, which ends with a line break. The memory is used again after the call. */
  readonly bytes: Uint8Array;
}

/** The position of a sink in the change log. The sink need not understand it: it stores and returns it unchanged. */
export interface Mark {
  /** Who feeds the store: the random id of the mirror's history, in which a `seq` is one change, the sink, and what of products it gets. */
  readonly incarnation: string;
  /** Grows with every restart of delivery (a replay, another view, parked events that were retried or skipped); starts at 1. */
  readonly generation: number;
  /** Every change up to this `seq` is delivered. */
  readonly cursor: number;
  /** When the change at `cursor` was recorded, milliseconds since 1970; 0 if unknown. Distinguishes histories. */
  readonly at: number;
  /** `seq` of the newest event that was parked and is delivered now, below `cursor`; 0 if there was not one. */
  readonly late: number;
}

/** The position that a sink returns when it is opened. */
export interface Opened extends Mark {
  /** Why every product must be delivered again, although the mirror believes that they were: for the log. `cursor` is 0. */
  readonly refill?: string;
}

/** The size of a store that keeps events. */
export interface StoredSize {
  /** For people, such as `1,200 entries`. */
  readonly text: string;
  /** What limits it, such as `maxlen=100000`; null if it grows without limit. */
  readonly limit: string | null;
  /** The option that would limit it. */
  readonly option: string;
}

/** How much a list of products has to tell. */
export interface Listing {
  /** Everything that the store has of a product; false: its key is enough. */
  readonly whole: boolean;
  /** Whether positions are compared, too: `seq`, the number of a product's newest change. Not if a view hides changes. */
  readonly positions: boolean;
}

/** What a store has of one living product. */
export interface StoredProduct {
  readonly vbid: string;
  /** Its JSON, for a `whole` list of a store without `digests`. */
  readonly body?: string;
  /** From a store with `digests`: 15 hex digits (60 bits), as its `digestOf` makes them. */
  readonly digest?: string;
  /** Only parts of it are there, such as rows of prices: it is extra if it should not be there, and else missing. */
  readonly isRest?: boolean;
}

/** Number and sum of the digests of the living products of one bucket. A key's bucket: the first three hex digits of its MD5. */
export interface BucketSum {
  readonly count: number;
  readonly sum: bigint;
}

/** Lets a store compare by itself. Without it, the relay makes the digests, of what `list` yields. */
export interface Digests {
  /** The digest that the store should have of the product that an event brings. */
  digestOf(event: SinkEvent, listing: Listing): string;
  /** Optional. What a listing compares, for people, such as "keys and positions"; null: `sink verify` always asks for whole products. */
  compares?(listing: Listing): string | null;
  /** Optional, for a store that can add: by bucket, of which those without products may be missing. */
  sums?(listing: Listing, mark: Mark, signal: AbortSignal): Promise<ReadonlyMap<number, BucketSum>>;
  /**
   * Optional, for a store that has more than a text of each product. Of products that differ, by key: the columns or parts
   * with another content, without values.
   */
  differences?(
    events: readonly SinkEvent[],
    listing: Listing,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, readonly string[]>>;
}

export interface Sink {
  /**
   * The most that one call gets: events, and characters of their text for `deliver`, bytes for `deliverLines`. A single
   * event may exceed it.
   */
  readonly batch: { readonly events: number; readonly chars: number };
  /**
   * Connects, creates what is missing, and repairs what a crash left.
   * @param mark the sink's position, as the mirror believes
   * @param newest the mirror's newest change; a sink with a later one was fed before the mirror was restored from a backup
   * @returns the position that the sink stored; null if it does not store one: then the mirror's counts
   * @throws SinkError, or anything; the relay retries
   */
  open(mark: Mark, newest: number, signal: AbortSignal): Promise<Opened | null>;
  /**
   * Optional. Called every few minutes: checks that the store still has what it confirmed, without changing anything.
   * @throws SinkError `unavailable` if it does not; the relay then opens the sink again
   */
  recheck?(signal: AbortSignal): Promise<void>;
  /** Optional. Returns the size of the store, for `catchword sink list`, without changing anything. */
  size?(signal: AbortSignal): Promise<StoredSize>;
  /**
   * Stores the events. When it resolves, they are confirmed and are not sent again.
   * @param events at least one, in order
   * @param mark the position once they are stored
   * @throws SinkError `refused` if one of these events can never be stored: the relay finds it by sending smaller batches,
   *   and parks it. After any other error, the relay retries; see SinkError for what its members change
   */
  deliver(events: readonly SinkEvent[], mark: Mark, signal: AbortSignal): Promise<void>;
  /** Optional, for a store of texts. As `deliver`, which then gets only events that were parked, or are near a refused one. */
  deliverLines?(lines: EventLines, mark: Mark, signal: AbortSignal): Promise<void>;
  /**
   * Optional. Called while `deliver` waits for the store, with the same array that its next call probably gets, to start now
   * what those need. `deliver` or `close` may be called before it has ended, but not `prepareNext`. If it fails, nothing happens.
   */
  prepareNext?(events: readonly SinkEvent[]): Promise<void>;
  /**
   * Optional. Yields the living products of these buckets (null: all), in any order. The relay calls it between two
   * deliveries, while the store is what the deliveries up to `mark`, its last one, made of it. Rows of removed products are
   * not products.
   * @throws SinkError unavailable if the store's mark is not `mark` any more
   */
  list?(
    listing: Listing,
    buckets: ReadonlySet<number> | null,
    mark: Mark,
    signal: AbortSignal,
  ): AsyncIterable<readonly StoredProduct[]>;
  /** Optional. Makes `list` faster, or lets it compare something else than the JSON. */
  readonly digests?: Digests;
  /**
   * Optional. Makes these products as the events say, whatever their position in the store, removes the extra keys, and
   * stores the mark, also if there are neither. A fill begins and ends with such a call: with `cursor` 0, it lets the sink
   * take the store over, also from another mirror.
   */
  apply?(events: readonly SinkEvent[], extra: readonly string[], mark: Mark, signal: AbortSignal): Promise<void>;
  /**
   * Optional. For `catchword sink contract`: removes everything that this sink has made, also without `open`.
   * @returns what stays, for people; empty: nothing
   */
  drop?(signal: AbortSignal): Promise<string>;
  /** Releases everything; also called after errors. Not called during another call, unless that one ignores its signal. */
  close(): Promise<void>;
  /**
   * For `catchword doctor`: checks that deliveries would succeed. Changes nothing, and sends nothing that looks like an event.
   * @param found call it with the mark of the store, if it has one: it throws if another mirror has fed the store
   * @returns one line about what was found and what was not checked
   * @throws SinkError, or anything: why deliveries would fail
   */
  check(signal: AbortSignal, found?: (mark: Mark) => void): Promise<string>;
}

/** The settings of a sink. */
export interface SinkSettings {
  readonly name: string;
  /** As configured. It contains credentials: do not log it. */
  readonly url: URL;
  /** The same for each host that it names: several sentinels of Redis or servers of NATS. */
  readonly urls: readonly URL[];
  /** `CATCHWORD_SINK_<NAME>_SECRET`. */
  readonly secret: string | undefined;
  /** `CATCHWORD_SINK_<NAME>_HEADERS`: further headers of a webhook, a line for each. */
  readonly headers?: string | undefined;
  /** Proxies for HTTP. They contain credentials, too. */
  readonly proxies?: ProxySettings | undefined;
  /** Masks the secrets of this sink in a text from outside. What a module throws is masked in any case. */
  readonly hide: Hide;
}

export type SinkFactory = (settings: SinkSettings) => Sink | Promise<Sink>;

/**
 * - `unavailable`: the relay retries
 * - `refused`: one of these events can never be stored
 * - `gone`: the store does not want events any more; the relay stops the sink
 * - `misconfigured`: an operator must change a setting or a right; the relay retries
 */
export type SinkFailure = (typeof FAILURES)[number];

const FAILURES = ['unavailable', 'refused', 'gone', 'misconfigured'] as const;

export type SinkErrorOptions = ErrorOptions & Partial<Pick<SinkError, 'retryAfterMs' | 'timedOut' | 'connectionLost'>>;

/** The error of a sink. Its message goes into logs and `sink list`: leave out credentials and bodies. */
export class SinkError extends Error {
  readonly failure: SinkFailure;
  /** The pause that the store asked for, milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** Whether the store may have got too much at once, as one that did not answer in time: the relay delivers fewer events. */
  readonly timedOut: boolean;
  /**
   * Whether the other side has ended the connection, maybe before the call, instead of answering: after a pause between
   * calls, the relay retries at once and without a warning.
   */
  readonly connectionLost: boolean;

  constructor(failure: SinkFailure, message: string, options: SinkErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'SinkError';
    this.failure = failure;
    this.retryAfterMs = options.retryAfterMs;
    this.timedOut = options.timedOut ?? false;
    this.connectionLost = options.connectionLost ?? false;
  }
}

/** Recognises a SinkError of another copy of this package, too: a sink's module may bring its own. */
export function isSinkError(error: unknown): error is SinkError {
  return (
    error instanceof Error &&
    error.name === 'SinkError' &&
    FAILURES.some((one) => 'failure' in error && error.failure === one)
  );
}
