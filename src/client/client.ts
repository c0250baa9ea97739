import { type Clock, systemClock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';
import { type Assets, createAssets } from './assets/assets.ts';
import { type Books, createBooks } from './assets/books.ts';
import { connect } from './connection.ts';
import { type Submissions, verifyCredentials, verifyInBatches } from './credentials/credentials.ts';
import type { CredentialResult, CredentialSubmission } from './credentials/submission.ts';
import type { Caller } from './http/caller.ts';
import { pathPart } from './http/operation.ts';
import { type CallOptions, signalOf } from './input/call-options.ts';
import { isOwned, type LicenseQuery, type Licenses, readLicenses } from './licenses/licenses.ts';
import { type ClientOptions, type ClientSettings, checkOptions, withOptionName } from './options.ts';
import { createPackages, type Packages } from './packages/packages.ts';
import { type Catalog, createCatalog } from './products/products.ts';
import { createUsers, type NewUser, type User } from './users/users.ts';

/*
 * The library: `import { createClient } from 'catchword'`. A client keeps the configured pace, retries where that is safe,
 * and renews its access token. Every failure is a CatchwordError with a stable `code`.
 */

/** Licenses of the user who owns the access token (interface, 4.2). */
export interface LicenseOperations {
  read(query?: LicenseQuery, options?: CallOptions): Promise<Licenses>;
  /** Whether the title is licensed now; call it before a sale to avoid a duplicate. */
  owns(sku: string, options?: CallOptions): Promise<boolean>;
}

/** Accounts that the API key created (interface, 4.3). A 601 or 603 of an account is its result, not an exception. */
export interface CredentialOperations {
  /**
   * Verifies any number of accounts, 10,000 per request. A string is a reference.
   * @returns one result for each submission, in the same order
   */
  verify(
    submissions: readonly (string | CredentialSubmission)[],
    options?: CallOptions,
  ): Promise<readonly CredentialResult[]>;
  /** Verifies a source of any length, with one batch in memory. */
  verifyEach(submissions: Submissions, options?: CallOptions): AsyncGenerator<CredentialResult, void, undefined>;
}

/** Users (interface, 4.5; the shapes are not shown there). */
export interface UserOperations {
  create(user: NewUser, options?: CallOptions): Promise<User>;
  /** @param id guid, reference or email */
  read(id: string, options?: CallOptions): Promise<User>;
  /**
   * Resets the access token of this client. With `reference`, the client fetches and uses the new one; without it, this
   * client has no valid token afterwards.
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
  /** Aborts calls in flight, and rejects later ones, with INTERRUPTED. Closes all connections. */
  close(): Promise<void>;
}

/** Rethrows an error about a setting with the name of the option. */
function renamed(error: unknown): never {
  throw withOptionName(error);
}

/** A client with validated settings. */
export function clientOf(settings: ClientSettings, clock: Clock): Client {
  const { tokens, ...connection } = connect(settings, settings.rateLimit, clock);
  const caller: Caller = {
    origin: connection.caller.origin,
    call: (operation, input, signal) => connection.caller.call(operation, input, signal).catch(renamed),
  };
  const { lookupPath = '/v4/products/:vbid' } = settings;
  const users = createUsers(caller, settings.usersSuffix);
  return {
    catalog: createCatalog(caller, { ...settings, lookupPath }),
    assets: createAssets(caller),
    books: createBooks(caller, settings.booksPath),
    packages: createPackages(caller, settings.packagesPath),
    licenses: {
      read: async (query = {}, options) => await readLicenses(caller, query, signalOf(options)),
      owns: async (sku, options) => {
        // An empty sku would ask for the whole account.
        pathPart('sku', typeof sku === 'string' ? sku.trim() : sku);
        return isOwned(await readLicenses(caller, { sku }, signalOf(options)), sku, clock.now());
      },
    },
    credentials: {
      verify: async (submissions, options) => await verifyCredentials(caller, submissions, signalOf(options)),
      verifyEach: async function* (submissions, options) {
        for await (const batch of verifyInBatches(caller, submissions, signalOf(options))) yield* batch;
      },
    },
    users: {
      create: async (user, options) => {
        const created = await users.create(user, signalOf(options));
        // It may be the user of this client's reference, unknown until now.
        tokens.forget();
        return created;
      },
      read: async (id, options) => await users.read(id, signalOf(options)),
      resetAccess: async (options) => {
        if (settings.userReference === undefined) await users.reset(signalOf(options));
        else await tokens.reset(signalOf(options)).catch(renamed);
      },
    },
    close: () => connection.close(),
  };
}

/**
 * Creates a client of the service. It sends nothing before the first call.
 * @throws CatchwordError USAGE naming every invalid option; CONFIG_INVALID if the token store cannot be used
 */
export function createClient(options: ClientOptions): Client {
  const settings = checkOptions(options);
  try {
    return clientOf(settings, systemClock);
  } catch (error) {
    return renamed(error);
  }
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
