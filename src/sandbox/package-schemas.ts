import { z } from 'zod';

/** The interface sends numbers inside quotes as well (2.1.2). */
const quotedNumber = z.union([
  z.number(),
  z
    .string()
    .regex(/^\d+(\.\d+)?$/, 'is no number')
    .transform(Number),
]);

/** `num_days` for `numdays`; for `absdate` its day in `details`, as an ISO 8601 date; nothing for `perpetual`. */
const license = z
  .looseObject({
    type: z.enum(['numdays', 'absdate', 'perpetual']),
    num_days: quotedNumber.pipe(z.int().min(1)).nullish(),
    details: z.string().nullish(),
  })
  .refine(({ type, num_days }) => type !== 'numdays' || typeof num_days === 'number', {
    path: ['num_days'],
    error: 'is needed for numdays',
  })
  .refine(({ type, details }) => type !== 'absdate' || z.iso.date().safeParse(details).success, {
    path: ['details'],
    error: 'an ISO 8601 date is needed for absdate',
  });

/** Fields that services were seen to use. Others are kept and repeated: the shape is not shown (interface, 4.5). */
export const packageChanges = z.looseObject({
  sku: z.string().min(1).max(255).optional(),
  name: z.string().min(1).optional(),
  description: z.string().nullish(),
  publisher: z.string().nullish(),
  list_price: quotedNumber.pipe(z.number().min(0)).nullish(),
  library_id: quotedNumber.pipe(z.int()).nullish(),
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
