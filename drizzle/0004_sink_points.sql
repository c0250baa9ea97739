CREATE TABLE `sink_points` (
	`sink_id` integer NOT NULL,
	`at` integer NOT NULL,
	`behind` integer NOT NULL,
	`delivered` integer NOT NULL,
	PRIMARY KEY(`sink_id`, `at`),
	FOREIGN KEY (`sink_id`) REFERENCES `sinks`(`id`) ON UPDATE no action ON DELETE cascade
);
