ALTER TABLE `sinks` ADD `legs` text DEFAULT '[]' NOT NULL;
--> statement-breakpoint
-- A sink that never had a view goes on. One that had is filled.
UPDATE sinks SET legs = json_array(json_object('generation', began_generation,
  'what', iif(take_over, 'replacement', 'newest'), 'from', 0, 'to', backfill_to, 'where', NULL, 'fields', NULL, 'tag', NULL))
WHERE opened AND id NOT IN (SELECT sink_id FROM sink_views);
--> statement-breakpoint
DROP TABLE `sink_views`;
--> statement-breakpoint
ALTER TABLE `sinks` DROP COLUMN `began_generation`;
--> statement-breakpoint
ALTER TABLE `sinks` DROP COLUMN `began_cursor`;
--> statement-breakpoint
ALTER TABLE `sinks` DROP COLUMN `opened`;
--> statement-breakpoint
ALTER TABLE `sinks` DROP COLUMN `backfill_to`;
--> statement-breakpoint
ALTER TABLE `sinks` DROP COLUMN `backfill_removed`;
--> statement-breakpoint
ALTER TABLE `sinks` DROP COLUMN `take_over`;
