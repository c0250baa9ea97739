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
CREATE TABLE `sink_gaps` (
	`sink_id` integer NOT NULL,
	`after` integer NOT NULL,
	`up_to` integer NOT NULL,
	`at` integer NOT NULL,
	PRIMARY KEY(`sink_id`, `after`)
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
	`stopped_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sinks_name` ON `sinks` (`name`);--> statement-breakpoint
ALTER TABLE `mirror` ADD `pruned_to` integer DEFAULT 0 NOT NULL;