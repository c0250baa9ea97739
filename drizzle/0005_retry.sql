ALTER TABLE `mirror` ADD `retry_at` integer;--> statement-breakpoint
ALTER TABLE `mirror` ADD `retry_kind` text;--> statement-breakpoint
ALTER TABLE `mirror` ADD `retry_reason` text;