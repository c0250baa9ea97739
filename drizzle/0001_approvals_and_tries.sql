ALTER TABLE `notices` ADD `first_tried_at` integer;--> statement-breakpoint
ALTER TABLE `sinks` ADD `approved_removals` text DEFAULT '[]' NOT NULL;