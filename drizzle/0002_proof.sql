CREATE TABLE `held_removals` (
	`run_id` integer NOT NULL,
	`product_id` integer NOT NULL,
	PRIMARY KEY(`run_id`, `product_id`)
);
--> statement-breakpoint
CREATE INDEX `held_removals_product` ON `held_removals` (`product_id`);--> statement-breakpoint
CREATE TABLE `missing` (
	`product_id` integer PRIMARY KEY NOT NULL,
	`runs` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `checkpoints` ADD `removed` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `checkpoints` ADD `doubt` text;--> statement-breakpoint
ALTER TABLE `checkpoints` ADD `seq` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `mirror` ADD `source_seen` integer;--> statement-breakpoint
ALTER TABLE `mirror` ADD `local_seen` integer;--> statement-breakpoint
ALTER TABLE `passes` ADD `kind` text DEFAULT 'list' NOT NULL;--> statement-breakpoint
ALTER TABLE `passes` ADD `root` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `passes` ADD `seam` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `passes` ADD `size_ignored` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `passes` ADD `reversed` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `runs` ADD `evidence` text;--> statement-breakpoint
UPDATE `passes` SET `kind` = CASE WHEN `from_time` IS NULL THEN 'list' ELSE 'delta' END, `root` = `pass`;
