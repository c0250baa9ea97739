/** At most `maxRequests` in any `windowMs` milliseconds. */
export interface RateLimit {
  readonly maxRequests: number;
  readonly windowMs: number;
}

/** Takes the time of an arrival; returns null where it is within the limit, else the seconds of `Retry-After`. */
export type Admit = (now: number) => number | null;

/**
 * A sliding window over the requests let through. Over the limit, all are refused until the oldest has left the
 * window; a request before that is impolite and begins the wait anew, a whole window from then.
 */
export function createRateLimiter({ maxRequests, windowMs }: RateLimit): Admit {
  const admitted: number[] = [];
  let blockedUntil = Number.NEGATIVE_INFINITY;

  return (now) => {
    while (admitted[0] !== undefined && admitted[0] + windowMs <= now) admitted.shift();
    if (now < blockedUntil) blockedUntil = now + windowMs;
    else if (admitted.length >= maxRequests) blockedUntil = (admitted[0] ?? now) + windowMs;
    else {
      admitted.push(now);
      return null;
    }
    return Math.max(1, Math.ceil((blockedUntil - now) / 1000));
  };
}
