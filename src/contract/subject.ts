/*
 * What a user gives to the checks of a sink. Apart from the scene, because declarations of this file are published.
 */

/** An empty store, used by one check only. */
export interface SinkTarget {
  /** The value of `CATCHWORD_SINK_<NAME>`. */
  readonly url: string;
  /** The value of `CATCHWORD_SINK_<NAME>_SECRET`. */
  readonly secret?: string;
  /** The value of `CATCHWORD_SINK_<NAME>_MODULE`. */
  readonly module?: string;
  readonly read: () => Promise<Received>;
  /** Makes the store unreachable; it keeps its contents. */
  readonly interrupt: () => Promise<void>;
  readonly restore: () => Promise<void>;
  readonly remove: () => Promise<void>;
}

/** A store that only its sink can read, if it can, and that stays reachable. */
export interface OpaqueTarget extends Pick<SinkTarget, 'url' | 'secret' | 'module' | 'remove'> {
  /** Whether the sink has `verify`. */
  readonly verifies: boolean;
}

/** The contents of a store. */
export interface Received {
  /** `seq` of every event in the order of arrival; null for a store that keeps only products. */
  readonly seqs: readonly number[] | null;
  /** Parsed living products, by key. */
  readonly products: ReadonlyMap<string, unknown>;
}

export interface SinkSubject {
  /** Whether the store never gets an event twice, whatever happens. */
  readonly effectivelyOnce: boolean;
  readonly prepare: () => Promise<SinkTarget | OpaqueTarget>;
  /** Ends a check. */
  readonly signal?: AbortSignal;
}
