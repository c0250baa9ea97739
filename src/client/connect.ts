import type { Clock } from '../clock.ts';
import type { SourceConfig } from '../config.ts';
import { CatchwordError } from '../errors.ts';
import { type Caller, createCaller } from './caller.ts';
import { verifyCredentials } from './operations/credentials.ts';
import { postReset } from './operations/users.ts';
import { createPacer, type Pacer, paceOf } from './rate.ts';
import { createTokens, isTokenError, type Tokens } from './token.ts';
import { openTokenStore } from './token-store.ts';
import { createTransport, type Transport } from './transport.ts';

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
  close(): Promise<void>;
}

function noToken(code: number | null, message: string): CatchwordError {
  return new CatchwordError('SERVICE_UNKNOWN_USER', `no access token for CATCHWORD_USER_REFERENCE: ${message}`, {
    hint: 'Check CATCHWORD_USER_REFERENCE; a reference is tied to the API key that created it.',
    serviceCode: code ?? undefined,
  });
}

/** The remedy for 601 (interface, sections 5 and 7): reset the token, then verify the user for the new one. */
function fetchToken(caller: Caller, { usersSuffix }: ConnectionSettings, reference: string) {
  // It serves whoever waits for it, so none of them can abort it; the transport's deadline ends it.
  const { signal } = new AbortController();
  return async (old: string | undefined): Promise<string> => {
    let refused: unknown;
    try {
      if (old !== undefined) await postReset(caller, usersSuffix, signal);
    } catch (error) {
      // Another process may have reset it first: then there is a newer one already.
      if (!isTokenError(error)) throw error;
      refused = error;
    }
    const [result] = await verifyCredentials(caller, [{ reference }], signal);
    if (result === undefined || !result.ok) throw noToken(result?.code ?? null, result?.message ?? 'no answer');
    if (refused !== undefined && result.accessToken === old) throw refused;
    return result.accessToken;
  };
}

/**
 * @param rate requests of all operations together; null for no limit
 * @throws CatchwordError CONFIG_INVALID where the token store cannot be used
 */
export function connect(settings: ConnectionSettings, rate: SourceConfig['rateLimit'], clock: Clock): Connection {
  const pacer: Pacer = createPacer({ pace: paceOf(rate), clock });
  const { userReference, tokenStore } = settings;
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
  const bare = createCaller({ transport, tokens: null, pacer, clock });
  const tokens = createTokens({
    configured: settings.accessToken,
    store: tokenStore === undefined ? null : openTokenStore(tokenStore, clock),
    clock,
    fetch: userReference === undefined ? null : fetchToken(bare, settings, userReference),
  });
  return {
    transport,
    tokens,
    caller: createCaller({ transport, tokens, pacer, clock }),
    close: () => transport.close(),
  };
}
