ALTER TABLE `mirror` ADD `reread_from` integer;--> statement-breakpoint
ALTER TABLE `runs` ADD `answered_at` integer;