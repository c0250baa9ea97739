CREATE TABLE `eras` (
	`first_seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL
);
