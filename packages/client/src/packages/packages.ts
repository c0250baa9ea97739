import { CatchwordError } from '@catchword/base/errors';
import { checkFirst } from '../errors/uncertain-write.ts';
import { type JsonObject, MAX_IDENTIFIER, type ParsedAnswer, requireFields } from '../http/answer.ts';
import type { Caller } from '../http/caller.ts';
import {
  type CallOptions,
  callOptions,
  type FieldsFor,
  optionsOf,
  signalOf,
  UNCHECKED,
} from '../input/call-options.ts';
import { OBJECT } from '../input/parse-input.ts';
import type { OptionsOf } from '../input/request-fields.ts';
import { checkPackage, PACKAGE_FIELDS, type Package, type PackageFields, packageOf } from './package-fields.ts';

const DELETE = {
  /** The body to send: at live services it lists books to take out of the package. Default: none. */
  fields: OBJECT.optional(),
};
const WRITE_OPTIONS = callOptions(UNCHECKED);
const DELETE_OPTIONS = callOptions(DELETE);

export type PackageOptions = CallOptions & OptionsOf<typeof UNCHECKED>;
export type DeletePackageOptions = CallOptions & OptionsOf<typeof DELETE>;

/** The answer may be empty; another SKU shows that the write was done elsewhere, or not at all. */
function writtenPackage({ value, origin, status, hide }: ParsedAnswer, sku: string | undefined): Package {
  const written = packageOf(value);
  if (written.sku === undefined || sku === undefined || written.sku === sku) return written;
  const message = `${origin} answered with package ${hide(written.sku, MAX_IDENTIFIER)} instead of ${sku}`;
  throw checkFirst(new CatchwordError('SERVICE_ERROR', message, { status }), {});
}

/** Live services answer a delete with a count. */
const DELETED_FIELDS = [...PACKAGE_FIELDS, 'removed_count'];

export type Packages = ReturnType<typeof createPackages>;

/**
 * Packages: existing books sold as one SKU (interface, 4.5; the shape is not shown there, see package-fields.ts). The path
 * can be configured: `packagesPath`, `CATCHWORD_PACKAGES_PATH`.
 *
 * Each throws CatchwordError USAGE, SERVICE_FORBIDDEN (403), SERVICE_INVALID (422), NOT_FOUND, SOURCE_*, INTERRUPTED.
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
    create: async <O extends PackageOptions>(fields: FieldsFor<O, PackageFields>, options?: O): Promise<Package> => {
      const { signal, unchecked } = optionsOf(WRITE_OPTIONS, options);
      const body = checkPackage(fields, unchecked);
      const read = (answer: ParsedAnswer) =>
        writtenPackage(answer, typeof body.sku === 'string' ? body.sku : undefined);
      const create = { ...common, method: 'POST', path, creates: 'sku', body, subject: 'new package', read } as const;
      return await caller.call(create, signal);
    },
    read: async (sku: string, options?: CallOptions): Promise<Package> => {
      const read = (answer: ParsedAnswer) => packageOf(requireFields(answer, path));
      return await caller.call({ ...of(sku), method: 'GET', repeatable: true, read }, signalOf(options));
    },
    /** `PUT`; services append the given products, so it is not retried once it may have arrived. */
    update: async <O extends PackageOptions>(
      sku: string,
      fields: FieldsFor<O, PackageFields>,
      options?: O,
    ): Promise<Package> => {
      const { signal, unchecked } = optionsOf(WRITE_OPTIONS, options);
      const read = (answer: ParsedAnswer) => writtenPackage(answer, sku);
      return await caller.call({ ...of(sku), method: 'PUT', body: checkPackage(fields, unchecked), read }, signal);
    },
    /**
     * `DELETE /:pkg_sku/assets`. The interface calls it the deletion of the package; live services take the books that
     * `fields` lists out of it, and answer how many they were. Not retried once it may have arrived.
     * @returns what the service answered; null if that is empty
     */
    delete: async (sku: string, options?: DeletePackageOptions): Promise<JsonObject | null> => {
      const { signal, fields: body } = optionsOf(DELETE_OPTIONS, options);
      const one = { ...of(sku), fields: DELETED_FIELDS };
      const read = ({ value }: ParsedAnswer) => value ?? null;
      return await caller.call({ ...one, method: 'DELETE', path: `${one.path}/assets`, body, read }, signal);
    },
  };
}
