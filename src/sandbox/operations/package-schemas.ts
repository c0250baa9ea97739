import { z } from 'zod';
import { fromOne, quotable } from '../quotable.ts';

const days = fromOne('a whole number of at least 1 is needed');
const price = quotable('a number of at least 0 is needed', (words) => z.number(words).min(0, words), /^\d+(\.\d+)?$/);
const id = quotable('a whole number is needed', (words) => z.int(words), /^\d{1,15}$/);

/** `num_days` for `numdays`; for `absdate` its day in `details`, as an ISO 8601 date; nothing for `perpetual`. */
const text = z.string().nullish();
const license = z.discriminatedUnion(
  'type',
  [
    z.looseObject({ type: z.literal('numdays'), num_days: days, details: text }),
    z.looseObject({
      type: z.literal('absdate'),
      num_days: days.nullish(),
      details: z.iso.date('an ISO 8601 date is needed'),
    }),
    z.looseObject({ type: z.literal('perpetual'), num_days: days.nullish(), details: text }),
  ],
  { error: 'numdays, absdate or perpetual is needed' },
);

/** Fields that services were seen to use. Others are kept and repeated: the shape is not shown (interface, 4.5). */
export const packageChanges = z.looseObject({
  // No path can hold the two of dots alone.
  sku: z
    .string()
    .max(255, { error: 'at most 255 characters are taken' })
    .regex(/^(?!\.{0,2}$)/, { error: 'a text other than . and .. is needed, not an empty one' })
    .optional(),
  name: z.string().min(1).optional(),
  description: text,
  publisher: text,
  list_price: price.nullish(),
  library_id: id.nullish(),
  products: z.array(z.string()).optional(),
  tags: z.array(z.string()).optional(),
  download_license: license.nullish(),
  online_license: license.nullish(),
});
export const packageCreation = packageChanges.required({ name: true, products: true });

export type PackageChanges = z.infer<typeof packageChanges>;

/** As answered; the fields beyond `sku` and `products` as they were sent. */
export const packageResponse = z.looseObject({
  sku: z.string(),
  name: z.string().nullable(),
  description: z.string().nullable(),
  publisher: z.string().nullable(),
  list_price: z.number().nullable(),
  library_id: z.int().nullable(),
  products: z.array(z.string()),
  tags: z.array(z.string()),
  download_license: z.looseObject({ type: z.string() }).nullable(),
  online_license: z.looseObject({ type: z.string() }).nullable(),
  created_on: z.iso.datetime(),
  updated_on: z.iso.datetime(),
});
