import { foundObject, writtenObject } from '../http/json-object.ts';
import { type CallOptions, callV4 } from '../http/json-request.ts';
import { pathPart } from '../http/path-segment.ts';
import type { Caller } from '../http/requester.ts';
import { optionsOf } from '../input/call-options.ts';
import { checkPackage, PACKAGE_FIELDS, type Package, type PackageFields, packageOf } from './package-fields.ts';

/**
 * Packages: existing books sold as one SKU (interface, 4.5; shape not shown, see package-shape.ts). The path can be
 * configured: `packagesPath`, `CATCHWORD_PACKAGES_PATH`.
 *
 * Each throws CatchwordError USAGE, SERVICE_FORBIDDEN (403), SERVICE_INVALID (422), NOT_FOUND, SOURCE_*, INTERRUPTED.
 */
export interface Packages {
  /** `POST`; not tried again once it may have arrived. */
  create(fields: PackageFields, options?: CallOptions): Promise<Package>;
  read(sku: string, options?: CallOptions): Promise<Package>;
  /** `PUT`; services append the products given, so it is not tried again once it may have arrived. */
  update(sku: string, fields: PackageFields, options?: CallOptions): Promise<Package>;
  /** `DELETE /:pkg_sku/assets`; the books in it stay. Not tried again once it may have arrived. */
  delete(sku: string, options?: CallOptions): Promise<void>;
}

const WHO_MAY = 'This API key lacks the permission for packages: ask the service for it.';

/** @param path such as `/v4/packages` */
export function createPackages(caller: Caller, path: string): Packages {
  const at = (sku: string): string => `${path}/${pathPart('package SKU', sku)}`;
  const answer = { read: packageOf, origin: caller.origin, path, name: 'packages' };
  const about = (sku: string) => ({ subject: `package ${sku}`, whoMayCall: WHO_MAY, fields: PACKAGE_FIELDS });
  return {
    create: async (fields, options) => {
      const { signal } = optionsOf(options);
      const body = checkPackage(fields);
      const call = { method: 'POST', path, body, signal, repeatable: false, freeform: true } as const;
      const answered = await callV4(caller, { ...call, ...about('to create'), creates: 'sku' });
      return writtenObject(answered, { ...answer, creates: 'sku' });
    },
    read: async (sku, options) => {
      const { signal } = optionsOf(options);
      const call = { method: 'GET', path: at(sku), signal, repeatable: true, identified: true } as const;
      const answered = await callV4(caller, { ...call, ...about(sku) });
      return foundObject(answered, answer);
    },
    update: async (sku, fields, options) => {
      const { signal } = optionsOf(options);
      const body = checkPackage(fields);
      const call = { method: 'PUT', path: at(sku), body, signal, repeatable: false, freeform: true } as const;
      const answered = await callV4(caller, { ...call, ...about(sku), identified: true });
      return writtenObject(answered, answer);
    },
    delete: async (sku, options) => {
      const { signal } = optionsOf(options);
      // Tried again, a deletion that arrived would answer that there is no such package.
      const call = { method: 'DELETE', path: `${at(sku)}/assets`, signal, repeatable: false, freeform: true } as const;
      await callV4(caller, { ...call, ...about(sku), identified: true });
    },
  };
}
