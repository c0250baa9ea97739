import { type Field, STORED, type StoredColumns, SUMMARY, type SummaryColumns } from '@catchword/catalog/fields';
import { PRODUCT } from '@catchword/catalog/product-type';
import * as z from 'zod';
import { EVENT } from '../events/event-schema.ts';
import { count, list, object, orNull, text, textOrNull, time, timeOrNull } from '../shown/described.ts';
import { HTTP_ERRORS } from './http-error.ts';

/* The answers of the API, as /openapi.json describes them. A route's own type is checked against them. */

export const ERROR = z
  .object({
    error: z.object({
      code: text(
        `For programs: it stays the same when the message changes. One of ${Object.keys(HTTP_ERRORS).join(', ')}; later versions may have more.`,
      ),
      message: text('What went wrong.'),
      hint: text('What to do.'),
    }),
  })
  .meta({
    id: 'Error',
    description: 'Why a request was not answered.',
    examples: [
      {
        error: {
          code: 'USAGE',
          message: 'limit: "many" is not valid',
          hint: 'Use a whole number from 1 to 1000.',
        },
      },
    ],
  });

/** Members for columns, by their names. */
function columns<T>(fields: readonly Field[]) {
  const members = fields.map(({ column, about }) => [column, textOrNull(about)]);
  return Object.fromEntries(members) as Readonly<Record<keyof T, ReturnType<typeof textOrNull>>>;
}

const KEY = { vbid: text('The key of the product.') };

const FAILED = count('With `where` or `fields`: how often one failed, which counts as nothing.').exactOptional();

export const HITS = list(
  'Products that match, the best first.',
  z.object({ ...KEY, ...columns<SummaryColumns>(SUMMARY) }),
);

export const PRODUCTS = object('Products as `where` and `fields` yield them, ordered by key.', {
  products: list('Whole; with `fields`, `vbid` and what they yield.', z.looseObject({})),
  next: textOrNull('Pass this as `after` to read on, also after an empty page; null: you have all of them.'),
  position: text('The position in the change log when this page was begun: what changed since comes after it.'),
  failed: FAILED,
  absent: list('Members that `where` and `fields` name, and no product of this page has.', z.string()).exactOptional(),
});

export const MIRRORED_PRODUCT = object('A product of the mirror.', {
  ...KEY,
  ...columns<StoredColumns>(STORED),
  first_seen_at: time('When the mirror first had it.'),
  changed_at: time('When it last changed in the mirror.'),
  changed_seq: count('The number of that change.'),
  removed_at: timeOrNull('When it was removed; null if it was not.'),
  body: orNull('The product exactly as the source sent it; null if it was removed.', PRODUCT),
});

export const CHANGES = object('A page of the change log. When `next` equals `last`, you have all of them.', {
  events: list('The changes, the oldest first.', EVENT),
  next: count('The number of the last change here.'),
  last: count('The number of the newest change.'),
  next_id: text('Pass this as `after` to read on: it also tells whether the mirror was restored from a backup.'),
  failed: FAILED,
});

export const ALIVE = object('The process is alive.', {
  alive: z.literal(true),
  problem: z.string().exactOptional().meta({ description: 'What it waits for, such as a Redis that is full.' }),
});

export const READINESS = z.object({
  ready: z.boolean().meta({ description: 'Whether the mirror may be relied on.' }),
  reason: textOrNull('Why not; null if it may.'),
  open: textOrNull('Why the newest full run could not prove that it saw every product; null if it could.'),
});
