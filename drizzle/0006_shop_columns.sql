ALTER TABLE `products` ADD `withdrawn` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `products_changed_seq` ON `products` (`changed_seq`);--> statement-breakpoint
CREATE INDEX `changes_product` ON `changes` (`product_id`);--> statement-breakpoint
-- What users may rely on. Times become ISO 8601 here, and only here. Runs on SQLite 3.38: readers bring their own.

UPDATE products SET withdrawn = 1
WHERE json_type(body, '$.distributable') = 'false' OR json_extract(body, '$.distributable') = 'false';
--> statement-breakpoint
DROP VIEW catalog;
--> statement-breakpoint
-- A text is null where the source says nothing, or "" or "null"; a number is given as text.
CREATE VIEW catalog AS
SELECT
  vbid, title, kind, format, publisher, print_isbn, e_isbn, body,
  strftime('%Y-%m-%dT%H:%M:%fZ', coalesce(first_seen_at, changed_at) / 1000.0, 'unixepoch') AS first_seen_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', changed_at / 1000.0, 'unixepoch') AS changed_at,
  changed_seq,
  id,
  NOT withdrawn AS distributable,
  CASE json_type(body, '$.subtitle')
    WHEN 'text' THEN nullif(nullif(json_extract(body, '$.subtitle'), ''), 'null')
    WHEN 'integer' THEN json_extract(body, '$.subtitle') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(body, '$.subtitle'))
  END AS subtitle,
  (
    SELECT group_concat(name, '; ') FROM (
      SELECT CASE
        WHEN one.type = 'text' THEN nullif(nullif(one.value, ''), 'null')
        WHEN one.type IN ('integer', 'real') THEN one.value || ''
        WHEN one.type = 'object' AND json_type(one.value, '$.name') = 'text' AND json_extract(one.value, '$.name') NOT IN ('', 'null')
          THEN json_extract(one.value, '$.name')
        WHEN one.type = 'object' AND json_type(one.value, '$.value') = 'text' AND json_extract(one.value, '$.value') NOT IN ('', 'null')
          THEN json_extract(one.value, '$.value')
      END AS name
      FROM json_each(
        CASE json_type(body, '$.contributors') WHEN 'array' THEN json_extract(body, '$.contributors') ELSE '[]' END
      ) AS one
    )
  ) AS contributors,
  CASE json_type(body, '$.language')
    WHEN 'text' THEN nullif(nullif(json_extract(body, '$.language'), ''), 'null')
    WHEN 'integer' THEN json_extract(body, '$.language') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(body, '$.language'))
  END AS language,
  CASE json_type(body, '$.edition')
    WHEN 'text' THEN nullif(nullif(json_extract(body, '$.edition'), ''), 'null')
    WHEN 'integer' THEN json_extract(body, '$.edition') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(body, '$.edition'))
  END AS edition,
  CASE json_type(body, '$.resource_links.cover_image')
    WHEN 'text' THEN nullif(nullif(json_extract(body, '$.resource_links.cover_image'), ''), 'null')
    WHEN 'integer' THEN json_extract(body, '$.resource_links.cover_image') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(body, '$.resource_links.cover_image'))
  END AS cover_url,
  CASE json_type(body, '$.on_sale_date')
    WHEN 'text' THEN nullif(nullif(json_extract(body, '$.on_sale_date'), ''), 'null')
    WHEN 'integer' THEN json_extract(body, '$.on_sale_date') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(body, '$.on_sale_date'))
  END AS on_sale_date,
  CASE json_type(body, '$.off_sale_date')
    WHEN 'text' THEN nullif(nullif(json_extract(body, '$.off_sale_date'), ''), 'null')
    WHEN 'integer' THEN json_extract(body, '$.off_sale_date') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(body, '$.off_sale_date'))
  END AS off_sale_date
FROM products
WHERE removed_at IS NULL;
--> statement-breakpoint
-- A row for each price of each variant of a living product. `sku` and `duration` are the variant's, the rest is the price's.
CREATE VIEW prices AS
SELECT
  vbid,
  CASE json_type(variant, '$.sku')
    WHEN 'text' THEN nullif(nullif(json_extract(variant, '$.sku'), ''), 'null')
    WHEN 'integer' THEN json_extract(variant, '$.sku') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(variant, '$.sku'))
  END AS sku,
  CASE json_type(price, '$.type')
    WHEN 'text' THEN nullif(nullif(json_extract(price, '$.type'), ''), 'null')
    WHEN 'integer' THEN json_extract(price, '$.type') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(price, '$.type'))
  END AS type,
  CASE json_type(variant, '$.duration')
    WHEN 'text' THEN nullif(nullif(json_extract(variant, '$.duration'), ''), 'null')
    WHEN 'integer' THEN json_extract(variant, '$.duration') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(variant, '$.duration'))
  END AS duration,
  CASE json_type(price, '$.currency')
    WHEN 'text' THEN nullif(nullif(json_extract(price, '$.currency'), ''), 'null')
    WHEN 'integer' THEN json_extract(price, '$.currency') || ''
    WHEN 'real' THEN printf('%.15g', json_extract(price, '$.currency'))
  END AS currency,
  CASE
    WHEN json_type(price, '$.value') IN ('integer', 'real') THEN json_extract(price, '$.value')
    -- Services write prices as text, too; null is what is not the text of a number.
    WHEN json_type(price, '$.value') = 'text'
      AND ltrim(trim(json_extract(price, '$.value')), '+-') GLOB '*[0-9]*'
      AND ltrim(trim(json_extract(price, '$.value')), '+-') NOT GLOB '*[^0-9.]*'
      AND ltrim(trim(json_extract(price, '$.value')), '+-') NOT GLOB '*.*.*'
      AND trim(json_extract(price, '$.value')) NOT GLOB '[+-][+-]*'
      THEN CAST(trim(json_extract(price, '$.value')) AS NUMERIC)
  END AS value
FROM (
  SELECT
    products.vbid AS vbid,
    variants.value AS variant,
    CASE prices.type WHEN 'object' THEN prices.value ELSE '{}' END AS price
  FROM products,
    json_each(
      CASE json_type(products.body, '$.variants') WHEN 'array' THEN json_extract(products.body, '$.variants') ELSE '[]' END
    ) AS variants,
    json_each(
      CASE WHEN variants.type = 'object' THEN
        CASE json_type(variants.value, '$.prices') WHEN 'array' THEN json_extract(variants.value, '$.prices') ELSE '[]' END
      ELSE '[]' END
    ) AS prices
  WHERE products.removed_at IS NULL
);
--> statement-breakpoint
DROP VIEW change_log;
--> statement-breakpoint
-- `before` of a removal is the last known product: the tombstone has it until the product is restored.
CREATE VIEW change_log AS
SELECT
  changes.seq,
  strftime('%Y-%m-%dT%H:%M:%fZ', changes.at / 1000.0, 'unixepoch') AS at,
  changes.run_id,
  CASE changes.op WHEN 0 THEN 'created' WHEN 1 THEN 'updated' WHEN 2 THEN 'removed' ELSE 'restored' END AS op,
  products.vbid,
  CASE WHEN changes.op = 2 AND products.changed_seq = changes.seq THEN products.body ELSE changes.before END AS before,
  CASE WHEN changes.op IN (1, 3) THEN (
    SELECT json_group_array('/' || replace(replace(field, '~', '~0'), '/', '~1')) FROM (
      SELECT key AS field FROM json_each(changes.before)
      UNION ALL SELECT value FROM json_each(coalesce(changes.added, '[]'))
    )
  ) ELSE '[]' END AS changed
FROM changes JOIN products ON products.id = changes.product_id;
