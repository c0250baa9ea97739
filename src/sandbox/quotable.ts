import { z } from 'zod';

/**
 * A number that may stand in quotes (interface, 2.1.2). What it has to be is said by the two parts, so that the OpenAPI
 * document can say it too.
 * @param needed what is said of anything else
 * @param number is given `needed` for each of its checks: a union tells the error of the one part that nearly fits
 */
export function quotable(
  needed: string,
  number: (words: { readonly error: string }) => z.ZodType<number>,
  quoted: RegExp,
) {
  const words = { error: needed };
  return z.union([number(words), z.string(words).regex(quoted, words)], words).transform(Number);
}

/** A whole number of at least 1. */
export function fromOne(needed: string) {
  return quotable(needed, (words) => z.int(words).min(1, words), /^0*[1-9]\d{0,8}$/);
}
