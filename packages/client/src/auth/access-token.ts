import { interrupted, unlessAborted } from '@catchword/base/abort';
import { type Clock, type Pause, pauseAt } from '@catchword/base/clock';
import { type CatchwordError, hasCode } from '@catchword/base/errors';
import { type Account, fetchAnother, fetchToken, resetToken, unchanged } from './account.ts';
import type { TokenStore } from './token-store.ts';

/*
 * Renews the access token (interface, section 5 rule 3). A token that is rejected with 601 is renewed once, even if many
 * requests fail at the same time; then each of them is retried:
 *
 *   601 ─ does the store, or the file of the setting, have another one? ─ yes: use it
 *                                          └ no: verify the user ─ another token: use it
 *                                                                └ the same, or 601: reset it, verify again
 *
 * Verifying comes first because another process may have reset the token: a second reset would take it away from that
 * process. The token is kept in memory and, if configured, in a file.
 */

export interface TokensOptions {
  /** The configured token; a token in the store takes precedence. */
  readonly configured: string | undefined;
  /** Reads the configured login again. @returns the token, if it is another one than before, and what could not be read */
  readonly configuredAgain: () => Promise<{ readonly token: string | undefined; readonly unread: string }>;
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

async function waitFor(work: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await unlessAborted(work, signal);
  } catch (error) {
    throw signal.aborted ? interrupted() : error;
  }
}

/** What this process knows of the token. It is replaced, never modified. */
interface Known {
  readonly token: string | undefined;
  readonly tokenOfReset?: string;
  /** The last renewal that failed for good, of the token `failed`, and how long it is not repeated. */
  readonly failure?: { failed: string | undefined; error: CatchwordError; pause: Pause } | undefined;
}

/** The error of a renewal that failed for good a short time ago. */
function rememberedError({ failure }: Known, failed: string | undefined, now: number): CatchwordError | null {
  const pause = failure?.failed === failed && failure && pauseAt(failure.pause, now);
  if (!pause) return null;
  const wait = `remembered; the service is asked again in ${Math.ceil((pause.until - now) / 1_000)} s`;
  return failure.error.with({ message: `${failure.error.message} (${wait})` });
}

/** Runs one change of the token at a time: a renewal that finds another token is not the reset that was asked for. */
function createChanges(store: TokenStore | null, closed: AbortSignal) {
  const running = new Map<'renewal' | 'reset', Promise<void>>();
  return {
    running,
    latest: () => running.get('reset') ?? running.get('renewal'),
    /** Starts a change of a kind that is not running. A reset waits for a renewal in progress. */
    start: (kind: 'renewal' | 'reset', change: () => Promise<void>): Promise<void> => {
      const before = running.get('renewal');
      const started = (async () => {
        await before?.catch(() => {});
        await (store === null ? change() : store.alone(change, closed));
      })().finally(() => running.delete(kind));
      running.set(kind, started);
      return started;
    },
  };
}

export type Tokens = ReturnType<typeof createTokens>;

export function createTokens({ configured, configuredAgain, store, account, clock, closed }: TokensOptions) {
  let known: Known = { token: store?.read() ?? configured };
  const { running, latest, start } = createChanges(store, closed);

  async function keep(found: Partial<Known> & { readonly token: string }): Promise<void> {
    known = { ...known, ...found };
    await store?.write(found.token);
  }

  async function readAgain(): Promise<string> {
    const { token, unread } = await configuredAgain();
    if (token !== undefined) known = { ...known, token };
    return unread;
  }

  async function renew(failed: string | undefined, refusal: CatchwordError | undefined): Promise<void> {
    const stored = store?.read();
    if (stored !== undefined && stored !== failed) {
      known = { ...known, token: stored };
      return;
    }
    const unread = await readAgain();
    if (known.token !== failed) return;
    // Without a refusal, the first token is fetched, by the reference.
    if (refusal !== undefined && !account.hasReference) throw refusal.with({ message: `${refusal.message}${unread}` });
    const remembered = rememberedError(known, failed, clock.now());
    if (remembered !== null) throw remembered;
    const { token, isReset } = await fetchAnother(account, failed).catch((error: unknown) => {
      // Other errors, such as an answer that was cut short, do not predict the next attempt.
      if (hasCode(error, 'SERVICE_TOKEN', 'SERVICE_UNKNOWN_USER', 'SERVICE_ERROR')) {
        const since = clock.now();
        known = { ...known, failure: { failed, error, pause: { since, until: since + FAILURE_MS } } };
      }
      throw error;
    });
    await keep({ token, ...(isReset && { tokenOfReset: token }) });
  }

  async function reset(): Promise<void> {
    const old = store?.read() ?? known.token ?? (await fetchToken(account));
    known = { ...known, token: old };
    // It changes nothing, and shows the guid that the user can be verified with afterwards.
    if (!account.hasReference) await account.verify();
    const first = await resetToken(account, old);
    known = { ...known, token: first.token };
    // Another process had replaced the known token, so the valid one was not reset yet.
    const { token, refused } = first.refused === null ? first : await resetToken(account, first.token);
    await keep({ token });
    if (refused !== null) throw refused;
  }

  return {
    current: () => known.token,
    /** Takes the configured token if it has changed. @returns what to add to the error of a refused login */
    readAgain,
    /** Whether a token can be fetched without a configured one, since the reference of the user is known. */
    fetchable: account.hasReference,
    isRenewing: () => running.has('renewal'),
    /** Waits for the renewal in progress, if there is one. @throws what the renewal threw; INTERRUPTED */
    renewal: async (signal: AbortSignal): Promise<void> => {
      const renewing = running.get('renewal');
      if (renewing !== undefined) await waitFor(renewing, signal);
    },
    /**
     * Replaces the token that `failed`; undefined if there was none.
     * @returns whether the new token comes from a reset, so that another renewal would not help
     * @throws CatchwordError `refusal` or SERVICE_TOKEN if the user is not known; what the reset threw; INTERRUPTED
     */
    renew: async (failed: string | undefined, signal: AbortSignal, refusal?: CatchwordError): Promise<boolean> => {
      // Otherwise it was replaced while this request was in flight.
      if (known.token === failed) await waitFor(latest() ?? start('renewal', () => renew(failed, refusal)), signal);
      return known.token !== undefined && known.token === known.tokenOfReset;
    },
    /** Forgets that a renewal failed for good: the user may have been created since. */
    forget: (): void => {
      known = { ...known, failure: undefined };
    },
    /**
     * Resets the token even if it is valid; fetches it first if it is not known. Callers share a reset in progress.
     * @returns the new token. @throws CatchwordError as `renew`; what the reset was rejected with
     */
    reset: async (signal: AbortSignal): Promise<string> => {
      await waitFor(running.get('reset') ?? start('reset', reset), signal);
      if (known.token === undefined) throw unchanged();
      return known.token;
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
