import { hostsOf, hostUrls } from '@catchword/base/host-urls';
import { ageOption } from '@catchword/sink-kit/sink-options';
import * as z from 'zod';

const subjectOption = z.string().regex(/^[^\s.*>]+(\.[^\s.*>]+)*$/, 'a subject without wildcards');

/** A JetStream stream, or a key-value bucket. */
export const natsKind = {
  schemes: ['nats:', 'tls:'],
  stores: 'a JetStream stream, or a key-value bucket with the last value of each product',
  identity: 'hosts, ports, stream, subject or bucket',
  // biome-ignore format: an option is a line.
  options: {
    subject: subjectOption.default('catalog.products').meta({ 'subject=catalog.products': 'the subject of each message' }),
    stream: z.string().regex(/^[^\s.*>/\\]+$/, 'a name without dots and spaces').optional().meta({ 'stream=NAME': 'the name of the stream' }),
    kv: z.string().regex(/^[\w-]+$/, 'a name of letters, digits, - and _').optional().meta({ 'kv=NAME': 'a key-value bucket instead of a stream of events; not with `subject`, `stream` or `max_age`' }),
    creds: z.string().min(1, 'a path').optional().meta({ 'creds=PATH': 'a file of credentials, as `nsc` writes it; catchword reads it whenever it connects' }),
    inbox_prefix: subjectOption.default('_INBOX').meta({ 'inbox_prefix=_INBOX': 'where answers go; the user must be able to subscribe to `<prefix>.>`' }),
    max_age: ageOption.optional().meta({ 'max_age=30d': 'drop older messages (an existing stream is changed); without it, the stream grows' }),
  },
  parse: (address: string) => hostUrls(address, true),
  address: (url: URL, urls: readonly URL[]) => {
    const bucket = url.searchParams.get('kv');
    const names = ['stream', 'subject'].flatMap((name) => url.searchParams.get(name) ?? []);
    const stream = names.length > 0 ? names.join(' ') : 'catalog.products';
    return `${hostsOf(urls, '4222')} ${bucket === null ? stream : `$KV.${bucket}.>`}`;
  },
  files: ['creds'],
  apart: 'another subject (subject=NAME) or bucket (kv=NAME)',
  drops: 'max_age',
};
