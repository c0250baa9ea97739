ALTER TABLE `sinks` ADD `legs` text DEFAULT '[]' NOT NULL;
--> statement-breakpoint
-- A sink that never had a view goes on. One that had is filled, and one that never reached its store begins.
UPDATE sinks SET legs = json_array(json_object('generation', began_generation,
  'what', iif(take_over, 'replacement', 'newest'), 'from', 0, 'to', backfill_to, 'where', NULL, 'fields', NULL, 'tag', NULL))
WHERE opened AND id NOT IN (SELECT sink_id FROM sink_views);
--> statement-breakpoint
UPDATE sinks SET generation = generation + 1, cursor = 0, fill_end = NULL, legs = json_array(json_object(
  'generation', generation + 1, 'what', 'newest', 'from', 0, 'to', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0),
  'where', NULL, 'fields', NULL, 'tag', lower(hex(randomblob(6)))))
WHERE opened AND id IN (SELECT sink_id FROM sink_views);
--> statement-breakpoint
UPDATE sinks SET generation = 0, legs = json_array(json_object('generation', 1, 'what', 'first', 'from', 0,
  'to', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'changes'), 0), 'where', NULL, 'fields', NULL, 'tag', NULL))
WHERE NOT opened;
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
