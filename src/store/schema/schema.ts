import type { Doubt, Reason } from '@catchword/catalog/reasons';
import { CHANGE_OPS, type Evidence, type Unusual } from '@catchword/catalog/run-types';
import { blob, index, integer, primaryKey, real, sql, sqliteTable, text } from './drizzle.ts';

/*
 * Tables are ours to change; users read the views (drizzle/*.sql; those of products: product-views.ts). Times are
 * milliseconds since 1970. Do not use generated columns: looked-up values are stored, so that reading them does not
 * parse JSON.
 */

/**
 * One row (id 1): the state of the whole mirror.
 * - incarnation: random id of this file's history
 * - watermark: source time up to which every change is in the mirror; null before the first complete run
 * - living: number of products without a tombstone
 * - blocked_since, blocked_until: the pause that the source asked for; null if there is none
 * - source_seen, local_seen: the source's clock and this machine's when the watermark was last set
 * - reread_from: an earlier time from which the next delta is to tell again; null: none
 * - pruned_to: up to here the change log holds only each product's newest change as of then
 * - source_address, source_selection: which catalog is mirrored (see source.ts); null before the first run
 * - next_request_at: the earliest next request under the rate limit, for all processes; null if none was reserved
 * - learned_rate: JSON of LearnedRate; null until the source refuses a request of a process without a configured limit
 * - learned_page: JSON of LearnedPage; null until a list was read in pages of a size that the source keeps
 * - retry_at, retry_kind, retry_reason: the failed run that is to be retried; null if there is none
 * - pruned_counts: JSON of RunCounts, sums over the runs that were deleted; null before the first
 * - file_state: what the last write or checkpoint noted of the file (see file-guard.ts); null before the first write
 */
export const mirror = sqliteTable('mirror', {
  id: integer('id').primaryKey(),
  incarnation: text('incarnation').notNull(),
  watermark: integer('watermark'),
  living: integer('living').notNull().default(0),
  blockedSince: integer('blocked_since'),
  blockedUntil: integer('blocked_until'),
  sourceSeen: integer('source_seen'),
  rereadFrom: integer('reread_from'),
  localSeen: integer('local_seen'),
  prunedTo: integer('pruned_to').notNull().default(0),
  sourceAddress: text('source_address'),
  sourceSelection: text('source_selection'),
  nextRequestAt: real('next_request_at'),
  learnedRate: text('learned_rate'),
  learnedPage: text('learned_page'),
  retryAt: integer('retry_at'),
  retryKind: text('retry_kind', { enum: ['full', 'delta'] }),
  retryReason: text('retry_reason'),
  fileState: text('file_state'),
  prunedCounts: text('pruned_counts'),
});

/** The newest scheduled moment of each kind that was served: one that was missed while nothing ran is made up for. */
export const scheduleTicks = sqliteTable('schedule_ticks', {
  kind: text('kind', { enum: ['full', 'delta'] }).primaryKey(),
  servedAt: integer('served_at').notNull(),
});

/**
 * The leases of the keeper (id 1), of the relay (id 2) and of the active daemon (id 3); see writers.ts.
 * - epoch: grows by one with every holder; a writer with an older one is rejected
 * - holder: JSON of the holding process, null when free
 * - expires_at: when a holder that stops renewing loses the lease
 */
export const lease = sqliteTable('lease', {
  id: integer('id').primaryKey(),
  epoch: integer('epoch').notNull().default(0),
  holder: text('holder'),
  expiresAt: integer('expires_at'),
});

/**
 * - id: small and dense, so that a checkpoint can store each id of a page in a byte or two
 * - vbid: looked up for every item of every page
 * - first_seen_at: null while equal to changed_at, as for most of a catalog
 * - changed_seq: head of the product's chain of changes (changes.prev_seq leads on)
 * - removed_at: set on a tombstone
 * - withdrawn: the source says `distributable: false`. Stored, because a million bodies take 8 s to parse; before `body`,
 *   because they take 1 s to skip
 */
export const products = sqliteTable(
  'products',
  {
    id: integer('id').primaryKey(),
    vbid: text('vbid').notNull().unique('products_vbid'),
    title: text('title'),
    kind: text('kind'),
    format: text('format'),
    publisher: text('publisher'),
    printIsbn: text('print_isbn'),
    eIsbn: text('e_isbn'),
    firstSeenAt: integer('first_seen_at'),
    changedAt: integer('changed_at').notNull(),
    changedSeq: integer('changed_seq').notNull(),
    removedAt: integer('removed_at'),
    withdrawn: integer('withdrawn', { mode: 'boolean' }).notNull(),
    body: text('body').notNull(),
  },
  (table) => [
    // `catalog` by ISBN.
    index('products_print_isbn').on(table.printIsbn).where(sql`print_isbn IS NOT NULL`),
    index('products_e_isbn').on(table.eIsbn).where(sql`e_isbn IS NOT NULL`),
    // `catalog` by changed_seq: products that a reader has not seen yet.
    index('products_changed_seq').on(table.changedSeq),
    // `catalog` by changed_at: in drizzle/0000_mirror.sql, because drizzle-kit writes expressions with commas wrongly.
  ],
);

/**
 * The ordered log. A record holds what is needed to revert a version to the previous one, not the version itself.
 * - op: 0 created, 1 updated, 2 removed, 3 restored
 * - prev_seq: the same product's previous change; null if there is none
 * - before: JSON object, previous values of top-level fields that changed or vanished; of a removal, {} while the
 *   tombstone holds the last known product, and that product once it is restored
 * - added: JSON array, top-level fields that the previous version did not have; null if there are none
 */
export const changes = sqliteTable(
  'changes',
  {
    seq: integer('seq').primaryKey({ autoIncrement: true }),
    at: integer('at').notNull(),
    runId: integer('run_id').notNull(),
    op: integer('op').notNull(),
    productId: integer('product_id').notNull(),
    prevSeq: integer('prev_seq'),
    before: text('before'),
    added: text('added'),
  },
  (table) => [
    // `change_log` by vbid.
    index('changes_product').on(table.productId),
  ],
);

/**
 * Which opening of the mirror recorded a change: the changes from `first_seq` on, up to the next era. Its id is part of the
 * ids of their events: a mirror that was restored from a backup assigns the same numbers again, in another era. Each opening
 * notes its era before its first change. Never pruned, because readers may keep an id for any time.
 * - id: random, of the opening
 */
export const eras = sqliteTable('eras', {
  firstSeq: integer('first_seq').primaryKey(),
  id: text('id').notNull(),
});

/** Columns that count, which are 0 at first. */
function counts<Name extends string>(...names: readonly Name[]) {
  const count = (name: Name) => integer(name).notNull().default(0);
  return Object.fromEntries(names.map((name) => [name, count(name)])) as Record<Name, ReturnType<typeof count>>;
}

/** The columns of RunCounts, which is `missing` and sums over the checkpoints of a run. */
export const COUNTS = ['pages', 'items', ...CHANGE_OPS, 'missing', 'rejected', 'requests'] as const;

/**
 * See Run in catalog/run-types.ts.
 * - tick: the schedule's moment that started it (`tickName`); null when started by hand
 * - answered_at: this machine's clock when the source's was source_time
 * - selection: which products it reads, as in mirror.source_selection
 * - evidence: of a run that has read everything; before, and for good if it fails, only the seams that it has noted
 * - settle_left: how much of the wait until settles_at is left, in milliseconds, counted by timers
 * - used_bytes: of the file when the run ended, without its free pages; null if it did not complete
 * - emptied, unusual: JSON, noted with the pages (sync/loss-brake.ts); the index runs_unusual is in drizzle/0000_mirror.sql
 * - counts are set when the run ends; until then the checkpoints have them, but `missing` is the number so far
 */
export const runs = sqliteTable('runs', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  kind: text('kind', { enum: ['full', 'delta'] }).notNull(),
  state: text('state', { enum: ['planned', 'reading', 'complete', 'held', 'failed', 'cancelled'] }).notNull(),
  tick: text('tick').unique('runs_tick'),
  from: integer('from_time'),
  sourceTime: integer('source_time'),
  answeredAt: integer('answered_at'),
  selection: text('selection').notNull(),
  startedAt: integer('started_at').notNull(),
  finishedAt: integer('finished_at'),
  settlesAt: integer('settles_at'),
  settleLeft: integer('settle_left'),
  proof: text('proof', { enum: ['sealed', 'open'] }),
  reasons: text('reasons', { mode: 'json' }).$type<readonly Reason[]>().notNull().default([]),
  ...counts(...COUNTS),
  error: text('error'),
  emptied: text('emptied', { mode: 'json' }).$type<Readonly<Record<string, number>>>(),
  unusual: text('unusual', { mode: 'json' }).$type<Unusual>(),
  evidence: text('evidence', { mode: 'json' }).$type<Evidence | Pick<Evidence, 'lists'>>(),
  usedBytes: integer('used_bytes'),
});

const OF_PASS = { runId: integer('run_id').notNull(), pass: integer('pass').notNull() };
const OF_WINDOW = { ...OF_PASS, page: integer('page').notNull(), perPage: integer('per_page').notNull() };

/**
 * The readings of a list, or of part of it, in order: each starts when all windows of the previous one have a
 * checkpoint.
 * - kind: catchup is a delta from long before the run, which does not show what changed while it read; settle is the
 *   delta that is read after the run has settled
 * - root: the pass whose seams this one repairs; otherwise its own number
 * - from_time: the time that the delta starts from; null for the whole list
 * - source_time, num_items: the source's clock and the total in the first response
 * - per_page: the largest window of the pass; with size_ignored, the size that the source answers instead
 * - seam: products that neighbouring windows share; 0: plain pages
 * - reversed: read from the end of the list to its start
 */
export const passes = sqliteTable(
  'passes',
  {
    ...OF_PASS,
    from: integer('from_time'),
    sourceTime: integer('source_time'),
    numItems: integer('num_items'),
    perPage: integer('per_page').notNull(),
    kind: text('kind', { enum: ['list', 'delta', 'catchup', 'repair', 'lookup', 'settle'] }).notNull(),
    root: integer('root').notNull(),
    seam: integer('seam').notNull(),
    sizeIgnored: integer('size_ignored', { mode: 'boolean' }).notNull(),
    reversed: integer('reversed', { mode: 'boolean' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.pass] })],
);

/**
 * Applied windows of passes. Kept until a later run completes.
 * - page: of a point lookup, the product's id
 * - ids: product ids in the order of the response (see ids.ts); 0 for a rejected item
 * - requested_at: the moment that the window shows (`momentOf`); an earlier read does not overwrite a later one
 * - requests: attempts, including the successful one
 * - doubt: why the answer does not count as whole
 * - seq: the newest change right after the window was applied
 */
export const checkpoints = sqliteTable(
  'checkpoints',
  {
    ...OF_WINDOW,
    numItems: integer('num_items').notNull(),
    totalPages: integer('total_pages').notNull(),
    requestedAt: integer('requested_at').notNull(),
    items: integer('items').notNull(),
    created: integer('created').notNull(),
    updated: integer('updated').notNull(),
    removed: integer('removed').notNull(),
    restored: integer('restored').notNull(),
    rejected: integer('rejected').notNull(),
    requests: integer('requests').notNull(),
    ids: blob('ids', { mode: 'buffer' }).notNull(),
    doubt: text('doubt', { mode: 'json' }).$type<Doubt>(),
    seq: integer('seq').notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.pass, table.page, table.perPage] })],
);

/** Items that failed validation. Kept for 30 days, or as long as their run if that is shorter. */
export const rejectedItems = sqliteTable(
  'rejected',
  {
    ...OF_WINDOW,
    position: integer('position').notNull(),
    reason: text('reason').notNull(),
    body: text('body').notNull(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.pass, table.page, table.perPage, table.position] })],
);

/** Living products that so many full runs in a row did not see, without a proof that they are gone. */
export const missing = sqliteTable('missing', {
  productId: integer('product_id').primaryKey(),
  runs: integer('runs').notNull(),
});

/** Products that a held run would remove. The list only shrinks, until an operator or a full run decides. */
export const heldRemovals = sqliteTable(
  'held_removals',
  { runId: integer('run_id').notNull(), productId: integer('product_id').notNull() },
  (table) => [
    primaryKey({ columns: [table.runId, table.productId] }),
    // A delta takes the products that it sees off every list.
    index('held_removals_product').on(table.productId),
  ],
);

/**
 * What operators decided, on the page or with a command. See operator/decision-rows.ts.
 * - who: the name that the operator gave and the address of the browser, or the user of the command
 * - target: the number of a run, the name of a sink, or the kind of a run to start
 * - argument: a `seq`; null if the action needs none
 * - state: asked until the keeper takes it; done; failed
 * - outcome: what was done, or why it failed, in one sentence
 */
export const actions = sqliteTable('actions', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  at: integer('at').notNull(),
  who: text('who').notNull(),
  action: text('action').notNull(),
  target: text('target').notNull(),
  argument: integer('argument'),
  state: text('state', { enum: ['asked', 'done', 'failed'] }).notNull(),
  outcome: text('outcome'),
  endedAt: integer('ended_at'),
});

/**
 * Something that is wrong, from when it was noticed to when it was over. See notify.
 * - topic: names the problem; at most one open episode of each
 */
export const episodes = sqliteTable('episodes', {
  id: integer('id').primaryKey({ autoIncrement: true }),
  topic: text('topic').notNull(),
  message: text('message').notNull(),
  beganAt: integer('began_at').notNull(),
  endedAt: integer('ended_at'),
});

/**
 * Messages about episodes: one to each channel when an episode begins, one when it ends. Kept as long as the episode.
 * - next_try_at: 0 if the message was given up
 * - first_tried_at: from when on it is tried, without days on which no daemon ran; null before the first failure
 * - error: why the last try failed; null once it is delivered
 */
export const notices = sqliteTable(
  'notices',
  {
    channel: text('channel').notNull(),
    episodeId: integer('episode_id').notNull(),
    phase: text('phase', { enum: ['began', 'ended'] }).notNull(),
    attempts: integer('attempts').notNull().default(0),
    nextTryAt: integer('next_try_at').notNull(),
    firstTriedAt: integer('first_tried_at'),
    deliveredAt: integer('delivered_at'),
    error: text('error'),
  },
  (table) => [primaryKey({ columns: [table.channel, table.episodeId, table.phase] })],
);
