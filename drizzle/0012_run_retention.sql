ALTER TABLE `mirror` ADD `pruned_counts` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `used_bytes` integer;