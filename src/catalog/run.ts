export type RunKind = 'full' | 'delta';

/**
 * ```
 * planned → reading → complete | held
 *              └────→ failed | cancelled
 * ```
 * A run that is planned or reading is unfinished: a keeper that starts goes on with it.
 */
export type RunState = 'planned' | 'reading' | 'complete' | 'held' | 'failed' | 'cancelled';

export type Proof = 'sealed' | 'open';

export interface RunCounts {
  readonly pages: number;
  readonly items: number;
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  readonly restored: number;
  /** Living products that a full run did not see; of a run that settles, that it has not seen so far. */
  readonly missing: number;
  readonly rejected: number;
  readonly requests: number;
}

/** One list that a run read in several windows, and how its windows are joined. */
export interface ListEvidence {
  readonly pass: number;
  readonly kind: 'list' | 'delta';
  /** Windows of the first reading, and those read to repair seams. */
  readonly windows: number;
  readonly repairs: number;
  /** Products that neighbours shared: on average, and the least. */
  readonly overlap: number;
  readonly overlapLeast: number;
  /** One letter a seam, in the order of the list: `j` joined, `r` repaired, `o` open. */
  readonly seams: string;
}

/** How a run's proof was obtained. */
export interface Evidence {
  readonly requests: number;
  readonly deltas: number;
  readonly lookups: number;
  /** Products that the run saw, and what the source said that there are. */
  readonly seen: number;
  readonly numItems: number;
  readonly lists: readonly ListEvidence[];
}

/** One execution. Times are milliseconds since 1970. */
export interface Run extends RunCounts {
  readonly id: number;
  readonly kind: RunKind;
  readonly state: RunState;
  /** Where a delta begins; null for a full run. */
  readonly from: number | null;
  /** The source's clock when the run began to read; null until the first page is there. */
  readonly sourceTime: number | null;
  readonly startedAt: number;
  readonly finishedAt: number | null;
  /** Until when it waits before it reads its last delta, by this machine's clock; null while it does not wait. */
  readonly settlesAt: number | null;
  readonly proof: Proof | null;
  /** Why the proof is open; one sentence each. */
  readonly reasons: readonly string[];
  readonly error: string | null;
  /** Null until the run ends, and for a run that failed. */
  readonly evidence: Evidence | null;
}

export type ChangeOp = 'created' | 'updated' | 'removed' | 'restored';

export interface RunRequest {
  readonly kind: RunKind;
  /** Where a delta begins, instead of the watermark less the overlap; milliseconds since 1970. */
  readonly from?: number;
  /** The schedule's moment; a moment that has a run already starts none. */
  readonly tick?: string;
}
