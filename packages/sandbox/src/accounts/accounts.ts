import { hash } from '../catalog/random.ts';
import { FIRST_NAMES, LAST_NAMES } from '../catalog/title-words.ts';

/** A user. `reference` is null for full users, who have their own email and password. @rule 2.4-2, 4.3-9 */
export interface User {
  readonly number: number;
  readonly reference: string | null;
  readonly email: string;
  readonly firstName: string;
  readonly lastName: string;
  readonly guid: string;
  /** The latest token, the only valid one. */
  readonly accessToken: string;
}

/** `stale`: was valid until it was reset. */
export type TokenState = 'valid' | 'stale' | 'unknown';

const UNIQUE = ['reference', 'email', 'guid', 'accessToken'] as const;
type Unique = (typeof UNIQUE)[number];

/** The fields that a user is created with, such as its first token. The sandbox makes the omitted ones. */
export type Profile = { readonly [Name in Unique | 'firstName' | 'lastName']?: string | undefined };

export interface AccountOptions {
  readonly seed: number;
  /** Differs from key to key. */
  readonly series: number;
  /** The beginning of initial users' references. */
  readonly prefix: string;
  /** Initial reference users, 0 to 10 million. */
  readonly users: number;
  /** User 0. */
  readonly reader: Profile;
}

/** Makes `user-0000002` sort before `user-0000010`. */
const REFERENCE_DIGITS = 7;

const BLOCK_CHARS = 6;
const BLOCK_VALUES = 36 ** BLOCK_CHARS;
const GUID_BLOCKS = 2;
const TOKEN_BLOCKS = 4;

function block(value: number, chars: number): string {
  return value.toString(36).padStart(chars, '0');
}

/**
 * Guids and access tokens of a key's users: pure functions of the seed, the user's number and, for tokens, how often it
 * was reset (its generation). Both contain the number, so that a user is found by them without an index of a million
 * users. Only a sandbox should make tokens this way: anyone who knows the seed knows them all.
 * @rule 5-4
 */
function createIdentities(seed: number, series: number) {
  const base = hash(seed, series, 0x1d);
  const blocks = (count: number, number: number, generation: number) => {
    const value = (at: number) => hash(base ^ hash(base, generation, count + at), number, at) % BLOCK_VALUES;
    return Array.from({ length: count }, (_, at) => block(value(at), BLOCK_CHARS)).join('');
  };
  /** 20 upper-case letters and digits. */
  const guid = (number: number) => `${blocks(GUID_BLOCKS, number, 0).toUpperCase()}${String(number).padStart(8, '0')}`;
  /** 34 lower-case letters and digits (interface, section 5). */
  const token = (number: number, generation: number) =>
    `${blocks(TOKEN_BLOCKS, number, generation)}${block(number, BLOCK_CHARS)}${block(generation, 4)}`;

  return {
    guid,
    numberOfGuid: (text: string) => {
      const number = Number(/^[0-9A-Z]{12}(\d{8,9})$/.exec(text)?.[1] ?? Number.NaN);
      return guid(number) === text ? number : null;
    },
    token,
    ofToken: (text: string) => {
      const [, number = '', generation = ''] = /^[0-9a-z]{24}([0-9a-z]{6})([0-9a-z]{4,8})$/.exec(text) ?? [];
      const found = { number: Number.parseInt(number, 36), generation: Number.parseInt(generation, 36) };
      return token(found.number, found.generation) === text ? found : null;
    },
  };
}

/**
 * The users that one API key created; no other key can verify them (interface, 4.3). They are numbered: 0 is the key's
 * own reader, then come the initial reference users, then those created later.
 *
 * Initial users are pure functions of seed and number. Only users that were created or reset are kept in memory. No
 * password is kept: no operation reads one.
 */
export function createAccounts({ seed, series, prefix, users, reader }: AccountOptions) {
  const identities = createIdentities(seed, series);
  /** The reader, and users that were created or reset. */
  const kept = new Map<number, User>();
  /** Numbers of the reader and of created users, by field and value. Emails are in lower case, tokens the first ones. */
  const index = new Map<string, number>();
  const generations = new Map<number, number>();
  let next = 0;

  const isInitial = (number: number) => number >= 1 && number <= users;
  const initialReference = (number: number) => prefix + String(number).padStart(REFERENCE_DIGITS, '0');
  const word = (words: readonly string[], number: number, purpose: number) =>
    words[hash(seed ^ series, number, purpose) % words.length] ?? '';

  function userWith(number: number, profile: Profile): User {
    const guid = profile.guid ?? identities.guid(number);
    return {
      number,
      reference: profile.reference ?? null,
      email: profile.email ?? `${guid.toLowerCase()}@users.example`,
      firstName: profile.firstName ?? '',
      lastName: profile.lastName ?? '',
      guid,
      accessToken: profile.accessToken ?? identities.token(number, 0),
    };
  }

  function user(number: number | null | undefined): User | null {
    if (number === null || number === undefined) return null;
    const found = kept.get(number);
    if (found !== undefined || !isInitial(number)) return found ?? null;
    const [firstName, lastName] = [word(FIRST_NAMES, number, 1), word(LAST_NAMES, number, 2)];
    return userWith(number, { reference: initialReference(number), firstName, lastName });
  }

  /** Creates a user whose values are free: see `taken`. */
  function create(profile: Profile): User {
    const created = userWith(next, profile);
    kept.set(next, created);
    for (const field of UNIQUE) {
      const value = created[field];
      if (value !== null) index.set(`${field} ${field === 'email' ? value.toLowerCase() : value}`, next);
    }
    next += next === 0 ? 1 + users : 1;
    return created;
  }

  function byReference(reference: string): User | null {
    const number = reference.startsWith(prefix) ? Number(reference.slice(prefix.length)) : 0;
    const isFound = isInitial(number) && initialReference(number) === reference;
    return user(isFound ? number : index.get(`reference ${reference}`));
  }

  /** A chosen guid replaces the one that the sandbox would have made. */
  function byGuid(guid: string): User | null {
    const found = user(index.get(`guid ${guid}`) ?? identities.numberOfGuid(guid));
    return found?.guid === guid ? found : null;
  }

  function byEmail(email: string): User | null {
    const text = email.toLowerCase();
    const found = user(index.get(`email ${text}`)) ?? byGuid(text.split('@')[0]?.toUpperCase() ?? '');
    return found?.email.toLowerCase() === text ? found : null;
  }

  /** Finds the user who has or had this token: a stale one still shows who asks for a new one. */
  function byToken(token: string): { user: User; state: 'valid' | 'stale' } | null {
    const first = index.get(`accessToken ${token}`);
    const found = first === undefined ? identities.ofToken(token) : { number: first, generation: 0 };
    const holder = user(found?.number);
    if (found === null || holder === null) return null;
    const { number, generation } = found;
    const latest = generations.get(number) ?? 0;
    // A created user may have chosen the first token, so it is known by the index alone.
    const wasGiven = generation === 0 ? first !== undefined || isInitial(number) : generation <= latest;
    return wasGiven ? { user: holder, state: generation === latest ? 'valid' : 'stale' } : null;
  }

  create(reader);

  return {
    byReference,
    byGuid,
    byEmail,
    byToken,
    tokenState: (token: string): TokenState => byToken(token)?.state ?? 'unknown',
    /** Returns the field of a new user that another user already has, or null. */
    taken: (profile: Profile): Unique | null => {
      const find = { reference: byReference, email: byEmail, guid: byGuid, accessToken: byToken };
      return UNIQUE.find((field) => profile[field] !== undefined && find[field](profile[field]) !== null) ?? null;
    },
    create,
    /** Gives the user a new token and makes all earlier ones stale. */
    reset: (given: User): User => {
      const { number } = given;
      const generation = (generations.get(number) ?? 0) + 1;
      generations.set(number, generation);
      const renewed = { ...given, accessToken: identities.token(number, generation) };
      kept.set(number, renewed);
      return renewed;
    },
  };
}

export type Accounts = ReturnType<typeof createAccounts>;
