import { hash } from '../catalog/random.ts';
import { readJsonBody } from '../http/json-body.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { type Answer, errorAnswer } from '../http/response.ts';
import { type Judged, judge } from '../http/validate.ts';
import type { Timeline } from '../journal/timeline.ts';
import { type PackageChanges, packageChanges, packageCreation, packageResponse } from './package-schemas.ts';

/** What the operations on packages need of the sandbox. */
export interface Packaging {
  readonly seed: number;
  readonly time: Pick<Timeline, 'now'>;
  /** Whether there is a product of this vbid to put into a package. */
  readonly isProduct: (vbid: string) => boolean;
}

/** A package as it is kept. */
interface Package {
  readonly owner: string;
  readonly sku: string;
  /** In the order in which they were added, each once. */
  readonly products: readonly string[];
  readonly fields: PackageChanges;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

const EMPTY = {
  ...{ name: null, description: null, publisher: null, list_price: null, library_id: null, tags: [] },
  ...{ download_license: null, online_license: null },
};

function packageAnswer({ sku, fields, products, createdAt, updatedAt }: Package): Answer {
  const times = { created_on: new Date(createdAt).toISOString(), updated_on: new Date(updatedAt).toISOString() };
  return { status: 200, body: JSON.stringify({ ...EMPTY, ...fields, sku, products, ...times }) };
}

/** Values in a body; generous: a package may hold some ten thousand products. For safety. */
const MAX_VALUES = 50_000;

/** @returns what is asked for, or what is wrong with it */
function parse(schema: typeof packageChanges | typeof packageCreation, body: Buffer): Judged<PackageChanges> {
  const read = readJsonBody(body, MAX_VALUES);
  return 'wrong' in read ? read : judge<PackageChanges>(schema, read.json, '.');
}

/** The packages there are. */
function createPackages({ seed, time, isProduct }: Packaging) {
  const packages = new Map<string, Package>();
  let generated = 0;

  function newSku(): string {
    let sku: string;
    do sku = `PKG-${hash(seed, ++generated, 0x50).toString(36).toUpperCase().padStart(7, '0')}`;
    while (packages.has(sku));
    return sku;
  }

  /** Null where all of them are products. */
  function unknown(products: readonly string[] = []): Answer | null {
    const wrong = products.flatMap((vbid, at) => (isProduct(vbid) ? [] : [`products.${at}: there is no ${vbid}`]));
    return wrong.length === 0 ? null : errorAnswer(422, wrong);
  }

  /** The package, which is the caller's own, or the answer that refuses it. */
  function own({ values, apiKey }: OperationRequest): Package | Answer {
    const sku = values.sku ?? '';
    const found = packages.get(sku);
    if (found === undefined) return errorAnswer(404, `Package ${sku} not found`);
    return found.owner === apiKey ? found : errorAnswer(403, 'The API key does not own this package');
  }

  function create({ body, apiKey }: OperationRequest): Answer {
    const read = parse(packageCreation, body);
    if ('wrong' in read) return errorAnswer(422, read.wrong);
    const fields = read.asked;
    if (fields.sku !== undefined && (packages.has(fields.sku) || isProduct(fields.sku))) {
      return errorAnswer(422, `sku: ${fields.sku} is already in use`);
    }
    const refusal = unknown(fields.products);
    if (refusal !== null) return refusal;
    const now = time.now();
    const products = [...new Set(fields.products)];
    const made = { owner: apiKey, sku: fields.sku ?? newSku(), products, fields, createdAt: now, updatedAt: now };
    const answer = packageAnswer(made);
    packages.set(made.sku, made);
    return answer;
  }

  function read(request: OperationRequest): Answer {
    const found = own(request);
    return 'status' in found ? found : packageAnswer(found);
  }

  function update(request: OperationRequest): Answer {
    const found = own(request);
    if ('status' in found) return found;
    const read = parse(packageChanges, request.body);
    if ('wrong' in read) return errorAnswer(422, read.wrong);
    const fields = read.asked;
    if (fields.sku !== undefined && fields.sku !== found.sku) return errorAnswer(422, 'sku: cannot be changed');
    const refusal = unknown(fields.products);
    if (refusal !== null) return refusal;
    const changed = {
      ...found,
      products: [...new Set([...found.products, ...(fields.products ?? [])])],
      fields: { ...found.fields, ...fields },
      updatedAt: time.now(),
    };
    const answer = packageAnswer(changed);
    packages.set(changed.sku, changed);
    return answer;
  }

  /** The package alone: the assets in it cannot be deleted (interface, 4.5). */
  function remove(request: OperationRequest): Answer {
    const found = own(request);
    if ('status' in found) return found;
    packages.delete(found.sku);
    return packageAnswer(found);
  }

  return { create, read, update, remove };
}

/** Interface, 4.5; with the version in the path and without (section 9). */
export function packageOperations(packaging: Packaging): Operation[] {
  const { create, read, update, remove } = createPackages(packaging);
  const common = { section: '4.5', token: false, format: 'json', response: packageResponse } as const;
  return ['/v4/packages', '/packages'].flatMap((path): Operation[] => [
    { ...common, method: 'POST', path, summary: 'Create a package', request: packageCreation, operate: create },
    { ...common, method: 'GET', path: `${path}/:sku`, summary: 'Read a package', operate: read },
    {
      ...{ ...common, method: 'PUT', path: `${path}/:sku`, summary: 'Update a package' },
      ...{ request: packageChanges, operate: update },
    },
    { ...common, method: 'DELETE', path: `${path}/:sku/assets`, summary: 'Delete a package', operate: remove },
  ]);
}
