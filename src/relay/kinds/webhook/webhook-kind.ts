import { hostUrls } from '@catchword/base/host-urls';
import { decoded } from '@catchword/base/percent-decode';
import { wholeOption } from '@catchword/sink-kit/sink-options';
import * as z from 'zod';

/** A path without needless percent-encoding. */
function spelled({ pathname }: URL): string {
  return pathname.replace(/%[\da-f]{2}/gi, (code) =>
    /^[\w.~-]$/.test(decoded(code)) ? decoded(code) : code.toUpperCase(),
  );
}

/** Requests to a receiver. */
export const webhookKind = {
  schemes: ['webhook+https:', 'webhook+http:'],
  stores: 'a signed POST of a JSON array of events',
  identity: 'scheme, host, port, path (as a digest). Not the query: a renewed key there sends nothing again',
  // biome-ignore format: an option is a line.
  options: {
    batch: wholeOption(1, 10_000).default(100).meta({ 'batch=100': 'events in a request' }),
    // Shorter than the relay's limit for a call.
    timeout: wholeOption(1, 110).default(30).meta({ 'timeout=30': 'seconds to wait for the answer, at most 110' }),
    allow: z.enum(['private'], 'private').optional().meta({ 'allow=private': 'send to private addresses too, and by `webhook+http://`' }),
  },
  // The URL class parses host and path of known protocols only.
  parse: (address: string) => hostUrls(address.replace('webhook+', '')),
  // The path and query of a webhook are often secret, and the query often contains a key that changes.
  address: ({ origin }: URL) => origin,
  identifiedBy: spelled,
  apartBy: ({ search }: URL) => search,
  isRequest: true,
  incomparable: 'catchword cannot read what a receiver has stored',
};
