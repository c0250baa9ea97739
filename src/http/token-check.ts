import { createHash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '@catchword/base/clock';
import type { Logger } from '@catchword/base/log';
import ipaddr from 'ipaddr.js';
import type { HttpError } from './http-error.ts';

/** Wrong tokens that an address may send within WITHIN_MS of the first one, before it has to wait. */
const MAX_WRONG = 10;
const WITHIN_MS = 60_000;
/** Addresses that are remembered. For safety: the ones that were noted first are forgotten. */
const MAX_ADDRESSES = 4_096;

export function unauthorized(message: string): HttpError {
  const hint = 'Send Authorization: Bearer … with the value of CATCHWORD_HTTP_TOKEN.';
  return { code: 'UNAUTHORIZED', message, hint, headers: { 'www-authenticate': 'Bearer realm="catchword"' } };
}

/** The token of an `Authorization` header; undefined if it has none. */
export function bearerOf(header: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(header ?? '')?.[1];
}

/** An IPv4 address, or the first 64 bits of an IPv6 address: a network usually has all addresses that begin with them. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const parts = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${parts.join(':')}::/64`;
}

const secondsLeft = ({ since }: { readonly since: number }, now: number): number =>
  Math.ceil((since + WITHIN_MS - now) / 1000);

export type TokenCheck = ReturnType<typeof createTokenCheck>;

/** Checks tokens, and limits how many wrong ones an address may send. */
export function createTokenCheck(token: string, clock: Clock, log: Logger) {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const expected = digest(token);
  /** Wrong tokens by network; the one whose minute began first comes first. */
  const wrong = new Map<string, { readonly since: number; count: number }>();

  /** The minute of a network; null if there is none, or it is over, or the clock was put back before it. */
  function minuteOf(network: string, now: number) {
    const found = wrong.get(network);
    if (found === undefined) return null;
    if (now >= found.since && now - found.since < WITHIN_MS) return found;
    wrong.delete(network);
    return null;
  }

  function note(network: string, now: number): void {
    const minute = minuteOf(network, now) ?? { since: now, count: 0 };
    minute.count++;
    wrong.set(network, minute);
    const [oldest] = wrong.keys();
    if (wrong.size > MAX_ADDRESSES && oldest !== undefined) wrong.delete(oldest);
    if (minute.count < MAX_WRONG) return;
    const pauseMs = secondsLeft(minute, now) * 1000;
    log.warn({ address: network, failures: minute.count, pauseMs }, 'too many wrong tokens: the address has to wait');
  }

  /**
   * Compares digests, so that timing reveals neither the token's length nor a prefix of it.
   * @returns null if the token is right
   */
  return (given: string, address: string): HttpError | null => {
    // A right token always passes: behind a proxy, all readers have one address.
    if (timingSafeEqual(digest(given), expected)) return null;
    const network = networkOf(address);
    const now = clock.now();
    const minute = minuteOf(network, now);
    if (minute !== null && minute.count >= MAX_WRONG) {
      const seconds = secondsLeft(minute, now);
      return {
        code: 'TOO_MANY_WRONG_TOKENS',
        message: `${MAX_WRONG} wrong tokens came from your address within a minute`,
        hint: `Send the value of CATCHWORD_HTTP_TOKEN, which always passes. Another one gets this answer for ${seconds} s.`,
        headers: { 'retry-after': String(seconds) },
      };
    }
    note(network, now);
    return unauthorized('the token is wrong');
  };
}
