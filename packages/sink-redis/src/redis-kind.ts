import { hostsOf, isBehindSentinels } from '@catchword/base/host-urls';
import type { Fault } from '@catchword/sink-kit/sink-kind';
import { wholeOption } from '@catchword/sink-kit/sink-options';
import * as z from 'zod';

const NO_NUMBER: Fault = [
  'the path is not a database number',
  'Use redis://HOST:PORT/NUMBER?stream=NAME, or redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY?stream=NAME.',
];

/** A stream of Redis, or a key for each product. */
export const redisKind = {
  schemes: ['redis:', 'rediss:', 'redis+sentinel:', 'rediss+sentinel:'],
  stores: 'a Redis stream, or a key with the last value of each product',
  identity: 'hosts, ports, primary (with sentinels), database number, stream or prefix',
  // biome-ignore format: an option is a line.
  options: {
    stream: z.string().min(1, 'a name').default('catalog').meta({ 'stream=catalog': 'the name of the stream' }),
    keys: z.string().regex(/^[^\s\p{Cc}]+$/u, 'a prefix without spaces').optional().meta({ 'keys=PREFIX': 'a key for each product instead of a stream; not with `stream` or `maxlen`' }),
    maxlen: wholeOption(1, Number.MAX_SAFE_INTEGER).optional().meta({ 'maxlen=N': 'keep about so many entries; without it, the stream grows' }),
  },
  address: (url: URL, urls: readonly URL[]) => {
    const hosts = hostsOf(urls, isBehindSentinels(url) ? '26379' : '6379');
    const keys = url.searchParams.get('keys');
    return `${hosts}${url.pathname} ${keys === null ? (url.searchParams.get('stream') ?? 'catalog') : `${keys}:*`}`;
  },
  faultOf: (url: URL) => {
    const path = isBehindSentinels(url) ? /^\/[\w.-]+(\/\d*)?$/ : /^\/?\d*$/;
    return path.test(url.pathname) ? null : NO_NUMBER;
  },
  apart: 'another stream (stream=NAME) or prefix (keys=PREFIX)',
  drops: 'maxlen',
};
