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
	`restored` integer NOT NULL,
	`rejected` integer NOT NULL,
	`requests` integer NOT NULL,
	`ids` blob NOT NULL,
	PRIMARY KEY(`run_id`, `pass`, `page`, `per_page`)
);
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
	`blocked_until` integer
);
--> statement-breakpoint
CREATE TABLE `passes` (
	`run_id` integer NOT NULL,
	`pass` integer NOT NULL,
	`from_time` integer,
	`source_time` integer,
	`num_items` integer,
	`per_page` integer NOT NULL,
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
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `products_vbid` ON `products` (`vbid`);--> statement-breakpoint
CREATE INDEX `products_print_isbn` ON `products` (`print_isbn`) WHERE print_isbn IS NOT NULL;--> statement-breakpoint
CREATE INDEX `products_e_isbn` ON `products` (`e_isbn`) WHERE e_isbn IS NOT NULL;--> statement-breakpoint
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
	`started_at` integer NOT NULL,
	`finished_at` integer,
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
	`error` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `runs_tick` ON `runs` (`tick`);