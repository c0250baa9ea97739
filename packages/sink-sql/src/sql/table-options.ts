import * as z from 'zod';

const TABLE = /^([A-Za-z_][\w$]{0,62}\.)?[A-Za-z_][\w$]{0,49}$/;

/** Options of a sink with tables. */
// biome-ignore format: an option is a line.
export const TABLE_OPTIONS = {
  table: z.string().regex(TABLE, 'a name of at most 50 characters such as products, or with its schema: shop.products').default('products')
    .meta({ 'table=NAME': 'the table, `products` if absent; or `schema.name`, in MySQL `database.name`' }),
  removals: z.enum(['delete', 'tombstone'], 'tombstone or delete').default('tombstone')
    .meta({ 'removals=tombstone': 'the default: a removed product keeps its row, with `removed_at`', 'removals=delete': 'a removed product loses its row' }),
};

/** What keeps two mirrors, or two sinks, apart in a database. */
export const OTHER_TABLE = 'another table (table=NAME)';
