import { hash } from '../catalog/random.ts';

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
 * @param series differs from key to key, so that users with the same number have different guids and tokens
 * @rule 5-4
 */
export function createIdentities(seed: number, series: number) {
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
