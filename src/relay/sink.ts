import type { ChangeOp } from '../catalog/run.ts';

/*
 * What a downstream store is to catchword. To write your own, export `createSink` (a `SinkFactory`) from a module and
 * name it in the settings: CATCHWORD_SINK_MINE=module:./my-sink.mjs?anything=you+like. docs/sinks.md walks through an
 * example; `catchword/sink-contract` holds the checks that every sink here passes.
 *
 * The relay calls, for each sink, one at a time:
 *
 *   open ─► (fillBegins) ─► deliver ─► deliver ─► … (fillEnds) … ─► close     (after an error: close, a pause, open again)
 *
 * Events come in the order of their `seq`, without a hole. An event may come again after a crash: a sink that stores the
 * `Mark` together with the events, in one atomic step, and tells it in `open`, is fed effectively once.
 */

/** One change of one product. */
export interface SinkEvent {
  /** Its place in the order of all changes. */
  readonly seq: number;
  /** When the mirror learned of it, milliseconds since 1970. */
  readonly at: number;
  readonly op: ChangeOp;
  /** The product's key. */
  readonly vbid: string;
  /** The product's JSON text right after the change, as the source sent it; null when it was removed. */
  readonly body: string | null;
  /** The whole as one CloudEvents 1.0 event: JSON on one line. */
  readonly text: string;
}

/** How far a sink is. Opaque to the sink, which keeps and returns it as it is. */
export interface Mark {
  /** Random id of the mirror's history: `seq` of another one are other changes. */
  readonly incarnation: string;
  /** Grows whenever delivery begins anew (a replay, parked events set free); from 1. */
  readonly generation: number;
  /** All changes up to here are delivered. */
  readonly cursor: number;
  /** When the change at `cursor` was recorded, milliseconds since 1970; 0 where that is not known. Tells histories apart. */
  readonly at: number;
  /**
   * 0, or: events that had been parked are delivered first in this generation, below `cursor`; this is the `seq` of the
   * last of them that is.
   */
  readonly late: number;
}

/** How far a sink is when it is opened. */
export interface Opened extends Mark {
  /**
   * Why everything has to be delivered again although the mirror believes that it was: for the log. The sink is then
   * filled with the products as of now. `cursor` is 0.
   */
  readonly refill?: string;
}

/** How much a store of events keeps. */
export interface StoredSize {
  /** For people, such as `1,200 entries`. */
  readonly text: string;
  /** What limits it, such as `maxlen=100000`; null where it grows without end. */
  readonly limit: string | null;
  /** The option that would limit it. */
  readonly option: string;
}

export interface Sink {
  /** The most that one call of `deliver` is given: events, and characters of their text together (one event may exceed it). */
  readonly batch: { readonly events: number; readonly chars: number };
  /**
   * Connects, makes what is missing, repairs what a crash left.
   * @param mark how far the mirror believes that this sink is
   * @param newest the mirror's newest change: a sink that has more was fed by a later state of a mirror that was restored
   * @returns how far the sink itself knows that it is; null when it does not know: then the mirror's mark counts
   * @throws SinkError, or anything: it is tried again later
   */
  open(mark: Mark, newest: number, signal: AbortSignal): Promise<Opened | null>;
  /**
   * Optional. Called after `open`, before the first delivery of a fill: every living product is about to be delivered,
   * each once. The store may hold rows of an earlier fill or of another mirror; they stay until `fillEnds`.
   * @param mark with the cursor 0: what is true before the first delivery
   */
  fillBegins?(mark: Mark, signal: AbortSignal): Promise<void>;
  /**
   * Optional. Called once a session, when everything is delivered and the mirror is complete: rows that were not delivered
   * since `fillBegins` are not of the catalog any more. Without a fill since the last call there is nothing to do.
   * @param kept keys of products whose events are parked or were skipped: their rows stay as they are
   */
  fillEnds?(kept: readonly string[], mark: Mark, signal: AbortSignal): Promise<void>;
  /**
   * Optional. Looks every few minutes whether the store still holds what it confirmed, without changing anything.
   * @throws SinkError `unavailable` when it does not: the sink is opened again, and tells how far it is
   */
  recheck?(signal: AbortSignal): Promise<void>;
  /** Optional. How much the store keeps, for `catchword sink list`; changes nothing. */
  size?(signal: AbortSignal): Promise<StoredSize>;
  /**
   * Stores the events. Resolving is the confirmation: they will never be sent again.
   * @param events at least one, in order
   * @param mark what is true when they are stored
   * @throws SinkError `refused` where one of these events can never be stored: the relay finds out which one by sending
   *   smaller batches, and sets it aside. Anything else is tried again.
   */
  deliver(events: readonly SinkEvent[], mark: Mark, signal: AbortSignal): Promise<void>;
  /** Lets go of everything; also called after errors. Never called during another call, unless that ignores its signal. */
  close(): Promise<void>;
  /**
   * For `catchword doctor`: whether the store can be reached and whether deliveries would succeed, without changing
   * anything there and without sending what a receiver could take for an event.
   * @returns one line that says what was found, and what was not checked
   * @throws SinkError, or anything: what would keep deliveries from succeeding
   */
  check(signal: AbortSignal): Promise<string>;
}

/** What a sink is made from. */
export interface SinkSettings {
  readonly name: string;
  /** As in the settings. Holds credentials: never to be logged. */
  readonly url: URL;
  /** `CATCHWORD_SINK_<NAME>_SECRET`. */
  readonly secret: string | undefined;
}

export type SinkFactory = (settings: SinkSettings) => Sink | Promise<Sink>;

/**
 * - `unavailable`: try again later
 * - `refused`: one of these events can never be stored
 * - `gone`: the store wants no more events, ever; the sink is stopped
 * - `misconfigured`: somebody has to change a setting or a right; tried again, as they may
 */
export type SinkFailure = 'unavailable' | 'refused' | 'gone' | 'misconfigured';

/** How a sink says what is wrong. The message goes into logs and `sink list`: no credentials, no bodies. */
export class SinkError extends Error {
  readonly failure: SinkFailure;
  /** The store asked for a pause; milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(failure: SinkFailure, message: string, options: { cause?: unknown; retryAfterMs?: number } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'SinkError';
    this.failure = failure;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Recognises a SinkError of another copy of this package as well: a sink's module may bring its own. */
export function isSinkError(error: unknown): error is SinkError {
  return error instanceof Error && error.name === 'SinkError' && 'failure' in error;
}
