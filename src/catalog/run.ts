export type RunKind = 'full' | 'delta';

/**
 * ```
 * planned → reading → finishing → complete
 *                 │        └────→ held
 *                 └→ failed | cancelled
 * ```
 * A run in one of the first three is unfinished: a keeper that starts goes on with it.
 */
export type RunState = 'planned' | 'reading' | 'finishing' | 'complete' | 'held' | 'failed' | 'cancelled';

export type Proof = 'sealed' | 'open';

export interface RunCounts {
  readonly pages: number;
  readonly items: number;
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  readonly restored: number;
  /** Living products that a full run did not see. */
  readonly missing: number;
  readonly rejected: number;
  readonly requests: number;
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
  readonly proof: Proof | null;
  /** Why the proof is open; one sentence each. */
  readonly reasons: readonly string[];
  readonly error: string | null;
}

export type ChangeOp = 'created' | 'updated' | 'removed' | 'restored';
