import type { IncomingHttpHeaders } from 'node:http';
import type { Operation } from './operation.ts';
import { Rejection } from './reply.ts';

/**
 * Checks the header that the interface names for an operation besides those of section 5. Services are not known to
 * check it, so only a strict sandbox does.
 * @throws Rejection 406 or 415
 */
export function checkStrictHeader({ accept, ...headers }: IncomingHttpHeaders, { strictHeader }: Operation): void {
  if (strictHeader === 'accept' && !/(^|,)\s*(application\/(json|\*)|\*\/\*)\s*(;|,|$)/i.test(accept ?? '')) {
    throw new Rejection(406, 'Accept: must include application/json');
  }
  if (strictHeader === 'content-type' && !/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '')) {
    throw new Rejection(415, 'Content-Type: must be application/json');
  }
}
