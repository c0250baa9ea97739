import { z } from 'zod';
import { inputError, PARSING } from '../input/input-error.ts';
import { name } from '../input/request-fields.ts';

const QUERY = z.object(
  {
    // A spreadsheet’s spaces are no part of it.
    sku: name.transform((sku) => sku.trim()).optional(),
    type: z.enum(['online', 'downloadable', 'all'], 'online, downloadable or all is needed').optional(),
  },
  'an object is needed',
);

/**
 * The query of `GET /v3/licenses.xml` (interface, section 4.2). An empty `sku` would list the whole account.
 * @throws CatchwordError USAGE
 */
export function checkLicenseQuery(query: unknown): z.output<typeof QUERY> {
  const parsed = QUERY.safeParse(query, PARSING);
  if (parsed.success) return parsed.data;
  throw inputError('the query of licenses', parsed.error.issues);
}
