CREATE TABLE `schedule_ticks` (
	`kind` text PRIMARY KEY NOT NULL,
	`served_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `mirror` ADD `source_address` text;--> statement-breakpoint
ALTER TABLE `mirror` ADD `source_selection` text;--> statement-breakpoint
ALTER TABLE `mirror` ADD `next_request_at` real;--> statement-breakpoint
ALTER TABLE `runs` ADD `settles_at` integer;