import { resolve } from 'node:path';
import { z } from 'zod';
import { CatchwordError } from '../errors.ts';

/** The likely cause of an address that is not what it was meant to be. */
export const ENCODE =
  'A password that holds /, #, ?, @, & or % has to be percent-encoded: %2F, %23, %3F, %40, %26, %25.';

/** The likely cause of an address whose end is missing. */
export const QUOTE = 'In .env, put an address that holds # in quotes: an unquoted # begins a comment there.';

/** Options of every sink. */
export const COMMON_OPTIONS = { refused: z.enum(['park', 'stop']).default('park') };

/** What stands percent-encoded in an address; text with a bare % stands for itself. */
export function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A path in a URL that is no address: relative to the working directory, as everywhere on a command line. */
export function pathOf(url: URL): string {
  return resolve(decoded(url.pathname));
}

export const wholeOption = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `a whole number from ${min} to ${max} is needed`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `a whole number from ${min} to ${max} is needed`);

/** `100MB`, `1.5GB`, `64kB` or bytes. */
export const sizeOption = z
  .string()
  .regex(/^\d+(\.\d+)?(kB|MB|GB)?$/, 'a size such as 100MB is needed')
  .transform((value) => {
    const unit = { kB: 1e3, MB: 1e6, GB: 1e9 }[value.replace(/[\d.]/g, '') as 'kB' | 'MB' | 'GB'] ?? 1;
    return Math.round(Number.parseFloat(value) * unit);
  });

/** Bytes, for people. */
export function sizeText(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

const HOURS = { h: 1, d: 24 } as const;

/** `30d` or `72h`, as milliseconds: at least an hour, at most ten years. */
export const ageOption = z
  .string()
  .regex(/^\d{1,5}[hd]$/, 'a time such as 30d or 72h is needed')
  .transform((value) => Number.parseInt(value, 10) * HOURS[value.slice(-1) as 'h' | 'd'] * 3_600_000)
  .refine((ms) => ms > 0 && ms <= 3_650 * 86_400_000, 'a time from 1h to 3650d is needed');

/**
 * catchword's own options of a sink. They stand in the query; a webhook's query belongs to the receiver, so there they
 * stand behind `#`, which is never sent.
 */
export function optionsIn(url: URL): URLSearchParams {
  return /^https?:$/.test(url.protocol) ? new URLSearchParams(url.hash.slice(1)) : url.searchParams;
}

/**
 * @param shape zod types of the options that this kind of sink has, besides those of every sink
 * @param others options that are not catchword's and may stand there as well
 * @throws CatchwordError CONFIG_INVALID naming the option
 */
export function readOptions<S extends z.ZodRawShape>(
  url: URL,
  shape: S,
  others: readonly string[] = [],
): z.output<z.ZodObject<S>> {
  const known = { ...shape, ...COMMON_OPTIONS };
  const given = Object.fromEntries(optionsIn(url));
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(known, name) && !others.includes(name));
  // Neither names nor values are repeated: a password that is not percent-encoded ends up among them.
  if (unknown.length > 0) {
    throw new CatchwordError('CONFIG_INVALID', 'its address has an option that is not known', {
      hint: `Options are: ${Object.keys(known).join(', ')}. ${ENCODE}`,
    });
  }
  const parsed = z.object(shape).safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const name = String(issue?.path[0] ?? 'options');
  throw new CatchwordError('CONFIG_INVALID', `${name} has a value that cannot be used`, {
    hint: `${issue?.message ?? 'another value is needed'}.`.replace(/^./, (first) => first.toUpperCase()),
  });
}
