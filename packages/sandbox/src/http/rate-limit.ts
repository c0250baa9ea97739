/** At most `maxRequests` in any `windowMs` milliseconds. */
export interface RateLimit {
  readonly maxRequests: number;
  readonly windowMs: number;
}

/**
 * A sliding window over the admitted requests. Over the limit, all requests are rejected until the oldest has left the
 * window. A request before that restarts the wait: a whole window from then.
 */
export function createRateLimiter({ maxRequests, windowMs }: RateLimit) {
  const admitted: number[] = [];
  let blockedUntil = Number.NEGATIVE_INFINITY;

  /** Returns null if a request that arrives now is within the limit, else the seconds of `Retry-After`. */
  return (now: number): number | null => {
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
