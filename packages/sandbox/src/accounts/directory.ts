import type { Assets } from '../assets/asset-store.ts';
import type { Numbering } from '../catalog/product-numbers.ts';
import type { SandboxOptions } from '../options.ts';
import { type AccountOptions, createAccounts, type TokenState, type User } from './accounts.ts';
import { createLicenses, createRedemption, type Grant, licenseFor, readerGrants } from './held-licenses.ts';

/** A valid key without a catalog. @rule 4.3-8, 5-6 */
export const KEY_WITHOUT_CATALOG = 'NOCATALOG';
/** References of the keys' own readers, and the other key's token. */
export const READER = 'sandbox-reader';
export const OTHER_READER = { reference: 'other-reader', accessToken: 'othersandboxtoken' } as const;
/** The token of the key without a catalog. */
export const TOKEN_WITHOUT_CATALOG = 'nocatalogtoken';
/** Users of the other key besides its reader. */
const OTHER_USERS = 10;

/** The users of one API key, and what the service keeps for them. */
function createMembers(options: AccountOptions) {
  /** Error codes that a user's license requests are answered with, by the user's number. */
  const failures = new Map<number, number>();
  return { accounts: createAccounts(options), licenses: createLicenses(), failures };
}

type Members = ReturnType<typeof createMembers>;

type Options = Pick<SandboxOptions, 'seed' | 'users' | 'apiKey' | 'otherApiKey' | 'accessToken'>;

/** The API keys that the service accepts, and their users. Each key has its own users, and sees no others. */
export function createDirectory(options: Options, numbering: Numbering, titleOf: Assets['titleOf']) {
  const { seed, users, apiKey, otherApiKey, accessToken } = options;
  const reader = { reference: READER, accessToken, firstName: 'Sandbox', lastName: 'Reader' };
  const otherReader = { ...OTHER_READER, firstName: 'Other', lastName: 'Reader' };
  const main = createMembers({ seed, series: 1, prefix: 'user-', users, reader });
  const other = createMembers({ seed, series: 2, prefix: 'other-user-', users: OTHER_USERS, reader: otherReader });
  const noReader = { reference: 'nocatalog-reader', accessToken: TOKEN_WITHOUT_CATALOG };
  const rest = createMembers({ seed, series: 3, prefix: 'user-', users: 0, reader: noReader });
  const all = [main, other, rest];
  const otherKeys = [otherApiKey, KEY_WITHOUT_CATALOG];
  const of = (key: string): Members => (key === apiKey ? main : key === otherApiKey ? other : rest);
  let mainKey = apiKey;
  const tokenOf = ({ accounts }: Members, reference: string) => accounts.byReference(reference)?.accessToken ?? '';
  const grant = ({ licenses }: Members, { number }: Pick<User, 'number'>, given: Grant) =>
    licenses.grant(number, licenseFor(given, titleOf));
  for (const given of readerGrants(numbering)) grant(main, { number: 0 }, given);

  return {
    mainKey: () => mainKey,
    /** Returns the key that owns the caller's data, or null if the key is not valid. */
    ownerOf: (key: string): string | null => (key === mainKey ? apiKey : otherKeys.includes(key) ? key : null),
    /** Replaces the main key, whose data stays. @returns whether the new key was free */
    renewMainKey: (key: string): boolean => {
      if (otherKeys.includes(key)) return false;
      mainKey = key;
      return true;
    },
    main,
    /** The users of the main key come first. */
    all,
    of,
    /** The state of a token of one of the key's users. Every operation takes tokens of other keys as unknown. */
    tokenState: (key: string, token: string): TokenState => of(key).accounts.tokenState(token),
    /** The latest tokens of the keys' own readers; a reset or a journal may have replaced the configured ones. */
    readerTokens: () => ({
      accessToken: tokenOf(main, READER),
      otherAccessToken: tokenOf(other, OTHER_READER.reference),
    }),
    redeem: createRedemption(numbering),
    grant,
  };
}

export type Directory = ReturnType<typeof createDirectory>;
