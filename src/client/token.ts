import type { Clock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';
import type { TokenStore } from './token-store.ts';

/*
 * Care for the access token (interface, section 5 rule 3). A token that is refused with 601 is replaced once, however
 * many requests it fails for at the same time, and each of them is then asked once more:
 *
 *   refused ─ another process stored a newer one? ─ yes: that one
 *                                                 └ no: reset it, verify the user's reference, keep what comes back
 *
 * A token lives in memory and, where the user names a file for it, in that file.
 */
export interface Tokens {
  current(): string | undefined;
  /** Whether a token can be had without one being configured: the user's reference is known. */
  readonly fetchable: boolean;
  /**
   * Resets the token, whether it is valid or not.
   * @throws CatchwordError as `renew`
   */
  reset(signal: AbortSignal): Promise<void>;
  /**
   * Has another token than `failed` when it resolves.
   * @param failed the token that was refused; undefined where none was known
   * @param refusal what the service said of it
   * @throws CatchwordError `refusal`, or SERVICE_TOKEN, where there is no reference to fetch one by; what the reset threw; INTERRUPTED
   */
  renew(failed: string | undefined, signal: AbortSignal, refusal?: CatchwordError): Promise<void>;
}

export interface TokensOptions {
  /** As configured; what the store holds goes before it. */
  readonly configured: string | undefined;
  readonly store: TokenStore | null;
  /**
   * Fetches the token that is valid now, null where nobody told the user's reference.
   * @param old the token that is reset first; undefined: none is reset
   */
  readonly fetch: ((old: string | undefined) => Promise<string>) | null;
  readonly clock: Clock;
}

/** A reset that cannot succeed is not tried for each page anew; a run that starts later tries again. */
const HOPELESS_MS = 600_000;

function noReference(): CatchwordError {
  return new CatchwordError('SERVICE_TOKEN', 'the access token is no longer valid (code 601)', {
    hint: 'Set CATCHWORD_USER_REFERENCE to the user’s reference, so that a new one is fetched, or set CATCHWORD_ACCESS_TOKEN.',
    serviceCode: 601,
  });
}

/** Waits, but no longer than the one who asks: what is waited for goes on for the others. */
async function orAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(new CatchwordError('INTERRUPTED', 'the request was given up'));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

export function createTokens({ configured, store, fetch, clock }: TokensOptions): Tokens {
  let token = store?.read() ?? configured;
  let running: Promise<void> | undefined;
  let hopeless:
    | { readonly failed: string | undefined; readonly error: CatchwordError; readonly untilMs: number }
    | undefined;

  async function fetchNew(old: string | undefined, refusal?: CatchwordError): Promise<void> {
    if (fetch === null) throw refusal ?? noReference();
    token = await fetch(old);
    await store?.write(token);
  }

  async function replace(failed: string | undefined, refusal?: CatchwordError): Promise<void> {
    const newer = store?.read();
    if (newer !== undefined && newer !== failed) {
      token = newer;
      return;
    }
    if (hopeless !== undefined && hopeless.failed === failed && clock.now() < hopeless.untilMs) throw hopeless.error;
    await fetchNew(failed, refusal);
  }

  async function replaceOnce(work: () => Promise<void>, failed: string | undefined): Promise<void> {
    try {
      await (store === null ? work() : store.alone(work));
    } catch (error) {
      if (error instanceof CatchwordError && !error.retryable && error !== hopeless?.error) {
        hopeless = { failed, error, untilMs: clock.now() + HOPELESS_MS };
      }
      throw error;
    } finally {
      running = undefined;
    }
  }

  return {
    current: () => token,
    renew: async (failed, signal, refusal) => {
      // Somebody else replaced it while this request was under way.
      if (token !== failed) return;
      running ??= replaceOnce(() => replace(failed, refusal), failed);
      await orAborted(running, signal);
    },
    fetchable: fetch !== null,
    reset: async (signal) => {
      running ??= replaceOnce(() => fetchNew(token), token);
      await orAborted(running, signal);
    },
  };
}

export function isTokenError(error: unknown): error is CatchwordError {
  return error instanceof CatchwordError && error.code === 'SERVICE_TOKEN';
}

/**
 * Does what needs the access token, and once more with a new one where it was refused.
 * @throws what `work` throws; what `renew` throws
 */
export async function withToken<Result>(
  tokens: Tokens,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  if (tokens.current() === undefined && tokens.fetchable) await tokens.renew(undefined, signal);
  const used = tokens.current();
  try {
    return await work();
  } catch (error) {
    if (!isTokenError(error)) throw error;
    await tokens.renew(used, signal, error);
    return await work();
  }
}
