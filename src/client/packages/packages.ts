import { requireFields } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import type { Endpoint } from '../http/endpoint.ts';
import type { Operation } from '../http/operation.ts';
import { type CallOptions, signalOf } from '../input/call-options.ts';
import { checkPackage, PACKAGE_FIELDS, type Package, type PackageFields, packageOf } from './package-fields.ts';

/**
 * Packages: existing books sold as one SKU (interface, 4.5; the shape is not shown there, see package-fields.ts). The path
 * can be configured: `packagesPath`, `CATCHWORD_PACKAGES_PATH`.
 *
 * Each throws CatchwordError USAGE, SERVICE_FORBIDDEN (403), SERVICE_INVALID (422), NOT_FOUND, SOURCE_*, INTERRUPTED.
 * @rule 4.5-4..7, 4.5-11
 */
export interface Packages {
  /** `POST`; not retried once it may have arrived. */
  create(fields: PackageFields, options?: CallOptions): Promise<Package>;
  read(sku: string, options?: CallOptions): Promise<Package>;
  /** `PUT`; services append the given products, so it is not retried once it may have arrived. */
  update(sku: string, fields: PackageFields, options?: CallOptions): Promise<Package>;
  /** `DELETE /:pkg_sku/assets`; its books are kept. Not retried once it may have arrived. */
  delete(sku: string, options?: CallOptions): Promise<void>;
}

interface PackageUpdate {
  readonly sku: string;
  readonly fields: PackageFields;
}

function operationsAt(path: string) {
  const common = {
    format: 'json',
    token: false,
    repeatable: false,
    fields: PACKAGE_FIELDS,
    whoMayCall: 'Ask the service for the permission for packages.',
  } as const satisfies Partial<Endpoint>;
  const of = (sku: string) => ({ values: { package_SKU: sku }, subject: `package ${sku}` });
  const one = `${path}/:package_SKU`;
  const create: Operation<PackageFields, Package> = {
    ...common,
    method: 'POST',
    path,
    creates: 'sku',
    request: (fields) => ({ body: checkPackage(fields), subject: 'new package' }),
    read: ({ value }) => packageOf(value),
  };
  const read: Operation<string, Package> = {
    ...common,
    method: 'GET',
    path: one,
    repeatable: true,
    request: of,
    read: (answer) => packageOf(requireFields(answer, path)),
  };
  const update: Operation<PackageUpdate, Package> = {
    ...common,
    method: 'PUT',
    path: one,
    request: ({ sku, fields }) => ({ ...of(sku), body: checkPackage(fields) }),
    read: ({ value }) => packageOf(value),
  };
  const remove: Operation<string, void> = {
    ...common,
    method: 'DELETE',
    path: `${one}/assets`,
    request: of,
    read: () => {},
  };
  return { create, read, update, remove };
}

/** @param path such as `/v4/packages` */
export function createPackages(caller: Caller, path: string): Packages {
  const { create, read, update, remove } = operationsAt(path);
  return {
    create: async (fields, options) => await caller.call(create, fields, signalOf(options)),
    read: async (sku, options) => await caller.call(read, sku, signalOf(options)),
    update: async (sku, fields, options) => await caller.call(update, { sku, fields }, signalOf(options)),
    delete: async (sku, options) => await caller.call(remove, sku, signalOf(options)),
  };
}
