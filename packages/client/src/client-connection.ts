import type { Clock } from '@catchword/base/clock';
import { CatchwordError, type ErrorCode } from '@catchword/base/errors';
import { paceOf } from '@catchword/pace/pace';
import { createPacer, type Pacer } from '@catchword/pace/pacer';
import type { SourceConfig } from '@catchword/settings/config';
import { createTokens } from './auth/access-token.ts';
import type { Account } from './auth/account.ts';
import { openTokenStore } from './auth/token-store.ts';
import { verifyCredentials } from './credentials/credentials.ts';
import type { CredentialSubmission } from './credentials/submission.ts';
import { type Caller, createCaller } from './http/caller.ts';
import { createTransport, type Transport, type TransportSettings } from './http/transport.ts';
import { createUsers } from './users/users.ts';

/** What is needed to reach the service: rows of option-table.ts. @rule 5-7 */
export type ConnectionSettings = TransportSettings &
  Pick<SourceConfig, 'usersSuffix'> &
  Partial<Pick<SourceConfig, 'accessToken' | 'userReference' | 'tokenStore' | 'secretAgain'>>;

/** A token must fit in a header and in the token file. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** Why the service returned no token: error, hint and setting. */
function causeOf(hasReference: boolean, code: number | null): readonly [ErrorCode, string, string?] {
  if (!hasReference) {
    const own = code === 601 ? 'SERVICE_TOKEN' : 'SERVICE_ERROR';
    return [own, 'Set {setting}, by which the current token can be fetched.'];
  }
  if (code === 601) {
    const hint = 'Set {setting}, even to the old token: a reset needs one.';
    return ['SERVICE_TOKEN', hint, 'CATCHWORD_ACCESS_TOKEN'];
  }
  return code === null
    ? ['SERVICE_ERROR', 'Check {setting}, and ask the service: its answer does not identify this user.']
    : ['SERVICE_UNKNOWN_USER', 'Check {setting}; a reference belongs to the API key that created it.'];
}

/** The error of a user for whom the service returned no token. */
function noToken(hasReference: boolean, code: number | null, reason: string): CatchwordError {
  const [own, hint, setting = 'CATCHWORD_USER_REFERENCE'] = causeOf(hasReference, code);
  const problem = hasReference ? 'cannot get an access token' : 'the service returned no access token';
  return new CatchwordError(own, `${problem}: ${reason}`, { hint, setting, serviceCode: code ?? undefined });
}

/** @param caller without token renewal, which would wait for itself @param current returns the token of requests */
function accountOf(
  caller: Caller,
  usersSuffix: string,
  reference: string | undefined,
  current: () => string | undefined,
): Account {
  // Every waiting call shares the result, so none can abort it; closing the connection does.
  const { signal } = new AbortController();
  let guid: string | undefined;
  const identity = (): CredentialSubmission => {
    if (reference !== undefined) return { reference };
    return guid === undefined ? { accessToken: current() ?? '' } : { guid };
  };
  return {
    hasReference: reference !== undefined,
    reset: async () => {
      const { guid: found, accessToken } = await createUsers(caller, usersSuffix).reset({ signal });
      guid = found ?? guid;
      return accessToken !== null && SENDABLE.test(accessToken) ? accessToken : undefined;
    },
    verify: async () => {
      const [result] = await verifyCredentials(caller, [identity()], signal, true);
      guid = result?.guid ?? guid;
      if (result?.ok !== true) {
        const error = noToken(reference !== undefined, result?.code ?? null, result?.message ?? 'no answer');
        // Only a 601 leads to a reset: after an unclear answer, the new token could not be found either.
        if (error.code === 'SERVICE_TOKEN') return error;
        throw error;
      }
      if (SENDABLE.test(result.accessToken)) return result.accessToken;
      throw new CatchwordError('SERVICE_ERROR', `${caller.origin} returned an access token that no header can hold`, {
        hint: 'Ask the service; a token is printable ASCII without spaces.',
      });
    },
  };
}

/** The configured key and token. `readAgain` reads their files again, if they have any. */
function createLogin({ apiKey, accessToken, secretAgain }: ConnectionSettings) {
  let known = { apiKey, accessToken };
  return {
    apiKey: () => known.apiKey,
    readAgain: async () => {
      let unread = '';
      const again = (key: keyof typeof known) =>
        secretAgain?.(key).catch((error: unknown) => {
          if (!(error instanceof CatchwordError)) throw error;
          unread += `; an earlier value was sent: ${error.message}`;
          return undefined;
        });
      const before = known;
      known = {
        apiKey: (await again('apiKey')) ?? before.apiKey,
        accessToken: (await again('accessToken')) ?? before.accessToken,
      };
      return { token: known.accessToken === before.accessToken ? undefined : known.accessToken, unread };
    },
  };
}

export type Connection = ReturnType<typeof connect>;

/**
 * @param rate limit of all operations together; null for none
 * @param pacer keeps the pace instead of one made for `rate`
 * @throws CatchwordError CONFIG_INVALID if the token store cannot be used
 */
export function connect(
  settings: ConnectionSettings,
  rate: SourceConfig['rateLimit'],
  clock: Clock,
  pacer: Pacer = createPacer({ pace: paceOf(rate), clock }),
) {
  const { userReference: reference, tokenStore } = settings;
  const closing = new AbortController();
  const closed = closing.signal;
  const login = createLogin(settings);
  const own: TransportSettings = {
    ...settings,
    get apiKey() {
      return login.apiKey();
    },
    onRefused: () => tokens.readAgain(),
  };
  const transport: Transport = createTransport(own, () => tokens.current(), clock);
  const owner = { origin: transport.origin, apiKey: settings.apiKey, reference, configured: settings.accessToken };
  const common = { transport, pacer, clock, closed };
  const withoutRenewal = createCaller({ ...common, tokens: null });
  const tokens = createTokens({
    configured: settings.accessToken,
    configuredAgain: login.readAgain,
    store: tokenStore === undefined ? null : openTokenStore(tokenStore, owner, clock),
    account: accountOf(withoutRenewal, settings.usersSuffix, reference, () => tokens.current()),
    clock,
    closed,
  });
  return {
    transport,
    tokens,
    caller: createCaller({ ...common, tokens }),
    /** Aborts what is in flight, a renewal of the token included, and rejects further calls. */
    close: async (): Promise<void> => {
      closing.abort();
      await transport.close();
    },
  };
}
