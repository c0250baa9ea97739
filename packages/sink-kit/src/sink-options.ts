import { resolve } from 'node:path';
import { CatchwordError } from '@catchword/base/errors';
import { nearestName } from '@catchword/base/nearest-name';
import { decoded } from '@catchword/base/percent-decode';
import { wholeNumber } from '@catchword/base/whole-number';
import * as z from 'zod';

/** Hint for an address that is parsed differently than it was meant. */
export const ENCODE =
  'Characters of a password must be percent-encoded: %2F (/), %23 (#), %3F (?), %40 (@), %26 (&), %25 (%).';

/** Hint for an address whose end is missing. */
export const QUOTE = 'In .env, quote an address that contains #: an unquoted # starts a comment.';

/** Separates the secrets of a webhook, which has two while they are changed. */
export const BETWEEN_SECRETS = /[\s,]+/;

/** What to do about a text that cannot be parsed as an address. */
export function addressHint(text: string): string {
  if (/^[^:]*["'“‘\s=]/.test(text)) return 'Write the address alone: without quotes, and without anything before it.';
  return text.includes('@') ? ENCODE : QUOTE;
}

/** Names of secret options, which `keys` of Redis is not. A webhook's whole query is secret. */
export const SECRET_NAME = /pass|secret|token|key(?!s$)|auth|credential/i;

/** The path of `jsonl:PATH` or `module:PATH`, relative to the working directory. */
export function pathOf(url: URL): string {
  return resolve(decoded(url.pathname));
}

// The messages of these types follow "Use ".

export const wholeOption = (min: number, max: number) => {
  const isWithin = (text: string): boolean => wholeNumber(text, min, max) !== null;
  return z.string().refine(isWithin, `a whole number from ${min} to ${max}`).transform(Number);
};

/** `100MB`, `1.5GB`, `64kB` or bytes. */
export const sizeOption = z
  .string()
  .regex(/^\d+(\.\d+)?(kB|MB|GB)?$/, 'a size such as 100MB')
  .transform((value) => {
    const unit = { kB: 1e3, MB: 1e6, GB: 1e9 }[value.replace(/[\d.]/g, '') as 'kB' | 'MB' | 'GB'] ?? 1;
    return Math.round(Number.parseFloat(value) * unit);
  });

/** Formats bytes for people. */
export function sizeText(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

const HOURS = { h: 1, d: 24 } as const;

/** `30d` or `72h`, as milliseconds: at least an hour, at most ten years. */
export const ageOption = z
  .string()
  .regex(/^\d{1,5}[hd]$/, 'a time such as 30d or 72h')
  .transform((value) => Number.parseInt(value, 10) * HOURS[value.slice(-1) as 'h' | 'd'] * 3_600_000)
  .refine((ms) => ms > 0 && ms <= 3_650 * 86_400_000, 'a time from 1h to 3650d');

/** Options of every sink. `verify`: how often its store is compared with its source. */
export const COMMON_OPTIONS = {
  refused: z.enum(['park', 'stop'], 'park or stop').default('park'),
  verify: ageOption.optional(),
};

/** catchword's own options: in the query, or behind `#` for a webhook, whose query belongs to the receiver. */
export function optionsIn(url: URL): URLSearchParams {
  return /^https?:$/.test(url.protocol) ? new URLSearchParams(url.hash.slice(1)) : url.searchParams;
}

/**
 * Reads the options of a sink.
 * @param shape zod types of the options that this kind of sink has, besides COMMON_OPTIONS
 * @param others names of further options, which are not catchword's
 * @param common options besides `shape`
 * @throws CatchwordError CONFIG_INVALID naming the option
 */
export function readOptions<S extends z.ZodRawShape>(
  url: URL,
  shape: S,
  others: readonly string[] = [],
  common: z.ZodRawShape = COMMON_OPTIONS,
): z.output<z.ZodObject<S>> {
  const known = { ...shape, ...common };
  const given = Object.fromEntries(optionsIn(url));
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name) && !others.includes(name));
  // The error repeats neither names nor values: a part of a password that is not percent-encoded may be among them.
  if (unknown.length > 0) {
    const names = [...Object.keys(known), ...others];
    const [near] = unknown.flatMap((name) => nearestName(name, names) ?? []);
    const isTorn = Object.keys(given).some((name) => SECRET_NAME.test(name));
    const cause = isTorn ? ` ${ENCODE}` : near === undefined ? '' : ` Did you mean ${near}?`;
    throw new CatchwordError('CONFIG_INVALID', 'the address has an unknown option', {
      hint: `Options are: ${Object.keys(known).join(', ')}.${cause}`,
    });
  }
  const parsed = z.object(shape).safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const name = String(issue?.path[0] ?? 'an option');
  const quotes = /^["'].*["']$/.test(String(given[name])) ? ' Write it without quotes.' : '';
  const isUnfit = issue?.code === 'invalid_type' && issue.expected === 'never';
  const fault = isUnfit ? `the option ${name} is not for a sink` : `the value of ${name} is not valid`;
  throw new CatchwordError('CONFIG_INVALID', fault, {
    hint: `Use ${issue?.message ?? 'another value'}.${quotes}`,
  });
}

/** @throws CatchwordError CONFIG_INVALID if the address has an option and one that it excludes */
export function excludeOptions(url: URL, name: string, excluded: readonly string[]): void {
  const other = excluded.find((one) => url.searchParams.has(one));
  if (other === undefined) return;
  throw new CatchwordError('CONFIG_INVALID', `the options ${name} and ${other} exclude each other`, {
    hint: `Remove one of them: ${name} is for the last value of each product, ${other} for a stream of events.`,
  });
}
