import type { IncomingHttpHeaders } from 'node:http';
import type { Keys } from '../keys.ts';
import type { SandboxOptions } from '../options.ts';
import type { Operation } from './operation.ts';
import { type Answer, refusalAnswer } from './response.ts';

/** `stale`: was valid once, and is not since it was reset. */
export type TokenState = 'valid' | 'stale' | 'unknown';

/** Whoever calls. */
export interface Caller {
  readonly apiKey: string;
  readonly accessToken: string | null;
}

/** Interface, section 7: the access token is no longer valid. The HTTP status that carries it is not shown. */
const TOKEN_NOT_VALID = 601;

function tokenRefusal(format: Operation['format'], state: 'stale' | 'unknown'): Answer {
  if (format === 'xml') return refusalAnswer('xml', 200, 'The access token is not valid', TOKEN_NOT_VALID);
  const stale = `Access token is no longer valid (${TOKEN_NOT_VALID})`;
  return refusalAnswer('json', 403, state === 'stale' ? stale : 'Access token is not valid');
}

type Authenticate = (headers: IncomingHttpHeaders, operation: Pick<Operation, 'token' | 'format'>) => Caller | Answer;

/** Interface, section 5. @returns the caller, or the answer that refuses it in the operation's language */
export function authentication(
  { apiKeyHeader, accessTokenHeader }: Pick<SandboxOptions, 'apiKeyHeader' | 'accessTokenHeader'>,
  keys: Pick<Keys, 'ownerOf'>,
  tokenState: (token: string) => TokenState,
): Authenticate {
  return (headers, { token, format }) => {
    const given = headers[apiKeyHeader.toLowerCase()];
    const accessToken = headers[accessTokenHeader.toLowerCase()] ?? null;
    if (typeof given !== 'string') return refusalAnswer(format, 401, `${apiKeyHeader} is missing`);
    if (token && accessToken === null) return refusalAnswer(format, 401, `${accessTokenHeader} is missing`);
    const apiKey = keys.ownerOf(given);
    if (apiKey === null) return refusalAnswer(format, 403, 'API key is not valid');
    if (token !== true) return { apiKey, accessToken: accessToken === null ? null : String(accessToken) };
    const state = tokenState(String(accessToken));
    return state === 'valid' ? { apiKey, accessToken: String(accessToken) } : tokenRefusal(format, state);
  };
}
