import type { Clock } from '../clock.ts';
import type { SourceConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { createPacer, type Pacer, paceOf } from '../pacer.ts';
import { createTokens, isTokenError, type Tokens } from './auth/access-token.ts';
import type { Account } from './auth/token-reset.ts';
import { openTokenStore } from './auth/token-store.ts';
import { verifyCredentials } from './credentials/credentials.ts';
import { type Caller, createCaller } from './http/requester.ts';
import { createTransport, type Transport } from './http/transport.ts';
import { postReset } from './users/users.ts';

/** What is needed to reach the service. Every part of it is a row of the option table in config.ts. */
export type ConnectionSettings = Pick<
  SourceConfig,
  | 'baseUrl'
  | 'apiKey'
  | 'accessToken'
  | 'apiKeyHeader'
  | 'accessTokenHeader'
  | 'requestTimeoutMs'
  | 'concurrency'
  | 'userReference'
  | 'tokenStore'
  | 'usersSuffix'
>;

/** Connections to the service, the token that goes with them, and the way to ask. */
export interface Connection {
  readonly transport: Transport;
  readonly tokens: Tokens;
  readonly caller: Caller;
  /** Ends at once what is under way, a renewal of the token among it, and takes no further calls. */
  close(): Promise<void>;
}

/** The access token is no longer valid (interface, section 7). */
const NOT_VALID = 601;

/** In a header, and in the file of a token. */
const SENDABLE = /^[\x21-\x7e]+$/;

function noToken(code: number | null, message: string): CatchwordError {
  const said = `no access token for CATCHWORD_USER_REFERENCE: ${message}`;
  if (code === null) {
    return new CatchwordError('SERVICE_ERROR', said, {
      hint: 'Check CATCHWORD_USER_REFERENCE, and ask the service: its answer could not be told to be about this user.',
    });
  }
  const serviceCode = code;
  if (code === NOT_VALID) {
    return new CatchwordError('SERVICE_TOKEN', said, {
      hint: 'Set CATCHWORD_ACCESS_TOKEN, even to the old one: a token is needed to reset it.',
      serviceCode,
    });
  }
  return new CatchwordError('SERVICE_UNKNOWN_USER', said, {
    hint: 'Check CATCHWORD_USER_REFERENCE; a reference is tied to the API key that created it.',
    serviceCode,
  });
}

/** The user of the reference, asked without care for the token: that would wait for itself. */
function accountOf(caller: Caller, { usersSuffix }: ConnectionSettings, reference: string): Account {
  // It serves whoever waits for it, so none of them can abort it; to close the connection does.
  const { signal } = new AbortController();
  /** Only a 601 leads to a reset: after an answer that was not understood, the new token would not be found either. */
  async function answered(): Promise<string | CatchwordError> {
    const [result] = await verifyCredentials(caller, [{ reference }], signal);
    if (result?.ok === true) return result.accessToken;
    const error = noToken(result?.code ?? null, result?.message ?? 'no answer');
    if (isTokenError(error)) return error;
    throw error;
  }

  return {
    reset: () => postReset(caller, usersSuffix, signal),
    verify: async () => {
      const token = await answered();
      if (typeof token !== 'string' || SENDABLE.test(token)) return token;
      throw new CatchwordError('SERVICE_ERROR', `${caller.origin} gave an access token that no header can hold`, {
        hint: 'Ask the service; a token is printable ASCII without spaces.',
      });
    },
  };
}

/**
 * @param rate requests of all operations together; null for no limit
 * @param pacer what else keeps the pace, in which case `rate` does not count
 * @throws CatchwordError CONFIG_INVALID where the token store cannot be used
 */
export function connect(
  settings: ConnectionSettings,
  rate: SourceConfig['rateLimit'],
  clock: Clock,
  pacer: Pacer = createPacer({ pace: paceOf(rate), clock }),
): Connection {
  const { userReference, tokenStore } = settings;
  const closing = new AbortController();
  const closed = closing.signal;
  const transport = createTransport({
    baseUrl: settings.baseUrl,
    apiKey: settings.apiKey,
    accessToken: () => tokens.current(),
    apiKeyHeader: settings.apiKeyHeader,
    accessTokenHeader: settings.accessTokenHeader,
    timeoutMs: settings.requestTimeoutMs,
    connections: settings.concurrency,
    clock,
  });
  const owner = { origin: transport.origin, apiKey: settings.apiKey, reference: userReference };
  const bare = createCaller({ transport, tokens: null, pacer, clock, closed });
  const tokens = createTokens({
    configured: settings.accessToken,
    store: tokenStore === undefined ? null : openTokenStore(tokenStore, owner, clock),
    clock,
    closed,
    account: userReference === undefined ? null : accountOf(bare, settings, userReference),
  });
  return {
    transport,
    tokens,
    caller: createCaller({ transport, tokens, pacer, clock, closed }),
    close: async () => {
      closing.abort();
      await transport.close();
    },
  };
}
