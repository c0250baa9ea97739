import { createIdentities } from './identities.ts';
import { type AccountOptions, createProfiles, type Profile } from './profiles.ts';

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

/** `stale`: was valid until it was reset. */
export type TokenState = 'valid' | 'stale' | 'unknown';

/**
 * The users that one API key created; no other key can verify them (interface, 4.3). They are numbered: 0 is the key's
 * own reader, then come the initial reference users, then those created later.
 *
 * Initial users are pure functions of seed and number. Only created users and reset tokens are kept in memory. No password
 * is kept: no operation reads one.
 */
export function createAccounts(options: AccountOptions) {
  const identities = createIdentities(options.seed, options.series);
  const profiles = createProfiles(options);
  /** How often each user's token was reset. */
  const generations = new Map<number, number>();
  const generationOf = (number: number) => generations.get(number) ?? 0;

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
    const profile = number === null ? undefined : profiles.of(number);
    return number === null || profile === undefined ? null : userOf(number, profile);
  }

  const byReference = (reference: string) => user(profiles.numberWith('reference', reference));

  /** A chosen guid replaces the one that the sandbox would have made. */
  function byGuid(guid: string): User | null {
    const found = user(profiles.numberWith('guid', guid) ?? identities.numberOfGuid(guid));
    return found?.guid === guid ? found : null;
  }

  function byEmail(email: string): User | null {
    const text = email.toLowerCase();
    const found = user(profiles.numberWith('email', text)) ?? byGuid(text.split('@')[0]?.toUpperCase() ?? '');
    return found?.email.toLowerCase() === text ? found : null;
  }

  /** Finds the user who has or had this token: a stale one still shows who asks for a new one. */
  function byToken(token: string): { user: User; state: 'valid' | 'stale' } | null {
    const first = profiles.numberWith('accessToken', token);
    const found = first === undefined ? identities.ofToken(token) : { number: first, generation: 0 };
    const profile = found === null ? undefined : profiles.of(found.number);
    if (found === null || profile === undefined) return null;
    const { number, generation } = found;
    const latest = generationOf(number);
    if (generation > latest || tokenOf(number, profile, generation) !== token) return null;
    return { user: userOf(number, profile), state: generation === latest ? 'valid' : 'stale' };
  }

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
    /** Creates a user whose values are free: see `taken`. */
    create: (profile: Profile): User => userOf(profiles.add(profile), profile),
    /** Gives the user a new token and makes all earlier ones stale. */
    reset: ({ number }: User): User => {
      generations.set(number, generationOf(number) + 1);
      return userOf(number, profiles.of(number) ?? {});
    },
  };
}

export type Accounts = ReturnType<typeof createAccounts>;
