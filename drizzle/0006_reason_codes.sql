-- Reasons and doubts were sentences before.
UPDATE `runs` SET `reasons` = '[]' WHERE `reasons` LIKE '["%';
--> statement-breakpoint
UPDATE `checkpoints` SET `doubt` = json_object('code', 'contradiction', 'said', `doubt`) WHERE `doubt` IS NOT NULL;
