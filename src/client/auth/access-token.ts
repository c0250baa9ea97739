import { interrupted, unlessAborted } from '../../base/abort.ts';
import { type Clock, type Pause, pauseAt } from '../../base/clock.ts';
import { CatchwordError, hasCode } from '../../base/errors.ts';
import type { TokenStore } from './token-store.ts';

/*
 * Renews the access token (interface, section 5 rule 3). A token that is rejected with 601 is renewed once, even if many
 * requests fail at the same time; then each of them is retried:
 *
 *   601 ─ does the store have another one? ─ yes: use it
 *                                          └ no: verify the user ─ another token: use it
 *                                                                └ the same, or 601: reset it, verify again
 *
 * Verifying comes first because another process may have reset the token: a second reset would take it away from that
 * process. The token is kept in memory and, if configured, in a file.
 */

/**
 * The user who owns the access token.
 * @rule 5-7, 7-5
 */
export interface Account {
  /** Whether the reference of the user is known, by which a token can be fetched without another one. */
  readonly hasReference: boolean;
  /**
   * Verifies the user by its reference, which changes nothing; without one, by its guid or else by the current token.
   * @returns the valid token, or the error of a 601
   * @throws CatchwordError SERVICE_UNKNOWN_USER if the reference does not exist (603); SOURCE_*; SERVICE_*
   */
  verify(): Promise<string | CatchwordError>;
  /**
   * Resets the token that requests are made with.
   * @returns the new token, if the answer has it
   * @throws CatchwordError SOURCE_*; SERVICE_*
   */
  reset(): Promise<string | undefined>;
}

export interface TokensOptions {
  /** The configured token; a token in the store takes precedence. */
  readonly configured: string | undefined;
  readonly store: TokenStore | null;
  readonly account: Account;
  readonly clock: Clock;
  /** Ends the wait for another process; requests of `account` end on their own. */
  readonly closed: AbortSignal;
}

/** How long a renewal that failed for good is not repeated. */
const FAILURE_MS = 60_000;
/** One request may first meet the token of another process, and then one of a reset. */
const MAX_RENEWALS = 2;

function noReference(): CatchwordError {
  return new CatchwordError('SERVICE_TOKEN', 'the access token is not valid (code 601)', {
    hint: 'Set {setting} to the reference of the user, so that the token can be renewed, or set a new access token.',
    setting: 'CATCHWORD_USER_REFERENCE',
    serviceCode: 601,
  });
}

/** The token to reset, if none is set. @throws CatchwordError CONFIG_INVALID without the reference of its user */
async function fetchToken(account: Account): Promise<string> {
  if (!account.hasReference) {
    throw new CatchwordError('CONFIG_INVALID', 'no access token is set, so none can be reset', {
      hint: 'Set {setting}, or the reference of its user.',
      setting: 'CATCHWORD_ACCESS_TOKEN',
    });
  }
  const token = await account.verify();
  if (typeof token === 'string') return token;
  throw token;
}

function unchanged(): CatchwordError {
  return new CatchwordError('SERVICE_TOKEN', 'the access token was reset, but the service still returns the old one', {
    hint: 'Retry later; if the error persists, ask the service.',
    serviceCode: 601,
  });
}

async function waitFor(work: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await unlessAborted(work, signal);
  } catch (error) {
    throw signal.aborted ? interrupted() : error;
  }
}

/**
 * Resets the token, and verifies the user if the answer does not have the new one, or if the reset was rejected: then
 * another process may have reset it.
 * @returns the new token, and the error if the reset was rejected
 * @throws CatchwordError the rejection, if the token is still the same; SERVICE_TOKEN; what the requests threw
 */
async function resetToken(account: Account, old: string) {
  let refused: CatchwordError | null = null;
  try {
    const token = await account.reset();
    if (token !== undefined && token !== old) return { token, refused };
  } catch (error) {
    if (!(error instanceof CatchwordError) || error.retryable) throw error;
    refused = error;
  }
  const token = await account.verify();
  if (typeof token !== 'string') throw refused ?? token;
  if (token === old) throw refused ?? unchanged();
  return { token, refused };
}

export type Tokens = ReturnType<typeof createTokens>;

export function createTokens({ configured, store, account, clock, closed }: TokensOptions) {
  let token = store?.read() ?? configured;
  let tokenOfReset: string | undefined;
  let running: Promise<void> | undefined;
  let renewing: Promise<void> | undefined;
  let resetting: Promise<void> | undefined;
  let failure: { failed: string | undefined; error: CatchwordError; pause: Pause } | undefined;

  async function fetchNew(from: Account, failed: string | undefined): Promise<void> {
    const found = await from.verify();
    if (typeof found === 'string' && found !== failed) {
      token = found;
      return;
    }
    // Without a token, a reset cannot be sent.
    if (failed === undefined) throw found;
    const replaced = await resetToken(from, failed);
    token = replaced.token;
    if (replaced.refused === null) tokenOfReset = token;
  }

  async function replace(failed: string | undefined, refusal: CatchwordError | undefined): Promise<void> {
    const stored = store?.read();
    if (stored !== undefined && stored !== failed) {
      token = stored;
      return;
    }
    if (!account.hasReference) throw refusal ?? noReference();
    const now = clock.now();
    const known = failure?.failed === failed ? failure : undefined;
    const pause = known && pauseAt(known.pause, now);
    if (known && pause) {
      const wait = `remembered; the service is asked again in ${Math.ceil((pause.until - now) / 1_000)} s`;
      throw known.error.with({ message: `${known.error.message} (${wait})` });
    }
    try {
      await fetchNew(account, failed);
    } catch (error) {
      // Other errors, such as an answer that was cut short, do not predict the next attempt.
      if (hasCode(error, 'SERVICE_TOKEN', 'SERVICE_UNKNOWN_USER', 'SERVICE_ERROR')) {
        const since = clock.now();
        failure = { failed, error, pause: { since, until: since + FAILURE_MS } };
      }
      throw error;
    }
    if (token !== undefined) await store?.write(token);
  }

  async function resetNow(): Promise<void> {
    token = store?.read() ?? token ?? (await fetchToken(account));
    // It changes nothing, and shows by which guid the user can be verified afterwards.
    if (!account.hasReference) await account.verify();
    let replaced = await resetToken(account, token);
    token = replaced.token;
    // Another process had replaced the known token, so the valid one was not reset yet.
    if (replaced.refused !== null) replaced = await resetToken(account, token);
    token = replaced.token;
    await store?.write(token);
    if (replaced.refused !== null) throw replaced.refused;
  }

  /** Runs one change of the token at a time: a renewal that finds another token is not the reset that was asked for. */
  function start(work: () => Promise<void>): Promise<void> {
    const before = running;
    const started = (async () => {
      await before?.catch(() => {});
      await (store === null ? work() : store.alone(work, closed));
    })().finally(() => {
      if (running === started) running = undefined;
    });
    running = started;
    return started;
  }

  function startRenewal(failed: string | undefined, refusal: CatchwordError | undefined): Promise<void> {
    renewing = start(() => replace(failed, refusal)).finally(() => {
      renewing = undefined;
    });
    return renewing;
  }

  return {
    current: () => token,
    /** Whether a token can be fetched without a configured one, since the reference of the user is known. */
    fetchable: account.hasReference,
    isRenewing: () => renewing !== undefined,
    /** Waits for the renewal in progress, if there is one. @throws what the renewal threw; INTERRUPTED */
    renewal: async (signal: AbortSignal): Promise<void> => {
      if (renewing !== undefined) await waitFor(renewing, signal);
    },
    /**
     * Replaces a rejected token.
     * @param failed the rejected token; undefined if there was none
     * @param refusal the error of the service
     * @returns whether the new token comes from a reset, so that another renewal would not help
     * @throws CatchwordError `refusal` or SERVICE_TOKEN if the user is not known; what the reset threw; INTERRUPTED
     */
    renew: async (failed: string | undefined, signal: AbortSignal, refusal?: CatchwordError): Promise<boolean> => {
      // Otherwise it was replaced while this request was in flight.
      if (token === failed) await waitFor(running ?? startRenewal(failed, refusal), signal);
      return token !== undefined && token === tokenOfReset;
    },
    /** Forgets that a renewal failed for good: the user may have been created since. */
    forget: (): void => {
      failure = undefined;
    },
    /**
     * Resets the token even if it is valid; fetches it first if it is not known. Callers share a reset in progress.
     * @returns the new token. @throws CatchwordError as `renew`; what the reset was rejected with
     */
    reset: async (signal: AbortSignal): Promise<string> => {
      resetting ??= start(resetNow).finally(() => {
        resetting = undefined;
      });
      await waitFor(resetting, signal);
      if (token === undefined) throw unchanged();
      return token;
    },
  };
}

/** Runs work that needs the access token, and retries it with a new token after a 601. @throws also what `renew` throws */
export async function withToken<Result>(
  tokens: Tokens,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  if (tokens.current() === undefined && tokens.fetchable) await tokens.renew(undefined, signal);
  else await tokens.renewal(signal);
  for (let renewals = 0, isLast = false; ; renewals++) {
    const used = tokens.current();
    try {
      return await work();
    } catch (error) {
      if (!hasCode(error, 'SERVICE_TOKEN') || isLast || renewals === MAX_RENEWALS) throw error;
      isLast = await tokens.renew(used, signal, error);
    }
  }
}
