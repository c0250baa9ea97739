import { recordOf } from '@catchword/base/record-of';
import * as z from 'zod';
import { positive, quotable } from '../assets/asset-fields.ts';
import { hash } from '../catalog/random.ts';
import { parseJson } from '../http/body.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { jsonReply, Rejection, type Reply } from '../http/reply.ts';
import { validate } from '../http/validate.ts';
import type { Stores } from '../sandbox-stores.ts';

const price = quotable('must be a number of at least 0', (params) => z.number(params).min(0, params), /^\d+(\.\d+)?$/);
const id = quotable('must be a whole number', (params) => z.int(params), /^\d{1,15}$/);

const text = z.string().nullish();
/** Which members a type needs is not known, so none is required. */
const license = z.looseObject({
  type: z.enum(['numdays', 'absdate', 'perpetual']).nullish(),
  num_days: positive.nullish(),
  expiration_date: z.union([z.iso.date(), z.iso.datetime({ offset: true })], 'must be an ISO 8601 date').nullish(),
  duration: z.union([z.string(), z.number()], { error: 'must be a text or a number' }).nullish(),
  details: text,
});

/** Fields that services were seen to use. Others are kept and repeated: the shape is not shown (interface, 4.5). */
const packageUpdate = z.looseObject({
  // A path cannot hold a segment of one or two dots.
  sku: z
    .string()
    .max(255)
    .regex(/^(?!\.{0,2}$)/, 'must not be empty, . or ..')
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
const packageCreation = packageUpdate.required({ name: true });
const packageRemoval = z.looseObject({ products: z.array(z.string()) });

/** The defaults are for fields that were not sent. Additional fields are repeated. */
const packageResponse = z.looseObject({
  sku: z.string(),
  ...recordOf(z.string().nullable().default(null), 'name', 'description', 'publisher'),
  list_price: z.number().nullable().default(null),
  library_id: z.int().nullable().default(null),
  products: z.array(z.string()),
  tags: z.array(z.string()).default([]),
  download_license: z.looseObject({}).nullable().default(null),
  online_license: z.looseObject({}).nullable().default(null),
  created_on: z.iso.datetime(),
  updated_on: z.iso.datetime(),
});

interface Package {
  readonly owner: string;
  /** Products are in the order in which they were added, without duplicates. */
  readonly fields: z.infer<typeof packageUpdate> & z.input<typeof packageResponse>;
}

/** Interface, 4.5. @rule 1-3, 4.5-4..7, 4.5-10..11 */
export function packageOperations({ options: { seed, packagesPath: path }, assets, time }: Stores): Operation[] {
  const packages = new Map<string, Package>();
  let generated = 0;

  function newSku(): string {
    const sku = `PKG-${hash(seed, ++generated, 0x50).toString(36).toUpperCase().padStart(7, '0')}`;
    return packages.has(sku) ? newSku() : sku;
  }

  const reply = ({ fields }: Package): Reply => jsonReply(packageResponse.parse(fields));
  const isProduct = (vbid: string) => assets.find(vbid) !== null;

  /** The members of each change. @throws Rejection for a product that the catalog does not have */
  function changed(products: readonly string[] = [], held: readonly string[] = []) {
    const wrong = products.flatMap((vbid, at) => (isProduct(vbid) ? [] : [`products/${at}: ${vbid} is not a product`]));
    if (wrong.length > 0) throw new Rejection(422, wrong);
    return { products: [...new Set([...held, ...products])], updated_on: new Date(time.now()).toISOString() };
  }

  function findOwn({ values: { sku = '' }, apiKey }: OperationRequest): Package {
    const found = packages.get(sku);
    if (found === undefined) throw new Rejection(404, `Package ${sku} not found`);
    if (found.owner !== apiKey) throw new Rejection(403, 'The API key does not own this package');
    return found;
  }

  /** A package that cannot be answered, such as one that is nested too deep, is not kept. */
  function keep(owner: string, fields: Package['fields']): Reply {
    const answered = reply({ owner, fields });
    packages.set(fields.sku, { owner, fields });
    return answered;
  }

  function create({ body, apiKey }: OperationRequest): Reply {
    const fields = validate(packageCreation, parseJson(body));
    const { sku } = fields;
    if (sku !== undefined && (packages.has(sku) || isProduct(sku))) {
      throw new Rejection(422, `sku: ${sku} is already in use`);
    }
    const made = changed(fields.products);
    return keep(apiKey, { ...fields, ...made, sku: sku ?? newSku(), created_on: made.updated_on });
  }

  function update(request: OperationRequest): Reply {
    const { owner, fields: held } = findOwn(request);
    const sent = validate(packageUpdate, parseJson(request.body));
    const { sku, created_on } = held;
    if (sent.sku !== undefined && sent.sku !== sku) throw new Rejection(422, 'sku: cannot be changed');
    return keep(owner, { ...held, ...sent, ...changed(sent.products, held.products), sku, created_on });
  }

  /** Deletes a package, not its assets (interface, 4.5). With a body, takes its books out, as live services do. */
  function remove(request: OperationRequest): Reply {
    const found = findOwn(request);
    const { sku, products: held } = found.fields;
    if (request.body.length === 0) {
      packages.delete(sku);
      return reply(found);
    }
    const listed = new Set(validate(packageRemoval, parseJson(request.body)).products);
    const products = held.filter((vbid) => !listed.has(vbid));
    packages.set(sku, { ...found, fields: { ...found.fields, ...changed(), products } });
    return jsonReply({ removed_count: held.length - products.length });
  }

  const common = { section: '4.5', token: false, format: 'json', response: packageResponse } as const;
  const own = { ...common, path: `${path}/:sku` };
  return [
    { ...common, method: 'POST', path, summary: 'Create a package', request: packageCreation, run: create },
    { ...own, method: 'GET', summary: 'Read a package', run: (request) => reply(findOwn(request)) },
    { ...own, method: 'PUT', summary: 'Update a package', request: packageUpdate, run: update },
    {
      ...common,
      method: 'DELETE',
      path: `${path}/:sku/assets`,
      summary: 'Delete a package, or with a body take the books that it lists out of it',
      response: z.union([packageResponse, z.object({ removed_count: z.int() })]),
      run: remove,
    },
  ];
}
