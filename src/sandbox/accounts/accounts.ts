import { hash } from '../catalog/random.ts';
import { FIRST_NAMES, LAST_NAMES } from '../catalog/title-words.ts';
import { createIdentities } from './identities.ts';

/**
 * A user. `reference` is null for full users, who have their own email and password.
 * @rule 2.4-2, 4.3-9
 */
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

/** The fields that a user is created with, such as its first token. The sandbox makes the omitted ones. */
export type Profile = { readonly [Name in Exclude<keyof User, 'number'>]?: string | undefined };

/** `stale`: was valid until it was reset. */
export type TokenState = 'valid' | 'stale' | 'unknown';

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

/**
 * The users that one API key created; no other key can verify them (interface, 4.3). They are numbered: 0 is the key's
 * own reader, then come the initial reference users, then those created later.
 *
 * Initial users are pure functions of seed and number. Only created users and reset tokens are kept in memory. Passwords
 * are not kept: no operation reads them.
 */
export function createAccounts({ seed, series, prefix, users, reader }: AccountOptions) {
  const identities = createIdentities(seed, series);
  /** How often each user's token was reset. */
  const generations = new Map<number, number>();
  const profiles = new Map<number, Profile>();
  /** Numbers of the users in `profiles`, by field and value. Emails are in lower case. */
  const index = new Map<string, number>();
  let next = 1 + users;

  const isInitial = (number: number) => number >= 1 && number <= users;
  const generationOf = (number: number) => generations.get(number) ?? 0;
  const initialReference = (number: number) => prefix + String(number).padStart(REFERENCE_DIGITS, '0');
  const word = (words: readonly string[], number: number, purpose: number) =>
    words[hash(seed ^ series, number, purpose) % words.length] ?? '';

  function profileOf(number: number): Profile | undefined {
    if (!isInitial(number)) return profiles.get(number);
    const firstName = word(FIRST_NAMES, number, 1);
    return { reference: initialReference(number), firstName, lastName: word(LAST_NAMES, number, 2) };
  }

  function tokenOf(number: number, profile: Profile, generation: number): string {
    const first = generation === 0 ? profile.accessToken : undefined;
    return first ?? identities.token(number, generation);
  }

  function userOf(number: number, profile: Profile): User {
    const guid = profile.guid ?? identities.guid(number);
    return {
      number,
      reference: profile.reference ?? null,
      email: profile.email ?? `${guid.toLowerCase()}@users.example`,
      firstName: profile.firstName ?? '',
      lastName: profile.lastName ?? '',
      guid,
      accessToken: tokenOf(number, profile, generationOf(number)),
    };
  }

  function user(number: number | null = null): User | null {
    const profile = number === null ? undefined : profileOf(number);
    return number === null || profile === undefined ? null : userOf(number, profile);
  }

  function byReference(reference: string): User | null {
    const number = reference.startsWith(prefix) ? Number(reference.slice(prefix.length)) : 0;
    const initial = isInitial(number) && initialReference(number) === reference;
    return user(initial ? number : index.get(`reference ${reference}`));
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
    const profile = found === null ? undefined : profileOf(found.number);
    if (found === null || profile === undefined) return null;
    const { number, generation } = found;
    const latest = generationOf(number);
    if (generation > latest || tokenOf(number, profile, generation) !== token) return null;
    return { user: userOf(number, profile), state: generation === latest ? 'valid' : 'stale' };
  }

  function keep(number: number, profile: Profile): void {
    profiles.set(number, profile);
    for (const [field, value] of Object.entries(profile)) {
      index.set(`${field} ${field === 'email' ? String(value).toLowerCase() : value}`, number);
    }
  }

  keep(0, reader);

  return {
    byReference,
    byGuid,
    byEmail,
    byToken,
    tokenState: (token: string): TokenState => byToken(token)?.state ?? 'unknown',
    /** Returns the field of a new user that another user already has, or null. */
    taken: (profile: Profile) => {
      const find = { reference: byReference, email: byEmail, guid: byGuid, accessToken: byToken };
      for (const field of ['reference', 'email', 'guid', 'accessToken'] as const) {
        const value = profile[field];
        if (value !== undefined && find[field](value) !== null) return field;
      }
      return null;
    },
    /** @param profile of which `taken` returns null */
    create: (profile: Profile): User => {
      const number = next++;
      keep(number, profile);
      return userOf(number, profile);
    },
    /** Gives the user a new token and makes all earlier ones stale. */
    reset: ({ number }: User): User => {
      generations.set(number, generationOf(number) + 1);
      return userOf(number, profileOf(number) ?? {});
    },
  };
}

export type Accounts = ReturnType<typeof createAccounts>;
