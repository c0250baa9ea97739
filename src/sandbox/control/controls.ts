import { z } from 'zod';
import { CatchwordError, messageOf } from '../../errors.ts';
import type { ApiKeys } from '../accounts/api-keys.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { jsonReply, Rejection, type Reply } from '../http/reply.ts';
import { validate } from '../http/validate.ts';

/**
 * A control request, which changes the sandbox from outside the interface. `body`: as parsed from JSON.
 * @throws Rejection
 */
export type Control = (body: unknown) => Reply;

/** Text without control characters, halves of surrogates and others that XML cannot hold. */
export const xmlText = z.string().regex(/^[^\p{Cc}\p{Cs}\ufffe\uffff]*$/u, 'holds a character that XML cannot hold');

const count = z.int().min(0).optional();
const mutation = z.strictObject({ create: count, update: count, remove: count, seed: z.int().optional() });
const newKey = z.strictObject({
  api_key: z.string().regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 printable characters without spaces'),
});

/** `POST /_sandbox/mutate` with `{"create":n,"update":n,"remove":n,"seed":s}`, each optional. Replies with the counts. */
export function mutateControl(catalog: Catalog): Control {
  return (body) => {
    const asked = validate(mutation, body);
    try {
      return jsonReply(catalog.mutate(asked));
    } catch (error) {
      throw error instanceof CatchwordError ? new Rejection(422, messageOf(error)) : error;
    }
  };
}

/** `POST /_sandbox/key`: replaces the main API key and revokes the old one. */
export function keyControl(keys: ApiKeys): Control {
  return (body) => {
    const { api_key: apiKey } = validate(newKey, body);
    if (!keys.renew(apiKey)) throw new Rejection(422, 'api_key: is already in use');
    return jsonReply({ api_key: apiKey });
  };
}
