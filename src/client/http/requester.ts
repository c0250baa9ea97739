import { withAbort } from '../../abort.ts';
import { PATIENCE_MS, retryDelayMs } from '../../backoff.ts';
import type { Clock } from '../../clock.ts';
import { CatchwordError, toErrorRecord } from '../../errors.ts';
import type { Pacer } from '../../pacer.ts';
import type { Tokens } from '../auth/access-token.ts';
import { withToken } from '../auth/access-token.ts';
import { maybeDone } from '../errors/uncertain-write.ts';
import { givenUp, wasClosed } from './abort-errors.ts';
import { type JsonAnswer, jsonAnswer, type Reading, type XmlAnswer, xmlAnswer } from './response.ts';
import { XML_LIMITS } from './response-body.ts';
import type { Transport, TransportRequest } from './transport.ts';

/** One operation of the interface as it is asked for. */
export interface Call
  extends Pick<
    TransportRequest,
    | 'method'
    | 'path'
    | 'query'
    | 'body'
    | 'token'
    | 'signal'
    | 'accepted'
    | 'secrets'
    | 'identified'
    | 'fields'
    | 'onceAnswered'
    | 'keepsBytes'
    | 'onSent'
  > {
  /** Whether asking twice does no more than asking once, so that it may be asked again after a failure half-way. */
  readonly repeatable: boolean;
  /**
   * The interface does not show what is answered: plain text and a bare JSON string, such as `deleted`, are answers too
   * where they say that it was done. Of JSON operations; default: they are errors.
   */
  readonly freeform?: boolean | undefined;
  /** The field of the answer that holds the identifier of what is created; an error beside one names it. */
  readonly creates?: string | undefined;
}

/**
 * Asks the service: at its pace, again where that may help, and with a new access token where the old one is refused.
 * Both throw CatchwordError SOURCE_*, SERVICE_*, NOT_FOUND, INTERRUPTED.
 */
export interface Caller {
  /** Scheme, host and port of the service. */
  readonly origin: string;
  /** @throws CatchwordError besides the above SERVICE_* where a body with a good status holds an error */
  json(call: Call): Promise<JsonAnswer>;
  /**
   * @param read makes the operation's result of the elements. What it throws is handled as what the transport throws, a
   *   601 that it finds in the body among it.
   * @throws CatchwordError besides the above XML_INVALID
   */
  xml<Result>(call: Call, read: (answer: XmlAnswer) => Result): Promise<Result>;
}

export interface CallerOptions {
  readonly transport: Transport;
  /** Null where nobody cares for the token: a 601 is an error at once. */
  readonly tokens: Tokens | null;
  readonly pacer: Pacer;
  readonly clock: Clock;
  /** Ends every call, wherever it waits; none is made afterwards. */
  readonly closed: AbortSignal;
  /** Tries in all of what may be asked again; default 5. */
  readonly maxAttempts?: number;
}

const XML = 'application/xml; charset=utf-8';
const MAX_ATTEMPTS = 5;

export function createCaller(options: CallerOptions): Caller {
  const { transport, tokens, pacer, clock, closed, maxAttempts = MAX_ATTEMPTS } = options;

  /** Milliseconds until the next try; the pacer waits for what the service asked for. Null where there is none. */
  function pauseAfter(error: unknown, call: Call, attempt: number): number | null {
    if (!(error instanceof CatchwordError)) return null;
    const askedMs = error.retryAfterMs ?? 0;
    if (askedMs > 0) pacer.blockUntil(clock.now() + askedMs);
    // A body that is too large or no text is so the next time too; one cut short is SOURCE_UNAVAILABLE.
    if (error.code === 'SOURCE_BODY') return null;
    // What was refused for its rate was not done; of anything else that failed, that is not known.
    if (!call.repeatable && error.code !== 'SOURCE_RATE_LIMITED') return null;
    const delayMs = retryDelayMs(error, attempt, maxAttempts, () => clock.random());
    return delayMs === null ? null : delayMs - askedMs;
  }

  /** Waits for a turn; while the token is renewed for that instead, since with the old one it would be refused. */
  async function turn({ token, signal }: Call): Promise<void> {
    const cared = token ? tokens : null;
    do await cared?.renewal(signal);
    while (!(await pacer.acquire(signal, PATIENCE_MS, () => cared?.isRenewing() !== true)));
  }

  async function patiently<Result>(call: Call, ask: () => Promise<Result>): Promise<Result> {
    try {
      for (let attempt = 1; ; attempt++) {
        await turn(call);
        try {
          return await ask();
        } catch (error) {
          const pauseMs = pauseAfter(error, call, attempt);
          if (pauseMs === null) throw error;
          await clock.sleep(pauseMs, call.signal);
        }
      }
    } catch (error) {
      throw error instanceof CatchwordError || !call.signal.aborted ? error : givenUp();
    }
  }

  async function ask<Result>(asked: Call, tryOnce: (call: Call) => Promise<Result>): Promise<Result> {
    try {
      return await withAbort([asked.signal, closed], (signal) => {
        const call = { ...asked, signal };
        const work = (): Promise<Result> => patiently(call, () => tryOnce(call));
        return call.token && tokens !== null ? withToken(tokens, signal, work) : work();
      });
    } catch (error) {
      if (!(error instanceof CatchwordError) || error.code !== 'INTERRUPTED') throw error;
      throw closed.aborted ? wasClosed(transport.origin) : givenUp(!asked.repeatable);
    }
  }

  /** One request. Of one that must not be made twice, an error that leaves open whether it was done says so. */
  async function once<Result>(call: Call, exchange: (request: Call) => Promise<Result>): Promise<Result> {
    if (call.repeatable) return await exchange(call);
    let isSent = false;
    const onSent = (): void => {
      isSent = true;
    };
    try {
      return await exchange({ ...call, onSent, onceAnswered: true });
    } catch (error) {
      throw isSent ? maybeDone(error, call.creates !== undefined) : error;
    }
  }

  /** What an answer with a good status says may repeat what was sent, as any other may. */
  function reading<Result>({ secrets, freeform, fields, creates, path }: Call, read: (how: Reading) => Result): Result {
    const hide = transport.hiding(secrets);
    try {
      return read({ origin: transport.origin, hide, freeform, fields, creates, path });
    } catch (error) {
      if (!(error instanceof CatchwordError)) throw error;
      const message = hide(error.message);
      throw message === error.message ? error : new CatchwordError(error.code, message, toErrorRecord(error));
    }
  }

  return {
    origin: transport.origin,
    json: (asked) =>
      ask(asked, (each) =>
        once(each, async (call) => {
          // Without a body as well: section 4.4 asks for it.
          const answer = await transport.send({ ...call, contentType: 'application/json' });
          return reading(call, (how) => jsonAnswer(answer, how));
        }),
      ),
    xml: (asked, read) =>
      ask(asked, (each) =>
        once(each, async (call) => {
          const contentType = call.body === undefined ? undefined : XML;
          const answer = await transport.send({ ...call, contentType, accept: XML, limits: XML_LIMITS });
          return reading(call, (how) => read(xmlAnswer(answer, how)));
        }),
      ),
  };
}
