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
 * A downstream store, by the name in its setting. Kept when the settings drop it, so that it can resume later.
 * - address: kind and place without credentials
 * - identity: a sink with another identity is another store
 * - generation: grows when delivery restarts (a replay, freed events); fences of an older generation do not count
 * - began_generation, began_cursor: where delivery last restarted; confirmations of a later generation still count
 * - opened: whether this store was opened since it was configured or moved
 * - cursor: newest `seq` confirmed by the store
 * - backfill_to: up to this seq only each product's newest change is delivered; 0 for none
 * - backfill_removed: tombstones are delivered too; a new store does not need them
 * - fill_end: the cursor at which the end of a fill removed what the store should not have; null before that, and while the
 *   store may have it again
 * - take_over: the store's content may be replaced although another mirror delivered it
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
  beganGeneration: integer('began_generation').notNull().default(1),
  beganCursor: integer('began_cursor').notNull().default(0),
  opened: integer('opened', { mode: 'boolean' }).notNull().default(false),
  cursor: integer('cursor').notNull().default(0),
  backfillTo: integer('backfill_to').notNull().default(0),
  backfillRemoved: integer('backfill_removed', { mode: 'boolean' }).notNull().default(false),
  fillEnd: integer('fill_end'),
  takeOver: integer('take_over', { mode: 'boolean' }).notNull().default(false),
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
 * The views of a sink: each from a generation on, until the next one. Before the first, it gets every product whole.
 * - where_sql, fields: see view/view.ts
 * - tag: names the view in the ids of events; null while the sink never had a view
 * - from_generation, from_cursor: the store has what that generation delivered up to that cursor; only products that differ
 *   are sent, up to `to_cursor`. Null if every product is sent. With `to_cursor` -1, every product is sent, too, but removals
 *   only of what the store may have: after a restore
 * - from_backfill, from_removed: `backfill_to` and `backfill_removed` of that generation: before the end of a fill, the store
 *   has an unknown rest; nothing if the fill was that of a new store
 * - exact: false if the store may have got more than `from_cursor`, because it does not keep its position
 * - unsure: products of which the store may have an older version
 */
export const sinkViews = sqliteTable(
  'sink_views',
  {
    sinkId: integer('sink_id')
      .notNull()
      .references(() => sinks.id, { onDelete: 'cascade' }),
    generation: integer('generation').notNull(),
    where: text('where_sql'),
    fields: text('fields'),
    tag: text('tag'),
    fromGeneration: integer('from_generation'),
    fromCursor: integer('from_cursor').notNull().default(0),
    fromBackfill: integer('from_backfill').notNull().default(0),
    fromRemoved: integer('from_removed', { mode: 'boolean' }).notNull().default(false),
    exact: integer('exact', { mode: 'boolean' }).notNull().default(true),
    toCursor: integer('to_cursor').notNull().default(0),
    unsure: text('unsure', { mode: 'json' }).$type<readonly string[]>().notNull().default([]),
  },
  (table) => [primaryKey({ columns: [table.sinkId, table.generation] })],
);

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
