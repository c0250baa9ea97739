import { interrupted, withAbort } from '@catchword/base/abort';
import { PATIENCE_MS, retryDelayMs } from '@catchword/base/backoff';
import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import type { Pacer } from '@catchword/pace/pacer';
import { type Tokens, withToken } from '../auth/access-token.ts';
import { aboutSubject } from '../errors/service-error.ts';
import { withOutcome } from '../errors/uncertain-write.ts';
import { type ParsedAnswer, parseAnswer } from './answer.ts';
import { type Prepared, prepare, type Request } from './exchange.ts';
import type { Transport } from './transport.ts';

export interface Operation<Result> extends Request {
  /** @throws CatchwordError SERVICE_* if the answer is an error or does not fit */
  read(answer: ParsedAnswer): Result;
}

/**
 * Calls operations of the service: keeps the pace, retries where that is safe, and renews the access token.
 * @rule 4.4-4, 5-3, 7-4, 9-3..4
 */
export interface Caller {
  readonly origin: string;
  /** @throws CatchwordError USAGE before anything is sent; SOURCE_*, SERVICE_*, NOT_FOUND, XML_INVALID, INTERRUPTED */
  call<Result>(operation: Operation<Result>, signal: AbortSignal): Promise<Result>;
}

export interface CallerOptions {
  readonly transport: Transport;
  /** null disables token renewal: a 601 is an error. */
  readonly tokens: Tokens | null;
  readonly pacer: Pacer;
  readonly clock: Clock;
  /** Aborts every call, and rejects later ones. */
  readonly closed: AbortSignal;
}

const MAX_ATTEMPTS = 5;

/** Sends one request and reads its answer. If a write was sent and its outcome is unknown, the error says so. */
export async function callOnce<Result>(
  transport: Transport,
  operation: Operation<Result> & Prepared,
  signal: AbortSignal,
): Promise<Result> {
  const login = transport.login();
  let isSent = false;
  const onSent = (): void => {
    isSent = true;
  };
  try {
    const answer = await transport.send(operation, signal, operation.repeatable ? undefined : onSent);
    return operation.read(parseAnswer(answer, operation));
  } catch (error) {
    if (!(error instanceof CatchwordError)) throw error;
    const about = aboutSubject(await transport.aboutLogin(error, login), operation);
    throw isSent ? withOutcome(about, operation) : about;
  }
}

export function createCaller({ transport, tokens, pacer, clock, closed }: CallerOptions): Caller {
  /** Milliseconds until the next attempt, besides the pause that the pacer keeps; null if there is none. */
  async function pauseAfter(error: unknown, { repeatable }: Request, attempt: number): Promise<number | null> {
    if (!(error instanceof CatchwordError)) return null;
    await pacer.heed(error);
    // A body that is too large or not text stays so; one that was cut short is SOURCE_UNAVAILABLE.
    if (error.code === 'SOURCE_BODY') return null;
    // A request over the rate limit was not carried out.
    if (!repeatable && error.code !== 'SOURCE_RATE_LIMITED') return null;
    const delayMs = retryDelayMs(error, attempt, MAX_ATTEMPTS, () => clock.random());
    return delayMs === null ? null : delayMs - (error.retryAfterMs ?? 0);
  }

  /** Waits until a request may be sent; while the token is renewed, waits for that instead. */
  async function turn({ token }: Request, signal: AbortSignal): Promise<void> {
    const renewing = token === false ? null : tokens;
    do await renewing?.renewal(signal);
    while (
      !(await pacer.acquire(signal, { patienceMs: PATIENCE_MS, isWanted: () => renewing?.isRenewing() !== true }))
    );
  }

  async function withRetries<Result>(operation: Operation<Result> & Prepared, signal: AbortSignal): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      await turn(operation, signal);
      try {
        const result = await callOnce(transport, operation, signal);
        pacer.succeeded();
        return result;
      } catch (error) {
        const pauseMs = await pauseAfter(error, operation, attempt);
        if (pauseMs === null) throw error;
        await clock.sleep(pauseMs, signal);
      }
    }
  }

  /** The error of a call that was aborted by its caller, or by closing the connection. */
  function abortError({ repeatable }: Request): CatchwordError {
    const check = 'check whether it was done first';
    if (!closed.aborted) return repeatable ? interrupted() : interrupted().with({ hint: `Retry; ${check}.` });
    return new CatchwordError('INTERRUPTED', `the connection to ${transport.origin} is closed`, {
      hint: `Connect again for further calls. If this was a write, ${check}.`,
      retryable: false,
    });
  }

  /** A request that lacks its token is refused, and at live services with a status that has other meanings, too. */
  function requireToken({ token }: Request): void {
    if (token !== true || tokens === null || tokens.current() !== undefined || tokens.fetchable) return;
    throw new CatchwordError('CONFIG_INVALID', 'this operation needs an access token, and none is set', {
      hint: 'Set {setting}, or the reference of its user, so that it can be fetched.',
      setting: 'CATCHWORD_ACCESS_TOKEN',
    });
  }

  return {
    origin: transport.origin,
    call: async (operation, asked) => {
      const prepared = prepare(operation);
      requireToken(prepared);
      try {
        return await withAbort([asked, closed], (signal) => {
          const work = () => withRetries(prepared, signal);
          return operation.token !== false && tokens !== null ? withToken(tokens, signal, work) : work();
        });
      } catch (error) {
        const isAborted =
          error instanceof CatchwordError ? error.code === 'INTERRUPTED' : asked.aborted || closed.aborted;
        throw isAborted ? abortError(operation) : error;
      }
    },
  };
}
