import type { Reason } from './reasons.ts';

export type RunKind = 'full' | 'delta';

/**
 * ```
 * planned ─► reading ─► complete
 *    │          ├─────► held ─► complete | cancelled    (approved or rejected; superseded)
 *    └──────────┴─────► failed | cancelled
 * ```
 * A run that is planned or reading is unfinished: the keeper resumes it when it starts.
 */
export type RunState = 'planned' | 'reading' | 'complete' | 'held' | 'failed' | 'cancelled';

export type Proof = 'sealed' | 'open';

export interface RunCounts extends Readonly<Record<ChangeOp | 'pages' | 'items' | 'rejected' | 'requests', number>> {
  /** Living products that a full run did not see; while it settles, products not seen so far. */
  readonly missing: number;
}

/** A list that a run read in several windows, and how these windows are joined. */
export interface ListEvidence {
  readonly pass: number;
  readonly kind: 'list' | 'delta';
  /** Windows of the first pass, and windows read to repair seams. */
  readonly windows: number;
  readonly repairs: number;
  /** Products shared by neighbouring windows: the average and the minimum. */
  readonly overlap: number;
  readonly overlapLeast: number;
  /** One letter for each seam, in list order: `j` joined, `r` repaired, `o` open. */
  readonly seams: string;
}

/** What a run found out about the form of its deltas. */
export interface InPart {
  readonly items: number;
  /** Members that they left out, of those that the mirror has of the products. */
  readonly leftOut: readonly string[];
  /** Members that an earlier run found left out, and that deltas of this one show. */
  readonly shown: readonly string[];
}

/** The figures behind a run's proof. */
export interface Evidence {
  /** How its lists were joined when it last judged their seams. */
  readonly lists: readonly ListEvidence[];
  readonly requests: number;
  readonly deltas: number;
  readonly lookups: number;
  /** Products that the run saw, and the source's own count. */
  readonly seen: number;
  readonly numItems: number;
  /**
   * Only if the run updated nearly every product: JSON pointer of the field that changed most often, with `*` for the
   * elements of arrays; null if it is not known.
   */
  readonly commonChange?: string | null;
  /** How many products the run updated, as a share of those that the mirror has then; 1: all. */
  readonly updatedShare: number;
  /** Only if deltas showed products in part, or show members again that they left out before. */
  readonly inPart?: InPart;
  /**
   * Only if the list shows products twice, with two contents: how many it has, as is proven; the keys of some of these, and
   * then those of products of which it is likely. The content in front counts.
   */
  readonly twice?: { readonly products: number; readonly vbids: readonly string[] };
  /** Only of the first full run with other settings: how they changed, as a sentence's part. */
  readonly changedSettings?: string;
}

/**
 * What makes a run unusual: its updates, with those of the runs of the 24 hours before, emptied a field of more products than
 * CATCHWORD_LOSS_LIMIT allows.
 */
export interface Unusual {
  /** The `seq` from which on nothing was delivered when the run became unusual. */
  readonly from: number;
  /** A column of `catalog`, or `prices`. */
  readonly field: string;
  /** The products whose field these runs emptied, and all products then. */
  readonly products: number;
  /** Of these, what runs before it emptied; absent: nothing. */
  readonly earlier?: number;
  readonly living: number;
}

/** One execution. Times are milliseconds since 1970. */
export interface Run extends RunCounts {
  readonly id: number;
  readonly kind: RunKind;
  readonly state: RunState;
  /** Start of a delta's time range; null for a full run. */
  readonly from: number | null;
  /** The source's clock when the run began to read; null until the first page arrives. */
  readonly sourceTime: number | null;
  readonly startedAt: number;
  readonly finishedAt: number | null;
  /** When it stops waiting and reads its last delta, by this machine's clock; null if it is not waiting. */
  readonly settlesAt: number | null;
  readonly proof: Proof | null;
  /** Why the proof is open, and what the run holds. */
  readonly reasons: readonly Reason[];
  readonly error: string | null;
  /** Of how many products the run's updates emptied each field; null if they emptied none. */
  readonly emptied: Readonly<Record<string, number>> | null;
  /** It stays unusual once that is noted. */
  readonly unusual: Unusual | null;
  /** Null until the run ends, and for a run that failed. */
  readonly evidence: Evidence | null;
}

/** What to say of a number that no kept run has. @param lastId the number of the newest run */
export function whyNoRun(id: number, lastId: number): string {
  const wasThere = id > 0 && id <= lastId;
  return wasThere ? `run ${id} is not kept any more (CATCHWORD_RUN_RETENTION)` : `run ${id} does not exist`;
}

/** Whether a run of one kind makes a run of the other unnecessary: a full run covers a delta, but not vice versa. */
export function covers(made: RunKind, wanted: RunKind): boolean {
  return made === 'full' || made === wanted;
}

/** Ordered by their numbers in the table of changes. */
export const CHANGE_OPS = ['created', 'updated', 'removed', 'restored'] as const;
export type ChangeOp = (typeof CHANGE_OPS)[number];

/** Which changes a reader wants; default: all. */
export interface ChangeFilter {
  readonly op?: readonly ChangeOp[] | undefined;
  /** Top-level fields, one of which changed: names, or pointers such as `/title`. Creations and removals have none. */
  readonly field?: readonly string[] | undefined;
  /** Of updates, only those in which one of these top-level members changed; null: all. */
  readonly keys?: ReadonlySet<string> | null | undefined;
}

export interface RunRequest {
  readonly kind: RunKind;
  /** Start of a delta's time range, milliseconds since 1970. Default: the watermark less the overlap. */
  readonly from?: number;
  /** The scheduled time (see `tickName`); a tick that already has a run does not start another. */
  readonly tick?: string;
}
