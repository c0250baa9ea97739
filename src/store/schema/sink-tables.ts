import { integer, primaryKey, real, sqliteTable, text } from './drizzle.ts';

/* The tables of sinks; see schema.ts for the others. */

/**
 * What a view would change in a store, in products: `has` now, and `matching` then. An expression fails on `failed` ones,
 * which count as not matching.
 */
export interface ViewForecast
  extends Readonly<Record<'has' | 'matching' | 'created' | 'updated' | 'removed' | 'failed', number>> {
  /** Members that the view names, that no product has, and that the service does not describe; undefined: none. */
  readonly absent?: readonly string[];
  /** Whether that is probably a mistake: a product has a similar member, or products in the store would change. */
  readonly isMistyped?: true;
}

/** Why a sink is held: its view was changed, the end of a fill would remove so many products, or a run comes next. */
export type HeldSink =
  | {
      readonly why: 'view';
      readonly where: string | null;
      readonly fields: string | null;
      readonly forecast: ViewForecast;
      readonly isApproved: boolean;
    }
  | { readonly why: 'fill'; readonly removed: number; readonly reason: string; readonly isApproved: boolean }
  /** `removed` only if the run takes so many products away: an approval allows as many. */
  | { readonly why: 'run'; readonly run: number; readonly reason: string; readonly removed?: number };

/** How many products a run may take away, with the runs of the 24 hours before it that were not approved. */
export interface ApprovedRemovals {
  readonly run: number;
  readonly removed: number;
}

/** How to compare a store with its source. */
export interface CheckRequest {
  readonly id: string;
  /** Compares everything that the store has of each product, not only which it has. */
  readonly deep: boolean;
  readonly repair: boolean;
  /** Whether a repair removes extra products beyond the removal limit. */
  readonly removesAll: boolean;
}

/** What was wrong with a product: another content, not there, or there although its source does not have it. */
export type StoreDifference = 'differing' | 'missing' | 'extra';

/** The counts of a comparison, in products. */
export type CheckCounts = Readonly<Record<'same' | StoreDifference | 'repaired' | 'held' | 'notJudged', number>>;

/** A product that was wrong. `differs`: the columns or parts with another content, for people. */
export interface CheckExample {
  readonly vbid: string;
  readonly difference: StoreDifference;
  readonly differs: readonly string[];
}

/** How a store compared with its source. */
export interface SinkCheck extends CheckRequest, CheckCounts {
  readonly at: number;
  /** The change as of which. */
  readonly cursor: number;
  /** What was compared, for people. */
  readonly compared: string;
  /** What the store allows. */
  readonly allows: 'repair' | 'comparison' | 'nothing';
  readonly examples: readonly CheckExample[];
  /** Why the comparison did not end; null if it did. */
  readonly error: string | null;
}

/**
 * A leg of delivery. Each restart of delivery begins one; relay/resume-position.ts has the table of legs and transitions.
 * - generation: its first one. Generations grow with every leg, and when parked events are freed
 * - what: `first`: each living product's newest change up to `to`, because the store is empty; `newest`: each product's;
 *   `replacement`: the same, and while nothing was confirmed the store may be one that another mirror has fed; `difference`:
 *   the products that differ from what the leg before made of the store up to its change `from`, as of `to`; `changes`:
 *   nothing but what comes after `from`. Every change follows.
 * - from, to: 0 where they mean nothing
 * - where, fields: the view, see view/view.ts; both null: every product whole
 * - tag: names the view in the ids of events; null while the sink never had a view
 */
export interface SinkLeg {
  readonly generation: number;
  readonly what: 'first' | 'newest' | 'replacement' | 'difference' | 'changes';
  readonly from: number;
  readonly to: number;
  readonly where: string | null;
  readonly fields: string | null;
  readonly tag: string | null;
}

/**
 * A downstream store, by the name in its setting. Kept when the settings drop it, so that it can resume later.
 * - address: kind and place without credentials
 * - identity: a sink with another identity is another store
 * - generation: grows when delivery restarts (a leg, freed events); fences of an older generation do not count
 * - cursor: newest `seq` confirmed by the store, on the last leg
 * - legs: the last fill and what followed it, oldest first; empty before the sink gets anything
 * - fill_end: the cursor at which the end of a fill removed what the store should not have; null before that, and while the
 *   store may have it again
 * - delivered, rate: events confirmed so far, and recent ones per second
 * - stopped_at: the refused event before which the sink stopped; null if it stopped for another reason
 * - held: why the sink is held; kept while an approval of it is to be carried out
 * - approved_run: unusual runs up to this one are delivered
 * - approved_removals: what runs may take away, the newest approval last. Empty until something of this sink was approved; run 0
 *   stands for what takes nothing away
 * - check_asked: the store is to be compared with its source; checked: how it compared the last time
 * - view_failures, view_failure: how often an expression failed for a product, and the last time
 */
export const sinks = sqliteTable('sinks', {
  id: integer('id').primaryKey(),
  name: text('name').notNull().unique('sinks_name'),
  kind: text('kind').notNull(),
  address: text('address').notNull(),
  identity: text('identity').notNull(),
  configured: integer('configured', { mode: 'boolean' }).notNull().default(true),
  state: text('state', { enum: ['running', 'paused', 'stopped', 'disabled', 'held'] })
    .notNull()
    .default('running'),
  generation: integer('generation').notNull().default(1),
  cursor: integer('cursor').notNull().default(0),
  legs: text('legs', { mode: 'json' }).$type<readonly SinkLeg[]>().notNull().default([]),
  fillEnd: integer('fill_end'),
  delivered: integer('delivered').notNull().default(0),
  rate: real('rate').notNull().default(0),
  ackedAt: integer('acked_at'),
  error: text('error'),
  errorAt: integer('error_at'),
  retryAt: integer('retry_at'),
  stoppedAt: integer('stopped_at'),
  held: text('held', { mode: 'json' }).$type<HeldSink>(),
  approvedRun: integer('approved_run').notNull().default(0),
  approvedRemovals: text('approved_removals', { mode: 'json' })
    .$type<readonly ApprovedRemovals[]>()
    .notNull()
    .default([]),
  checkAsked: text('check_asked', { mode: 'json' }).$type<CheckRequest>(),
  checked: text('checked', { mode: 'json' }).$type<SinkCheck>(),
  viewFailures: integer('view_failures').notNull().default(0),
  viewFailure: text('view_failure'),
});

/**
 * Events that a sink refused permanently, and later ones of the same products.
 * - state: refused; waiting for an earlier event of its product; ready to be delivered; delivered, and kept while the
 *   sink might lose it; skipped (never delivered)
 * - freed: the generation in which it became ready
 * - change: JSON of RecordedChange, because the log may be pruned meanwhile
 */
export const parked = sqliteTable(
  'parked',
  {
    sinkId: integer('sink_id').notNull(),
    seq: integer('seq').notNull(),
    vbid: text('vbid').notNull(),
    state: text('state', { enum: ['refused', 'waiting', 'ready', 'delivered', 'skipped'] }).notNull(),
    reason: text('reason').notNull(),
    at: integer('at').notNull(),
    freed: integer('freed').notNull().default(0),
    change: text('change').notNull(),
  },
  (table) => [primaryKey({ columns: [table.sinkId, table.seq] })],
);

/**
 * How a sink was, every few minutes for a day: pages draw it.
 * - behind: changes that it had not confirmed
 * - delivered: as in sinks
 */
export const sinkPoints = sqliteTable(
  'sink_points',
  {
    sinkId: integer('sink_id')
      .notNull()
      .references(() => sinks.id, { onDelete: 'cascade' }),
    at: integer('at').notNull(),
    behind: integer('behind').notNull(),
    delivered: integer('delivered').notNull(),
  },
  (table) => [primaryKey({ columns: [table.sinkId, table.at] })],
);

/** Records that a sink missed, because they were pruned while it did not hold the log: after `after`, up to `up_to`. */
export const sinkGaps = sqliteTable(
  'sink_gaps',
  {
    sinkId: integer('sink_id').notNull(),
    after: integer('after').notNull(),
    upTo: integer('up_to').notNull(),
    at: integer('at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.sinkId, table.after] })],
);
