-- What users may rely on. Times become ISO 8601 here, and only here.

-- `catalog` by changed_at. The expression is the view's column to the letter, or SQLite does not use it.
CREATE INDEX products_changed_at ON products (strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch'));
--> statement-breakpoint
CREATE VIEW catalog AS
SELECT
  vbid, title, kind, format, publisher, print_isbn, e_isbn, body,
  strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(first_seen_at, changed_at) / 1000.0, 'unixepoch') AS first_seen_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch') AS changed_at,
  changed_seq
FROM products
WHERE removed_at IS NULL;
--> statement-breakpoint
CREATE VIEW change_log AS
SELECT
  changes.seq,
  strftime('%Y-%m-%dT%H:%M:%fZ', changes.at / 1000.0, 'unixepoch') AS at,
  changes.run_id,
  CASE changes.op WHEN 0 THEN 'created' WHEN 1 THEN 'updated' WHEN 2 THEN 'removed' ELSE 'restored' END AS op,
  products.vbid,
  changes.before
FROM changes JOIN products ON products.id = changes.product_id;
--> statement-breakpoint
-- Counts of an unfinished run are the sums of its checkpoints so far.
CREATE VIEW run_log AS
SELECT
  runs.id, runs.kind,
  strftime('%Y-%m-%dT%H:%M:%fZ', runs.from_time / 1000.0, 'unixepoch') AS from_time,
  strftime('%Y-%m-%dT%H:%M:%fZ', runs.source_time / 1000.0, 'unixepoch') AS source_time,
  strftime('%Y-%m-%dT%H:%M:%fZ', runs.started_at / 1000.0, 'unixepoch') AS started_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', runs.finished_at / 1000.0, 'unixepoch') AS finished_at,
  runs.state, runs.proof,
  coalesce(sums.pages, runs.pages) AS pages,
  coalesce(sums.items, runs.items) AS items,
  coalesce(sums.created, runs.created) AS created,
  coalesce(sums.updated, runs.updated) AS updated,
  runs.removed,
  coalesce(sums.restored, runs.restored) AS restored,
  runs.missing,
  coalesce(sums.rejected, runs.rejected) AS rejected,
  coalesce(sums.requests, runs.requests) AS requests,
  runs.error
FROM runs LEFT JOIN (
  SELECT run_id, count(*) AS pages, sum(items) AS items, sum(created) AS created, sum(updated) AS updated,
    sum(restored) AS restored, sum(rejected) AS rejected, sum(requests) AS requests
  FROM checkpoints GROUP BY run_id
) AS sums ON sums.run_id = runs.id AND runs.finished_at IS NULL;
--> statement-breakpoint
CREATE VIEW rejected_items AS SELECT run_id, page, position, reason, body FROM rejected;
--> statement-breakpoint
-- Words of products, by products.id. Contentless: the words are in the body already.
CREATE VIRTUAL TABLE products_fts USING fts5(
  title, contributors, publisher, identifiers,
  content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2"
);
