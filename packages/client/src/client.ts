import { type Clock, systemClock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import { type Assets, createAssets } from './assets/assets.ts';
import { type Books, createBooks } from './assets/books.ts';
import { connect } from './client-connection.ts';
import { type Submissions, verifyCredentials, verifyInBatches } from './credentials/credentials.ts';
import type { CredentialResult, CredentialSubmission } from './credentials/submission.ts';
import type { Caller } from './http/caller.ts';
import { pathPart } from './http/exchange.ts';
import { type CallOptions, callOptions, optionsOf, signalOf, UNCHECKED } from './input/call-options.ts';
import type { OptionsOf } from './input/request-fields.ts';
import { isOwned, type LicenseQuery, type Licenses, readLicenses } from './licenses/licenses.ts';
import { type ClientOptions, type ClientSettings, checkOptions, rethrowWithOption } from './options.ts';
import { createPackages, type Packages } from './packages/packages.ts';
import { type Catalog, createCatalog } from './products/products.ts';
import { createUsers, type User, type UserFor, type UserOptions } from './users/users.ts';

/*
 * The library: `import { createClient } from 'catchword'`. A client keeps the configured pace, retries where that is safe,
 * and renews its access token. Every failure is a CatchwordError with a stable `code`.
 */

const VERIFY_OPTIONS = callOptions(UNCHECKED);

/** `unchecked` accepts keys of more than 255 characters. */
export type VerifyOptions = CallOptions & OptionsOf<typeof UNCHECKED>;

export type Client = ReturnType<typeof clientOf>;
export type LicenseOperations = Client['licenses'];
export type CredentialOperations = Client['credentials'];
export type UserOperations = Client['users'];

export function clientOf(settings: ClientSettings, clock: Clock) {
  const { tokens, ...connection } = connect(settings, settings.rateLimit, clock);
  const caller: Caller = {
    origin: connection.caller.origin,
    call: (operation, signal) => connection.caller.call(operation, signal).catch(rethrowWithOption),
  };
  const users = createUsers(caller, settings.usersSuffix);
  // Named types, so that the published declarations keep the comments of their methods.
  const catalog: Catalog = createCatalog(caller, settings);
  const assets: Assets = createAssets(caller);
  const books: Books = createBooks(caller, settings.booksPath);
  const packages: Packages = createPackages(caller, settings.packagesPath);
  return {
    catalog,
    assets,
    books,
    packages,
    /** Licenses of the user who owns the access token (interface, 4.2). */
    licenses: {
      read: async (query: LicenseQuery = {}, options?: CallOptions): Promise<Licenses> =>
        await readLicenses(caller, query, signalOf(options)),
      /** Whether the title is licensed now; call it before a sale to avoid a duplicate. */
      owns: async (sku: string, options?: CallOptions): Promise<boolean> => {
        // An empty sku would ask for the whole account.
        pathPart('sku', typeof sku === 'string' ? sku.trim() : sku);
        return isOwned(await readLicenses(caller, { sku }, signalOf(options)), sku, clock.now());
      },
    },
    /** Accounts that the API key created (interface, 4.3). A 601 or 603 of an account is its result, not an exception. */
    credentials: {
      /** Verifies any number of accounts, 10,000 per request; the results have their order. A string is a reference. */
      verify: async (
        submissions: readonly (string | CredentialSubmission)[],
        options?: VerifyOptions,
      ): Promise<readonly CredentialResult[]> => {
        const { signal, unchecked } = optionsOf(VERIFY_OPTIONS, options);
        return await verifyCredentials(caller, submissions, signal, unchecked);
      },
      /** Verifies a source of any length, with one batch in memory. */
      verifyEach: async function* (
        submissions: Submissions,
        options?: VerifyOptions,
      ): AsyncGenerator<CredentialResult, void, undefined> {
        const { signal, unchecked } = optionsOf(VERIFY_OPTIONS, options);
        for await (const batch of verifyInBatches(caller, submissions, signal, { unchecked })) yield* batch;
      },
    },
    /** Users (interface, 4.5; the shapes are not shown there). */
    users: {
      create: async <O extends UserOptions>(user: UserFor<O>, options?: O): Promise<User> => {
        const created = await users.create(user, options);
        // It may be the user of this client's reference, unknown until now.
        tokens.forget();
        return created;
      },
      /** @param id guid, reference or email */
      read: users.read,
      /** Resets the access token of this client, which then uses the new one: from the answer, or by verifying the user. */
      resetAccess: async (options?: CallOptions): Promise<string> =>
        await tokens.reset(signalOf(options)).catch(rethrowWithOption),
    },
    /** Aborts calls in flight, and rejects later ones, with INTERRUPTED. Closes all connections. */
    close: connection.close,
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
    return rethrowWithOption(error);
  }
}

export type { ErrorCode } from '@catchword/base/errors';
export type { Envelope, RejectedItem } from '@catchword/catalog/page-types';
export type {
  CatalogItem,
  CatalogProduct,
  Contributor,
  Numeric,
  Price,
  Subject,
  Variant,
} from '@catchword/catalog/product-type';
export type { AssetFields, AssetPrice, ChannelId } from './assets/asset-request.ts';
export type { Asset } from './assets/asset-response.ts';
export type { AssetOptions, Assets, PutAssetOptions, WrittenAsset } from './assets/assets.ts';
export type { Book, BookFields, Books } from './assets/books.ts';
export type { Submissions } from './credentials/credentials.ts';
export type {
  CredentialResult,
  CredentialSubmission,
  RefusedCredential,
  VerifiedCredential,
} from './credentials/submission.ts';
export type { CallOptions } from './input/call-options.ts';
export type { License, LicenseQuery, Licenses } from './licenses/licenses.ts';
export type { ClientOptions } from './options.ts';
export type { Package, PackageFields } from './packages/package-fields.ts';
export type { DeletePackageOptions, PackageOptions, Packages } from './packages/packages.ts';
export type { Catalog, CatalogOptions, ProductsOptions, ProductsPage } from './products/products.ts';
export type { NewUser, UncheckedUser, User, UserOptions } from './users/users.ts';
export { CatchwordError };
