import { CatchwordError } from '@catchword/base/errors';
import { objectMembers } from '@catchword/catalog/json-text';
import type { z } from 'zod';
import { EVENT } from './event-schema.ts';

/*
 * The events of the change log, for programs that receive them: `import { parseEvent } from 'catchword/events'`. They are
 * the lines of `catchword changes` and of a `jsonl:` sink, the bodies of webhooks, the messages of the HTTP stream, of
 * Redis and of NATS.
 */

/** A change of one product. `event.data.op` tells which fields there are; fields of later versions are kept. */
export type CatchwordEvent = z.output<typeof EVENT>;

function invalid(what: string, hint: string, cause?: unknown): CatchwordError {
  return new CatchwordError('EVENT_INVALID', what, { hint, cause });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid('the text is not JSON', 'Pass the text of one event, such as one line of a file.', cause);
  }
}

/**
 * Checks and types an event. The fields of a product are typed as services send them, and not checked.
 *
 * `JSON.parse` rounds numbers: whole ones beyond 2^53, and decimals of more than 15 to 17 digits. If you need every digit,
 * keep the text and read the product with `productText`.
 * @param event the text of one event, or the value that `JSON.parse` made of it; bytes must be decoded first
 * @returns the parsed value itself, with its unknown fields
 * @throws CatchwordError EVENT_INVALID if it is not an event of catchword
 */
export function parseEvent(event: unknown): CatchwordEvent {
  const value = typeof event === 'string' ? parseJson(event) : event;
  const { error } = EVENT.safeParse(value);
  if (error === undefined) return value as CatchwordEvent;
  const [issue] = error.issues;
  const where = issue === undefined || issue.path.length === 0 ? '' : `${issue.path.join('.')}: `;
  const hint = 'Pass an event of catchword: one line, one message, or the body of one request.';
  throw invalid(`not an event of catchword (${where}${issue?.message})`, hint, error);
}

/**
 * The product of an event exactly as the source sent it, or as the reader's view shows it, with every digit of its numbers.
 * @param text the text of one event, which `parseEvent` has accepted
 * @returns JSON; null if the product was removed
 */
export function productText(text: string): string | null {
  const product = objectMembers(objectMembers(text).get('data') ?? '{}').get('product');
  return product === undefined || product === 'null' ? null : product;
}

export type { CatalogProduct, Contributor, Numeric, Price, Subject, Variant } from '@catchword/catalog/product-type';
export { CatchwordError };
