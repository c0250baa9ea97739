import { z } from 'zod';
import { CODE_USES, LICENSE_TYPES } from '../accounts/licenses.ts';

/*
 * The documents of the v3 operations, for the OpenAPI document: which members are attributes is in the schema's `xml`.
 */

function attribute<T extends z.ZodType>(schema: T): T {
  return schema.meta({ xml: { attribute: true } });
}

const text = () => attribute(z.string());

/** What identifies a user: one at least. */
const submitted = z
  .object({ reference: text().optional(), guid: text().optional(), 'access-token': text().optional() })
  .meta({ xml: { name: 'credential' } });

const verified = z
  .object({ email: text(), 'access-token': text(), guid: text(), reference: text() })
  .meta({ xml: { name: 'credential' } });

const failed = z
  .object({ code: text(), message: text(), reference: text(), guid: text(), email: text() })
  .meta({ xml: { name: 'error' } });

/** Interface, 4.3. */
export const credentialsRequest = z
  .object({ credential: z.array(submitted).min(1).max(10_000) })
  .meta({ xml: { name: 'credentials' } });
/** Good and failed ones in the order asked. */
export const credentialsResponse = z
  .object({ credential: z.array(verified), error: z.array(failed) })
  .meta({ xml: { name: 'credentials' } });

const license = z
  .object({
    ...{ imprint: text(), publisher: text(), name: text(), sku: text(), isbn: text(), part_of: text(), term: text() },
    'code-use': attribute(z.enum(CODE_USES)),
    kind: text(),
    type: attribute(z.enum(LICENSE_TYPES)),
    expiration: attribute(z.string().describe('never, an RFC 1123 date or an ISO 8601 date')),
  })
  .meta({ xml: { name: 'license' } });

const summary = z.object({ distributable_products: text(), total_products: text() });

/** Interface, 2.3 and 4.2. */
export const licensesResponse = z
  .object({ license: z.array(license), summary: summary.optional() })
  .meta({ xml: { name: 'licenses' } });

/** Interface, section 7: in place of any answer, with any status. */
export const errorResponse = z.object({ code: text(), message: text() }).meta({ xml: { name: 'error' } });

/** Interface, 4.5; as live services answer. */
export const userResponse = z
  .object({
    ...{ email: z.string(), 'first-name': z.string(), 'last-name': z.string(), guid: z.string() },
    ...{ 'access-token': z.string(), reference: z.string() },
  })
  .meta({ xml: { name: 'user' } });
