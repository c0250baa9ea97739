ALTER TABLE `mirror` ADD `blocked_since` integer;--> statement-breakpoint
ALTER TABLE `runs` ADD `selection` text;