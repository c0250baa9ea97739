import type { IncomingHttpHeaders } from 'node:http';
import type { Directory } from '../accounts/directory.ts';
import type { SandboxOptions } from '../options.ts';
import type { Operation } from './operation.ts';
import { CODES, codeRejection, Rejection } from './reply.ts';

/** The interface does not show the status that carries 601. */
function tokenRejection(format: Operation['format'], state: 'stale' | 'unknown'): Rejection {
  if (format === 'xml') return codeRejection(200, CODES.tokenNotValid, 'The access token is not valid');
  const stale = `Access token is not valid any longer (${CODES.tokenNotValid})`;
  return new Rejection(403, state === 'stale' ? stale : 'Access token is not valid');
}

/**
 * Returns a check of the headers of section 5. It returns the key that owns the caller's data, and the user's token.
 * @rule 4.1-4..5, 4.2-4, 4.4-2..4, 5-1..3, 5-7
 */
export function authentication(
  { apiKeyHeader, accessTokenHeader }: Pick<SandboxOptions, 'apiKeyHeader' | 'accessTokenHeader'>,
  { ownerOf, tokenState }: Pick<Directory, 'ownerOf' | 'tokenState'>,
) {
  return (headers: IncomingHttpHeaders, { token, format }: Pick<Operation, 'token' | 'format'>) => {
    const key = headers[apiKeyHeader.toLowerCase()];
    const accessToken = headers[accessTokenHeader.toLowerCase()]?.toString() ?? null;
    if (typeof key !== 'string') throw new Rejection(401, `${apiKeyHeader} is missing`);
    if (token && accessToken === null) throw new Rejection(401, `${accessTokenHeader} is missing`);
    const apiKey = ownerOf(key);
    if (apiKey === null) throw new Rejection(403, 'API key is not valid');
    const state = token === true ? tokenState(apiKey, accessToken ?? '') : 'valid';
    if (state !== 'valid') throw tokenRejection(format, state);
    return { apiKey, accessToken };
  };
}

/**
 * Checks the header that the interface names for an operation, in addition to section 5. Services are not known to
 * check it, so only a strict sandbox does. @throws Rejection 406 or 415
 */
export function checkStrictHeader({ accept, ...headers }: IncomingHttpHeaders, { strictHeader }: Operation): void {
  if (strictHeader === 'accept' && !/(^|,)\s*(application\/(json|\*)|\*\/\*)\s*(;|,|$)/i.test(accept ?? '')) {
    throw new Rejection(406, 'Accept: must include application/json');
  }
  if (strictHeader === 'content-type' && !/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) {
    throw new Rejection(415, 'Content-Type: must be application/json');
  }
}
