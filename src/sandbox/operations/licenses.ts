import { z } from 'zod';
import type { Directory } from '../accounts/api-keys.ts';
import { expiresAt, LICENSE_TYPES, type License, licenseElement, sameType } from '../accounts/licenses.ts';
import { CODES, codeAnswer } from '../http/error-codes.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { type Answer, refusalAnswer, xmlAnswer } from '../http/response.ts';
import type { Timeline } from '../journal/timeline.ts';
import { licensesResponse } from './xml-schemas.ts';

const TYPES = [...LICENSE_TYPES, 'all'] as const;
const query = z.object({
  sku: z.string().min(1).optional(),
  license_type: z.enum(TYPES).optional(),
});

type Query = z.infer<typeof query>;

/**
 * What the account holds, and the counts (interface, 2.3): of what is listed, that which has not expired; and all
 * licenses of the user. A SKU that is not licensed is answered with an empty root, without counts (4.2, rule 2).
 */
function listed(licenses: readonly License[], { sku, license_type: type = 'all' }: Query, now: number): Answer {
  const found = licenses
    .filter((license) => sku === undefined || license.sku === sku)
    .filter((license) => type === 'all' || sameType(license.type, type));
  const usable = found.filter(({ expiration }) => expiresAt(expiration) > now);
  const counts = { distributable_products: String(usable.length), total_products: String(licenses.length) };
  const summary = sku !== undefined && found.length === 0 ? [] : [{ name: 'summary', attributes: counts }];
  return xmlAnswer(200, { name: 'licenses', content: [...found.map(licenseElement), ...summary] });
}

function readLicenses(directory: Directory, time: Pick<Timeline, 'now'>, request: OperationRequest): Answer {
  const asked = query.safeParse(Object.fromEntries(request.params));
  if (!asked.success) {
    const [issue] = asked.error.issues;
    const needed = issue?.path[0] === 'sku' ? 'sku: is empty' : `license_type: one of ${TYPES.join(', ')} is needed`;
    return refusalAnswer('xml', 400, needed);
  }
  const { accounts, licenses, failures } = directory.of(request.apiKey);
  const holder = accounts.byToken(request.accessToken ?? '');
  // The token may be another key's.
  if (holder === null) return codeAnswer(200, CODES.tokenNotValid);
  const failure = failures.get(holder.user.number);
  // With 200: that the request was completed does not mean that it was granted (4.2, rule 4).
  if (failure !== undefined) return codeAnswer(200, failure);
  return listed(licenses.of(holder.user.number), asked.data, time.now());
}

/** Interface, 4.2. */
export function licenseOperations(directory: Directory, time: Pick<Timeline, 'now'>): Operation[] {
  return [
    {
      method: 'GET',
      path: '/v3/licenses.xml',
      section: '4.2',
      summary: 'Read licenses',
      token: true,
      format: 'xml',
      query,
      response: licensesResponse,
      operate: (request) => readLicenses(directory, time, request),
    },
  ];
}
