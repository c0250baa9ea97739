import * as z from 'zod';
import { expiresAt, LICENSE_TYPES, licenseSchema, sameType } from '../accounts/held-licenses.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { attribute, CODES, codeRejection, type Reply, xmlReply } from '../http/reply.ts';
import { validate } from '../http/validate.ts';
import type { Stores } from '../sandbox-stores.ts';

const query = z.object({
  sku: z.string().min(1).optional(),
  license_type: z.enum([...LICENSE_TYPES, 'all']).optional(),
});

const summary = z.object({ distributable_products: attribute, total_products: attribute });

/** Interface, 2.3 and 4.2. @rule 2.3-5..6, 4.2-1..3, 4.2-5..9, 7-1, 9-1 */
export const licensesResponse = z
  .object({ license: z.array(licenseSchema), summary: summary.optional() })
  .meta({ xml: { name: 'licenses' } });

/**
 * Lists the licenses with their counts (interface, 2.3): the listed ones that have not expired, and all of the user. A SKU
 * that is not licensed gets an empty root without counts (4.2, rule 2).
 */
function readLicenses({ directory, time }: Stores, { params, apiKey, accessToken }: OperationRequest): Reply {
  const { sku, license_type: type = 'all' } = validate(query, Object.fromEntries(params), 400);
  const { accounts, licenses, failures } = directory.of(apiKey);
  const holder = accounts.byToken(accessToken ?? '');
  if (holder === null) throw codeRejection(200, CODES.tokenNotValid);
  const { number } = holder.user;
  const failure = failures.get(number);
  // Status 200 only means that the request completed (4.2, rule 4).
  if (failure !== undefined) throw codeRejection(200, failure);
  const all = licenses.of(number);
  const found = all
    .filter((license) => sku === undefined || license.sku === sku)
    .filter((license) => type === 'all' || sameType(license.type, type));
  const usable = found.filter(({ expiration }) => expiresAt(expiration) > time.now());
  const counts = { distributable_products: String(usable.length), total_products: String(all.length) };
  const summary = sku !== undefined && found.length === 0 ? [] : [{ name: 'summary', attributes: counts }];
  const elements = found.map((attributes) => ({ name: 'license', attributes }));
  return xmlReply({ name: 'licenses', content: [...elements, ...summary] });
}

export function licenseOperation(stores: Stores): Operation {
  return {
    method: 'GET',
    path: '/v3/licenses.xml',
    section: '4.2',
    summary: 'Read licenses',
    token: true,
    format: 'xml',
    query,
    response: licensesResponse,
    run: (request) => readLicenses(stores, request),
  };
}
