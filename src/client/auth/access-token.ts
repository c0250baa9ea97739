import { unlessAborted } from '../../abort.ts';
import type { Clock, Pause } from '../../clock.ts';
import { CatchwordError, type ErrorCode } from '../../errors.ts';
import { givenUp } from '../http/abort-errors.ts';
import { type Account, renewedToken, resetToken } from './token-reset.ts';
import type { TokenStore } from './token-store.ts';

/*
 * Care for the access token (interface, section 5 rule 3). A token that is refused with 601 is replaced once, however
 * many requests it fails for at the same time, and each of them is then asked once more:
 *
 *   refused ─ another process stored a newer one? ─ yes: that one
 *                                                 └ no: verify the user's reference ─ another one: that one
 *                                                                                   └ the same, or 601: reset it, verify
 *
 * A token lives in memory and, where the user names a file for it, in that file.
 */
export interface Tokens {
  current(): string | undefined;
  /** Whether a token can be had without one being configured: the user's reference is known. */
  readonly fetchable: boolean;
  /** Whether a token that was refused is being replaced. */
  isRenewing(): boolean;
  /**
   * Waits for the renewal under way, if there is one.
   * @throws CatchwordError what the renewal threw; INTERRUPTED
   */
  renewal(signal: AbortSignal): Promise<void>;
  /** The user may be another by now: what the service said of it is asked anew. */
  forget(): void;
  /**
   * Resets the token, whether it is valid or not. Where none is known, it is fetched first, or there would be nothing to
   * reset. Resets that are asked for while one is under way are that one.
   * @throws CatchwordError as `renew`; what the reset was refused with
   */
  reset(signal: AbortSignal): Promise<void>;
  /**
   * Has another token than `failed` when it resolves.
   * @param failed the token that was refused; undefined where none was known
   * @param refusal what the service said of it
   * @returns whether it came of a reset, so that nothing better can be had where it is refused too
   * @throws CatchwordError `refusal`, or SERVICE_TOKEN, where there is no reference to fetch one by; what the reset threw; INTERRUPTED
   */
  renew(failed: string | undefined, signal: AbortSignal, refusal?: CatchwordError): Promise<boolean>;
}

export interface TokensOptions {
  /** As configured; what the store holds goes before it. */
  readonly configured: string | undefined;
  readonly store: TokenStore | null;
  /** Null where nobody told the user's reference. */
  readonly account: Account | null;
  readonly clock: Clock;
  /** Ends the wait for another process; what `account` asks ends by itself then. */
  readonly closed: AbortSignal;
}

/** For comfort: a renewal that the service says cannot succeed is not tried for each call anew. */
const VERDICT_MS = 60_000;

/**
 * What the service says of the user, or that it gives no other token after a reset, which nobody wants done again and
 * again. All else, such as an answer that was cut short, says nothing of the next try.
 */
const VERDICTS: readonly ErrorCode[] = ['SERVICE_TOKEN', 'SERVICE_UNKNOWN_USER', 'SERVICE_ERROR'];

/** Why a token could not be renewed. */
interface Verdict {
  readonly failed: string | undefined;
  readonly error: CatchwordError;
  readonly pause: Pause;
}

/** Of one request: to the token that others have, and to one of a reset. */
const MAX_RENEWALS = 2;

function noReference(): CatchwordError {
  return new CatchwordError('SERVICE_TOKEN', 'the access token is no longer valid (code 601)', {
    hint: 'Set CATCHWORD_USER_REFERENCE to the user’s reference, so that a new one is fetched, or set CATCHWORD_ACCESS_TOKEN.',
    serviceCode: 601,
  });
}

function remembered({ error, pause: { until } }: Verdict, now: number): CatchwordError {
  const { code, message, hint = '', status, serviceCode } = error;
  const forSeconds = Math.ceil((until - now) / 1_000);
  return new CatchwordError(code, `${message} (remembered; the service is asked again in ${forSeconds} s)`, {
    ...{ status, serviceCode },
    hint: `${hint} What is started anew asks at once.`.trim(),
  });
}

/** Waits, but no longer than the one who asks: what is waited for goes on for the others. */
async function orAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await unlessAborted(work, signal);
  } catch (error) {
    throw signal.aborted ? givenUp() : error;
  }
}

export function createTokens({ configured, store, account, clock, closed }: TokensOptions): Tokens {
  let token = store?.read() ?? configured;
  let ofReset: string | undefined;
  let running: Promise<void> | undefined;
  let renewing: Promise<void> | undefined;
  let resetting: Promise<void> | undefined;
  let verdict: Verdict | undefined;

  async function fetchNew(failed: string | undefined, refusal?: CatchwordError): Promise<void> {
    if (account === null) throw refusal ?? noReference();
    const now = clock.now();
    // A clock that was put back behind it: how old the verdict is, is not known.
    const isFresh = verdict !== undefined && verdict.pause.since <= now && now < verdict.pause.until;
    if (isFresh && verdict !== undefined && verdict.failed === failed) throw remembered(verdict, now);
    try {
      const renewed = await renewedToken(account, failed);
      token = renewed.token;
      if (renewed.isReset) ofReset = token;
    } catch (error) {
      if (error instanceof CatchwordError && VERDICTS.includes(error.code)) {
        const since = clock.now();
        verdict = { failed, error, pause: { since, until: since + VERDICT_MS } };
      }
      throw error;
    }
    await store?.write(token);
  }

  async function replace(failed: string | undefined, refusal?: CatchwordError): Promise<void> {
    const newer = store?.read();
    if (newer === undefined || newer === failed) await fetchNew(failed, refusal);
    else token = newer;
  }

  async function known(from: Account): Promise<string> {
    const found = store?.read() ?? token ?? (await from.verify());
    if (typeof found === 'string') return found;
    throw found;
  }

  async function resetNow(): Promise<void> {
    if (account === null) throw noReference();
    // Requests are made with it, the reset among them.
    token = await known(account);
    let replaced = await resetToken(account, token);
    token = replaced.token;
    if (replaced.refused !== undefined) {
      // Somebody else had replaced it: what is valid now was not reset yet.
      replaced = await resetToken(account, token);
      token = replaced.token;
    }
    await store?.write(token);
    if (replaced.refused !== undefined) throw replaced.refused;
  }

  /** One after the other, also of this process: a reset that was asked for is not done by a renewal that found another token. */
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

  function startRenewal(failed: string | undefined, refusal?: CatchwordError): Promise<void> {
    renewing = start(() => replace(failed, refusal)).finally(() => {
      renewing = undefined;
    });
    return renewing;
  }

  return {
    current: () => token,
    isRenewing: () => renewing !== undefined,
    renewal: async (signal) => {
      if (renewing !== undefined) await orAborted(renewing, signal);
    },
    renew: async (failed, signal, refusal) => {
      // Somebody else replaced it while this request was under way.
      if (token === failed) await orAborted(running ?? startRenewal(failed, refusal), signal);
      return token !== undefined && token === ofReset;
    },
    fetchable: account !== null,
    forget: () => {
      verdict = undefined;
    },
    reset: async (signal) => {
      resetting ??= start(resetNow).finally(() => {
        resetting = undefined;
      });
      await orAborted(resetting, signal);
    },
  };
}

export function isTokenError(error: unknown): error is CatchwordError {
  return error instanceof CatchwordError && error.code === 'SERVICE_TOKEN';
}

/**
 * Does what needs the access token, and once more with a new one where it was refused: the one that others have, and one
 * of a reset where that is refused too.
 * @throws what `work` throws; what `renew` throws
 */
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
      if (!isTokenError(error) || isLast || renewals === MAX_RENEWALS) throw error;
      isLast = await tokens.renew(used, signal, error);
    }
  }
}
