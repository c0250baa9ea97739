-- The tables, as drizzle-kit makes them of src/store/schema/schema.ts, which says what each column means; then what drizzle-kit
-- cannot express: an index, the words of products and the views.

CREATE TABLE `actions` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`who` text NOT NULL,
	`action` text NOT NULL,
	`target` text NOT NULL,
	`argument` integer,
	`state` text NOT NULL,
	`outcome` text,
	`ended_at` integer
);
--> statement-breakpoint
CREATE TABLE `changes` (
	`seq` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`run_id` integer NOT NULL,
	`op` integer NOT NULL,
	`product_id` integer NOT NULL,
	`prev_seq` integer,
	`before` text,
	`added` text
);
--> statement-breakpoint
CREATE INDEX `changes_product` ON `changes` (`product_id`);
--> statement-breakpoint
CREATE TABLE `checkpoints` (
	`run_id` integer NOT NULL,
	`pass` integer NOT NULL,
	`page` integer NOT NULL,
	`per_page` integer NOT NULL,
	`num_items` integer NOT NULL,
	`total_pages` integer NOT NULL,
	`requested_at` integer NOT NULL,
	`items` integer NOT NULL,
	`created` integer NOT NULL,
	`updated` integer NOT NULL,
	`removed` integer NOT NULL,
	`restored` integer NOT NULL,
	`rejected` integer NOT NULL,
	`requests` integer NOT NULL,
	`ids` blob NOT NULL,
	`doubt` text,
	`seq` integer NOT NULL,
	PRIMARY KEY(`run_id`, `pass`, `page`, `per_page`)
);
--> statement-breakpoint
CREATE TABLE `episodes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`topic` text NOT NULL,
	`message` text NOT NULL,
	`began_at` integer NOT NULL,
	`ended_at` integer
);
--> statement-breakpoint
CREATE TABLE `eras` (
	`first_seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `held_removals` (
	`run_id` integer NOT NULL,
	`product_id` integer NOT NULL,
	PRIMARY KEY(`run_id`, `product_id`)
);
--> statement-breakpoint
CREATE INDEX `held_removals_product` ON `held_removals` (`product_id`);
--> statement-breakpoint
CREATE TABLE `lease` (
	`id` integer PRIMARY KEY NOT NULL,
	`epoch` integer DEFAULT 0 NOT NULL,
	`holder` text,
	`expires_at` integer
);
--> statement-breakpoint
CREATE TABLE `mirror` (
	`id` integer PRIMARY KEY NOT NULL,
	`incarnation` text NOT NULL,
	`watermark` integer,
	`living` integer DEFAULT 0 NOT NULL,
	`blocked_since` integer,
	`blocked_until` integer,
	`source_seen` integer,
	`local_seen` integer,
	`pruned_to` integer DEFAULT 0 NOT NULL,
	`source_address` text,
	`source_selection` text,
	`next_request_at` real,
	`learned_rate` text,
	`learned_page` text,
	`retry_at` integer,
	`retry_kind` text,
	`retry_reason` text,
	`file_state` text,
	`pruned_counts` text
);
--> statement-breakpoint
CREATE TABLE `missing` (
	`product_id` integer PRIMARY KEY NOT NULL,
	`runs` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `notices` (
	`channel` text NOT NULL,
	`episode_id` integer NOT NULL,
	`phase` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`next_try_at` integer NOT NULL,
	`delivered_at` integer,
	`error` text,
	PRIMARY KEY(`channel`, `episode_id`, `phase`)
);
--> statement-breakpoint
CREATE TABLE `parked` (
	`sink_id` integer NOT NULL,
	`seq` integer NOT NULL,
	`vbid` text NOT NULL,
	`state` text NOT NULL,
	`reason` text NOT NULL,
	`at` integer NOT NULL,
	`freed` integer DEFAULT 0 NOT NULL,
	`change` text NOT NULL,
	PRIMARY KEY(`sink_id`, `seq`)
);
--> statement-breakpoint
CREATE TABLE `passes` (
	`run_id` integer NOT NULL,
	`pass` integer NOT NULL,
	`from_time` integer,
	`source_time` integer,
	`num_items` integer,
	`per_page` integer NOT NULL,
	`kind` text NOT NULL,
	`root` integer NOT NULL,
	`seam` integer NOT NULL,
	`size_ignored` integer NOT NULL,
	`reversed` integer NOT NULL,
	PRIMARY KEY(`run_id`, `pass`)
);
--> statement-breakpoint
CREATE TABLE `products` (
	`id` integer PRIMARY KEY NOT NULL,
	`vbid` text NOT NULL,
	`title` text,
	`kind` text,
	`format` text,
	`publisher` text,
	`print_isbn` text,
	`e_isbn` text,
	`first_seen_at` integer,
	`changed_at` integer NOT NULL,
	`changed_seq` integer NOT NULL,
	`removed_at` integer,
	`withdrawn` integer NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `products_vbid` ON `products` (`vbid`);
--> statement-breakpoint
CREATE INDEX `products_print_isbn` ON `products` (`print_isbn`) WHERE print_isbn IS NOT NULL;
--> statement-breakpoint
CREATE INDEX `products_e_isbn` ON `products` (`e_isbn`) WHERE e_isbn IS NOT NULL;
--> statement-breakpoint
CREATE INDEX `products_changed_seq` ON `products` (`changed_seq`);
--> statement-breakpoint
CREATE TABLE `rejected` (
	`run_id` integer NOT NULL,
	`pass` integer NOT NULL,
	`page` integer NOT NULL,
	`per_page` integer NOT NULL,
	`position` integer NOT NULL,
	`reason` text NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`run_id`, `pass`, `page`, `per_page`, `position`)
);
--> statement-breakpoint
CREATE TABLE `runs` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`tick` text,
	`from_time` integer,
	`source_time` integer,
	`selection` text NOT NULL,
	`started_at` integer NOT NULL,
	`finished_at` integer,
	`settles_at` integer,
	`settle_left` integer,
	`proof` text,
	`reasons` text DEFAULT '[]' NOT NULL,
	`pages` integer DEFAULT 0 NOT NULL,
	`items` integer DEFAULT 0 NOT NULL,
	`created` integer DEFAULT 0 NOT NULL,
	`updated` integer DEFAULT 0 NOT NULL,
	`removed` integer DEFAULT 0 NOT NULL,
	`restored` integer DEFAULT 0 NOT NULL,
	`missing` integer DEFAULT 0 NOT NULL,
	`rejected` integer DEFAULT 0 NOT NULL,
	`requests` integer DEFAULT 0 NOT NULL,
	`error` text,
	`emptied` text,
	`unusual` text,
	`evidence` text,
	`used_bytes` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `runs_tick` ON `runs` (`tick`);
--> statement-breakpoint
CREATE TABLE `schedule_ticks` (
	`kind` text PRIMARY KEY NOT NULL,
	`served_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `sink_gaps` (
	`sink_id` integer NOT NULL,
	`after` integer NOT NULL,
	`up_to` integer NOT NULL,
	`at` integer NOT NULL,
	PRIMARY KEY(`sink_id`, `after`)
);
--> statement-breakpoint
CREATE TABLE `sink_views` (
	`sink_id` integer NOT NULL,
	`generation` integer NOT NULL,
	`where_sql` text,
	`fields` text,
	`tag` text,
	`from_generation` integer,
	`from_cursor` integer DEFAULT 0 NOT NULL,
	`from_backfill` integer DEFAULT 0 NOT NULL,
	`from_removed` integer DEFAULT false NOT NULL,
	`exact` integer DEFAULT true NOT NULL,
	`to_cursor` integer DEFAULT 0 NOT NULL,
	`unsure` text DEFAULT '[]' NOT NULL,
	PRIMARY KEY(`sink_id`, `generation`),
	FOREIGN KEY (`sink_id`) REFERENCES `sinks`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `sinks` (
	`id` integer PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`address` text NOT NULL,
	`identity` text NOT NULL,
	`configured` integer DEFAULT true NOT NULL,
	`state` text DEFAULT 'running' NOT NULL,
	`generation` integer DEFAULT 1 NOT NULL,
	`began_generation` integer DEFAULT 1 NOT NULL,
	`began_cursor` integer DEFAULT 0 NOT NULL,
	`opened` integer DEFAULT false NOT NULL,
	`cursor` integer DEFAULT 0 NOT NULL,
	`backfill_to` integer DEFAULT 0 NOT NULL,
	`backfill_removed` integer DEFAULT false NOT NULL,
	`take_over` integer DEFAULT false NOT NULL,
	`delivered` integer DEFAULT 0 NOT NULL,
	`rate` real DEFAULT 0 NOT NULL,
	`acked_at` integer,
	`error` text,
	`error_at` integer,
	`retry_at` integer,
	`stopped_at` integer,
	`held` text,
	`approved_run` integer DEFAULT 0 NOT NULL,
	`check_asked` text,
	`checked` text,
	`view_failures` integer DEFAULT 0 NOT NULL,
	`view_failure` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sinks_name` ON `sinks` (`name`);
--> statement-breakpoint
-- The relay asks for unusual runs before each batch.
CREATE INDEX runs_unusual ON runs (id) WHERE unusual IS NOT NULL;
--> statement-breakpoint
-- `catalog` by changed_at. The expression is the view's column to the letter, or SQLite does not use it.
CREATE INDEX products_changed_at ON products (strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch'));
--> statement-breakpoint
-- Words of products, by products.id. Contentless: the words are in the body already.
CREATE VIRTUAL TABLE products_fts USING fts5(
  title, contributors, publisher, identifiers,
  content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2"
);
--> statement-breakpoint
-- The views are what users may rely on; those of products are in src/store/schema/product-views.ts. Times become ISO 8601 here.
-- They run on SQLite 3.38: readers bring their own.

-- `before` of a removal is the last known product: the tombstone has it until the product is restored.
CREATE VIEW change_log AS
SELECT
  changes.seq,
  strftime('%Y-%m-%dT%H:%M:%fZ', changes.at / 1000.0, 'unixepoch') AS at,
  changes.run_id,
  CASE changes.op WHEN 0 THEN 'created' WHEN 1 THEN 'updated' WHEN 2 THEN 'removed' ELSE 'restored' END AS op,
  products.vbid,
  CASE WHEN changes.op = 2 AND products.changed_seq = changes.seq THEN products.body ELSE changes.before END AS before,
  CASE WHEN changes.op IN (1, 3) THEN (
    SELECT json_group_array('/' || replace(replace(field, '~', '~0'), '/', '~1')) FROM (
      SELECT key AS field FROM json_each(changes.before)
      UNION ALL SELECT value FROM json_each(coalesce(changes.added, '[]'))
    )
  ) ELSE '[]' END AS changed
FROM changes JOIN products ON products.id = changes.product_id;
--> statement-breakpoint
-- Counts of an unfinished run are the sums of its checkpoints so far.
CREATE VIEW run_log AS
SELECT
  runs.id, runs.kind,
  strftime('%Y-%m-%dT%H:%M:%fZ', runs.from_time / 1000.0, 'unixepoch') AS from_time,
  strftime('%Y-%m-%dT%H:%M:%fZ', runs.source_time / 1000.0, 'unixepoch') AS source_time,
  strftime('%Y-%m-%dT%H:%M:%fZ', runs.started_at / 1000.0, 'unixepoch') AS started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', runs.finished_at / 1000.0, 'unixepoch') AS finished_at,
  runs.state, runs.proof,
  coalesce(sums.pages, runs.pages) AS pages,
  coalesce(sums.items, runs.items) AS items,
  coalesce(sums.created, runs.created) AS created,
  coalesce(sums.updated, runs.updated) AS updated,
  runs.removed,
  coalesce(sums.restored, runs.restored) AS restored,
  runs.missing,
  coalesce(sums.rejected, runs.rejected) AS rejected,
  coalesce(sums.requests, runs.requests) AS requests,
  runs.error,
  runs.emptied, runs.unusual
FROM runs LEFT JOIN (
  SELECT run_id, count(*) AS pages, sum(items) AS items, sum(created) AS created, sum(updated) AS updated,
    sum(restored) AS restored, sum(rejected) AS rejected, sum(requests) AS requests
  FROM checkpoints GROUP BY run_id
) AS sums ON sums.run_id = runs.id AND runs.finished_at IS NULL;
--> statement-breakpoint
CREATE VIEW rejected_items AS SELECT run_id, page, position, reason, body FROM rejected;
