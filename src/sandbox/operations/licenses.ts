import { z } from 'zod';
import type { XmlTree } from '../../xml/write.ts';
import type { Directory } from '../accounts/directory.ts';
import { CODE_USES, expiresAt, LICENSE_TYPES, type License, sameType } from '../accounts/licenses.ts';
import { CODES, codeRejection } from '../http/error-codes.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { type Reply, xmlReply } from '../http/reply.ts';
import { validate } from '../http/validate.ts';
import type { Timeline } from '../journal/timeline.ts';
import { attribute } from './xml-schema.ts';

const query = z.object({
  sku: z.string().min(1).optional(),
  license_type: z.enum([...LICENSE_TYPES, 'all']).optional(),
});

const license = z
  .object({
    imprint: attribute,
    publisher: attribute,
    name: attribute,
    sku: attribute,
    isbn: attribute,
    part_of: attribute,
    term: attribute,
    'code-use': z.enum(CODE_USES).meta({ xml: { attribute: true } }),
    kind: attribute,
    type: z.enum(LICENSE_TYPES).meta({ xml: { attribute: true } }),
    expiration: attribute.describe('never, an RFC 1123 date or an ISO 8601 date'),
  })
  .meta({ xml: { name: 'license' } });
const summary = z.object({ distributable_products: attribute, total_products: attribute });

/**
 * Interface, 2.3 and 4.2.
 * @rule 2.3-5..6, 4.2-1..3, 4.2-5..9, 7-1, 9-1
 */
export const licensesResponse = z
  .object({ license: z.array(license), summary: summary.optional() })
  .meta({ xml: { name: 'licenses' } });

/** Interface, 2.3, with the attributes in its order. */
function licenseElement({ partOf, codeUse, imprint, publisher, name, sku, isbn, term, ...rest }: License): XmlTree {
  const { kind, type, expiration } = rest;
  const first = { imprint, publisher, name, sku, isbn, part_of: partOf, term };
  return { name: 'license', attributes: { ...first, 'code-use': codeUse, kind, type, expiration } };
}

/**
 * Lists the licenses with their counts (interface, 2.3): the listed ones that have not expired, and all of the user. A SKU
 * that is not licensed gets an empty root without counts (4.2, rule 2).
 */
function list(licenses: readonly License[], { sku, license_type: type = 'all' }: z.infer<typeof query>, now: number) {
  const found = licenses
    .filter((license) => sku === undefined || license.sku === sku)
    .filter((license) => type === 'all' || sameType(license.type, type));
  const usable = found.filter(({ expiration }) => expiresAt(expiration) > now);
  const counts = { distributable_products: String(usable.length), total_products: String(licenses.length) };
  const summary = sku !== undefined && found.length === 0 ? [] : [{ name: 'summary', attributes: counts }];
  return xmlReply({ name: 'licenses', content: [...found.map(licenseElement), ...summary] });
}

function readLicenses(directory: Directory, time: Pick<Timeline, 'now'>, request: OperationRequest): Reply {
  const asked = validate(query, Object.fromEntries(request.params), 400);
  const { accounts, licenses, failures } = directory.of(request.apiKey);
  const holder = accounts.byToken(request.accessToken ?? '');
  // The token may belong to another key.
  if (holder === null) throw codeRejection(200, CODES.tokenNotValid);
  const { number } = holder.user;
  const failure = failures.get(number);
  // Status 200 only means that the request completed (4.2, rule 4).
  if (failure !== undefined) throw codeRejection(200, failure);
  return list(licenses.of(number), asked, time.now());
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
      run: (request) => readLicenses(directory, time, request),
    },
  ];
}
