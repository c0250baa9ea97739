CREATE TABLE `actions` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`who` text NOT NULL,
	`action` text NOT NULL,
	`target` text NOT NULL,
	`argument` integer,
	`state` text NOT NULL,
	`outcome` text,
	`ended_at` integer
);
--> statement-breakpoint
CREATE TABLE `episodes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`topic` text NOT NULL,
	`message` text NOT NULL,
	`began_at` integer NOT NULL,
	`ended_at` integer
);
--> statement-breakpoint
CREATE TABLE `notices` (
	`channel` text NOT NULL,
	`episode_id` integer NOT NULL,
	`phase` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`next_try_at` integer NOT NULL,
	`delivered_at` integer,
	`error` text,
	PRIMARY KEY(`channel`, `episode_id`, `phase`)
);
