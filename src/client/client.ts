import { type Clock, systemClock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';
import { type Assets, createAssets } from './assets/assets.ts';
import { type Books, createBooks } from './assets/books.ts';
import { type Connection, connect } from './connection.ts';
import { type Submissions, verifyCredentials, verifyEach } from './credentials/credentials.ts';
import type { CredentialResult, CredentialSubmission } from './credentials/submission.ts';
import type { CallOptions } from './http/json-request.ts';
import { pathPart } from './http/path-segment.ts';
import { optionsOf, requireNames } from './input/call-options.ts';
import { isOwned, type LicenseQuery, type Licenses, readLicenses } from './licenses/licenses.ts';
import { callerInOptionNames, inOptionNames, withOptionNames } from './option-names.ts';
import { type ClientOptions, type ClientSettings, checkOptions } from './options.ts';
import { createPackages, type Packages } from './packages/packages.ts';
import { type Catalog, createCatalog } from './products/products.ts';
import { createUser, type NewUser, postReset, readUser, type User } from './users/users.ts';

/*
 * The library: `import { createClient } from 'catchword'`. A client keeps the pace it was given, tries again where that
 * can do no harm, and renews its access token. Every failure is a CatchwordError with a stable `code`.
 */

/** What the user of the access token holds (interface, 4.2). */
export interface LicenseOperations {
  read(query?: LicenseQuery, options?: CallOptions): Promise<Licenses>;
  /** Whether the title is licensed now: ask it before a sale, so that none is made twice. */
  owns(sku: string, options?: CallOptions): Promise<boolean>;
}

/** Accounts that the API key created (interface, 4.3). A 601 or 603 of an account is its result, no exception. */
export interface CredentialOperations {
  /** Any number of accounts, 10,000 a request. @returns one result for each, in their order; a text is a reference */
  verify(
    submissions: readonly (string | CredentialSubmission)[],
    options?: CallOptions,
  ): Promise<readonly CredentialResult[]>;
  /** The same for a source of any length, with one batch in memory. */
  verifyEach(submissions: Submissions, options?: CallOptions): AsyncGenerator<CredentialResult, void, undefined>;
}

/** Users (interface, 4.5; shapes not shown). */
export interface UserOperations {
  create(user: NewUser, options?: CallOptions): Promise<User>;
  /** @param id guid, reference or email */
  read(id: string, options?: CallOptions): Promise<User>;
  /**
   * Resets the access token of this client. With `reference` set, the new one is fetched and used from then on; without,
   * this client has none that is valid.
   */
  resetAccess(options?: CallOptions): Promise<void>;
}

export interface Client {
  readonly catalog: Catalog;
  readonly assets: Assets;
  readonly books: Books;
  readonly packages: Packages;
  readonly licenses: LicenseOperations;
  readonly credentials: CredentialOperations;
  readonly users: UserOperations;
  /** Ends at once what is under way: those calls, and later ones, fail with INTERRUPTED. The process can end then. */
  close(): Promise<void>;
}

function connectionOf(settings: ClientSettings, clock: Clock): Connection {
  try {
    return connect(settings, settings.rateLimit, clock);
  } catch (error) {
    throw inOptionNames(error);
  }
}

/** A client for settings that are already checked. */
export function clientOf(settings: ClientSettings, clock: Clock): Client {
  const { tokens, ...connection } = connectionOf(settings, clock);
  const caller = callerInOptionNames(connection.caller);
  const { usersSuffix, lookupPath = '/v4/products/:vbid' } = settings;
  const signalOf = (options: CallOptions | undefined): AbortSignal => optionsOf(options).signal;
  return {
    catalog: createCatalog(caller, { ...settings, lookupPath }),
    assets: createAssets(caller),
    books: createBooks(caller, settings.booksPath),
    packages: createPackages(caller, settings.packagesPath),
    licenses: {
      read: async (query = {}, options) => {
        requireNames('the query of licenses', query, ['sku', 'type']);
        return await readLicenses(caller, query, signalOf(options));
      },
      owns: async (sku, options) => {
        // Without a title, the answer would be about the whole account.
        pathPart('sku', typeof sku === 'string' ? sku.trim() : sku);
        return isOwned(await readLicenses(caller, { sku }, signalOf(options)), sku, clock.now());
      },
    },
    credentials: {
      verify: async (submissions, options) => await verifyCredentials(caller, submissions, signalOf(options)),
      verifyEach: async function* (submissions, options) {
        yield* verifyEach(caller, submissions, signalOf(options));
      },
    },
    users: {
      create: async (user, options) => {
        const created = await createUser(caller, usersSuffix, user, signalOf(options));
        // It may be the one whose reference this client has.
        tokens.forget();
        return created;
      },
      read: async (id, options) => await readUser(caller, usersSuffix, id, signalOf(options)),
      resetAccess: async (options) => {
        if (settings.userReference === undefined) await postReset(caller, usersSuffix, signalOf(options));
        else await withOptionNames(() => tokens.reset(signalOf(options)));
      },
    },
    close: () => connection.close(),
  };
}

/**
 * A client of the service. Nothing is asked before the first call.
 * @throws CatchwordError USAGE naming every wrong option; CONFIG_INVALID where the token store cannot be used
 */
export function createClient(options: ClientOptions): Client {
  return clientOf(checkOptions(options), systemClock);
}

export type { Envelope, RejectedItem } from '../catalog/page.ts';
export type { Product, SearchText } from '../catalog/product.ts';
export type { ErrorCode } from '../errors.ts';
export type { AssetBody, AssetFields, AssetPrice, ChannelId } from './assets/asset-request.ts';
export type { Asset } from './assets/asset-response.ts';
export type { AssetOptions, PutAssetOptions, WrittenAsset } from './assets/assets.ts';
export type { Book, BookFields } from './assets/books.ts';
export type { RefusedCredential, VerifiedCredential } from './credentials/submission.ts';
export type { License } from './licenses/licenses.ts';
export type { Package, PackageFields } from './packages/package-fields.ts';
export type { CatalogOptions, ProductsOptions, ProductsPage } from './products/products.ts';
export type {
  Assets,
  Books,
  CallOptions,
  Catalog,
  ClientOptions,
  CredentialResult,
  CredentialSubmission,
  LicenseQuery,
  Licenses,
  NewUser,
  Packages,
  Submissions,
  User,
};
export { CatchwordError };
