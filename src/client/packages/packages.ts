import { type ParsedAnswer, requireFields } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import { type CallOptions, signalOf } from '../input/call-options.ts';
import { checkPackage, PACKAGE_FIELDS, type Package, type PackageFields, packageOf } from './package-fields.ts';

export type Packages = ReturnType<typeof createPackages>;

/**
 * Packages: existing books sold as one SKU (interface, 4.5; the shape is not shown there, see package-fields.ts). The path
 * can be configured: `packagesPath`, `CATCHWORD_PACKAGES_PATH`.
 *
 * Each throws CatchwordError USAGE, SERVICE_FORBIDDEN (403), SERVICE_INVALID (422), NOT_FOUND, SOURCE_*, INTERRUPTED.
 * @param path such as `/v4/packages`
 * @rule 4.5-4..7, 4.5-11
 */
export function createPackages(caller: Caller, path: string) {
  const common = {
    format: 'json',
    token: false,
    repeatable: false,
    fields: PACKAGE_FIELDS,
    whoMayCall: 'Ask the service for the permission for packages.',
    read: ({ value }: ParsedAnswer) => packageOf(value),
  } as const;
  const of = (sku: string) => ({
    ...common,
    path: `${path}/:package_SKU`,
    values: { package_SKU: sku },
    subject: `package ${sku}`,
  });
  return {
    /** `POST`; not retried once it may have arrived. */
    create: async (fields: PackageFields, options?: CallOptions): Promise<Package> => {
      const body = checkPackage(fields);
      const create = { ...common, method: 'POST', path, creates: 'sku', body, subject: 'new package' } as const;
      return await caller.call(create, signalOf(options));
    },
    read: async (sku: string, options?: CallOptions): Promise<Package> => {
      const read = (answer: ParsedAnswer) => packageOf(requireFields(answer, path));
      return await caller.call({ ...of(sku), method: 'GET', repeatable: true, read }, signalOf(options));
    },
    /** `PUT`; services append the given products, so it is not retried once it may have arrived. */
    update: async (sku: string, fields: PackageFields, options?: CallOptions): Promise<Package> =>
      await caller.call({ ...of(sku), method: 'PUT', body: checkPackage(fields) }, signalOf(options)),
    /** `DELETE /:pkg_sku/assets`; its books are kept. Not retried once it may have arrived. */
    delete: async (sku: string, options?: CallOptions): Promise<void> => {
      const one = of(sku);
      await caller.call({ ...one, method: 'DELETE', path: `${one.path}/assets`, read: () => {} }, signalOf(options));
    },
  };
}
