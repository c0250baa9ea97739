import { hash } from '../catalog/random.ts';
import { FIRST_NAMES, LAST_NAMES } from '../catalog/title-words.ts';

/** The fields that a user is created with, such as its first token. The sandbox makes the omitted ones. */
export type Profile = {
  readonly [Name in 'reference' | 'email' | 'firstName' | 'lastName' | 'guid' | 'accessToken']?: string | undefined;
};

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
 * The profiles of one key's users, by number. Profiles of initial users are pure functions of seed and number; only those
 * of the reader and of created users are kept in memory.
 */
export function createProfiles({ seed, series, prefix, users, reader }: AccountOptions) {
  const kept = new Map<number, Profile>();
  /** Numbers of the users in `kept`, by field and value. Emails are in lower case. */
  const index = new Map<string, number>();
  let next = 1 + users;

  const isInitial = (number: number) => number >= 1 && number <= users;
  const initialReference = (number: number) => prefix + String(number).padStart(REFERENCE_DIGITS, '0');
  const word = (words: readonly string[], number: number, purpose: number) =>
    words[hash(seed ^ series, number, purpose) % words.length] ?? '';

  function keep(number: number, profile: Profile): void {
    kept.set(number, profile);
    for (const [field, value] of Object.entries(profile)) {
      index.set(`${field} ${field === 'email' ? String(value).toLowerCase() : value}`, number);
    }
  }

  keep(0, reader);

  return {
    of: (number: number): Profile | undefined => {
      if (!isInitial(number)) return kept.get(number);
      const firstName = word(FIRST_NAMES, number, 1);
      return { reference: initialReference(number), firstName, lastName: word(LAST_NAMES, number, 2) };
    },
    /** Returns the number of the user who has this value in a field of the profile. */
    numberWith: (field: keyof Profile, value: string): number | undefined => {
      const number = field === 'reference' && value.startsWith(prefix) ? Number(value.slice(prefix.length)) : 0;
      const isFound = isInitial(number) && initialReference(number) === value;
      return isFound ? number : index.get(`${field} ${value}`);
    },
    /** Keeps the profile of a new user, and returns the user's number. */
    add: (profile: Profile): number => {
      keep(next, profile);
      return next++;
    },
  };
}
