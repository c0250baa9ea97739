import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { askedPause, backoffMs } from '@catchword/base/backoff';
import type { Agent } from '@catchword/base/undici';
import type { ConnectionLife } from '@catchword/sink-kit/connection-scope';
import type { HttpAnswer, HttpExchange, HttpTarget } from '@catchword/sink-kit/http-target';
import { SinkError } from '@catchword/sink-kit/sink';
import { AwsV4Signer } from 'aws4fetch';
import type { s3Place } from './s3-place.ts';

/** Where the objects are, who writes them (an empty session token is not sent), and further headers of each PUT. */
export type BucketPlace = ReturnType<typeof s3Place> &
  Readonly<Record<'accessKeyId' | 'secretAccessKey' | 'sessionToken', string>> & {
    readonly putHeaders: Readonly<Record<string, string>>;
  };

/** Headers of a PUT that a store with conditional writes refuses unless they hold. */
export type Condition = { readonly 'if-match': string } | { readonly 'if-none-match': '*' };

/** What a request has besides its path. */
interface Asked {
  /** Statuses to return, besides 2xx; others are errors. */
  readonly expected?: readonly number[];
  readonly body?: Buffer | null;
  readonly condition?: Condition | undefined;
  readonly query?: Readonly<Record<string, string>>;
}

export type Bucket = ReturnType<typeof createBucket>;

export const PROBE = 'catchword-check';
const PROBE_TEXT = Buffer.from('Whether this store has conditional writes.\n');

/** Answers after which the same request may succeed: stores shed load with 503, and 409 says that two requests met. */
const PASSING = [409, 429, 500, 502, 503, 504];
/** How often a request is sent, and the longest pause between; then the relay retries the whole call. */
const MOST_TRIES = 4;
const LONGEST_PAUSE_MS = 2_000;
/** For safety: characters of one listing, whose names are in memory. Stores write some 300 for each object. */
const MOST_LISTED = 256_000_000;
/** Pages of a listing without another name, one after the other, before it counts as one that does not end. */
const MOST_EMPTY = 100;

/** What the codes of answers mean for an operator, and what to do. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/^RequestTimeTooSkewed/, 'set the clock of this machine'],
  [/^NoSuchBucket|InvalidBucketName/, 'create the bucket, or correct its name or the endpoint'],
  [/Expired|Token/, 'the session token is wrong or has expired: set a new key'],
  [/AccessKeyId|^AuthorizationQuery/, 'check the key, and that it belongs to this endpoint'],
  [/Signature/, 'check the secret key; or a proxy changes the host or the path of requests'],
  [
    /^Authorization|Redirect|Location|^IncorrectEndpoint/,
    'check region= and endpoint=; the path names the bucket, not the host',
  ],
  [/^KMS|Encryption/, 'check sse= and sse-key=, and the right to use that key'],
  [
    /^InvalidRequest|Digest|Checksum|Lock/,
    'the bucket has rules for objects, such as Object Lock or encryption (sse=)',
  ],
  [
    /^AccessDenied|Disabled/,
    'a policy, or Object Lock, does not allow it: look at the rights of the key and at the bucket',
  ],
  [/TooLong|TooLarge/, 'use a shorter prefix, or look for a limit of the store'],
];

/** The entity tag, the same whether or not a proxy made it a weak one; null if there is none. */
function etagOf({ etag }: HttpAnswer['headers']): string | null {
  return typeof etag === 'string' && etag !== '' ? etag.replace(/^W\//, '') : null;
}

function unescaped(xml: string): string {
  const characters: Record<string, string> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };
  // Stores that are written in Go, such as MinIO, write quotes by their numbers.
  return xml.replace(
    /&(?:(lt|gt|quot|apos|amp)|#(\d{1,7})|#[xX]([\da-fA-F]{1,6}));/g,
    (found, name?: string, dec = '', hex = '') => {
      if (name !== undefined) return characters[name] ?? '';
      const point = dec ? Number(dec) : Number.parseInt(hex, 16);
      // A number beyond the last character stays as it is.
      return point <= 0x10ffff ? String.fromCodePoint(point) : found;
    },
  );
}

/** Only the code of the store's answer is shown: its text may quote what was signed. */
function answerError(method: string, { status, headers, body }: HttpAnswer): SinkError {
  const [, code = ''] = /<Code>([\w.]{1,64})<\/Code>/.exec(body.toString()) ?? [];
  const message = `S3: the store answered ${status}${code === '' ? '' : ` (${code})`} to a ${method}`;
  const isPassing = PASSING.includes(status) || status >= 500 || status === 408 || code === 'RequestTimeout';
  if (!isPassing) {
    const advice = ADVICE.find(([codes]) => codes.test(code))?.[1];
    const all = 'check the bucket, the endpoint, the region and the key';
    return new SinkError('misconfigured', `${message}: ${advice ?? all}`);
  }
  return new SinkError('unavailable', message, { retryAfterMs: askedPause(headers, status, Date.now())?.ms });
}

/** The keys in a page of a listing, as copies: a part of the page's text would keep all of it in memory. */
function keysOf(xml: string): string[] {
  return [...xml.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = '']) => Buffer.from(unescaped(key)).toString());
}

/** The objects below a prefix. Every function throws a SinkError for an answer that it does not describe. */
export function createBucket(
  target: HttpTarget,
  agent: Agent,
  life: ConnectionLife,
  { bucket, prefix, endpoint, putHeaders, ...keys }: BucketPlace,
) {
  /** Sends one request. @param name of an object; null: the bucket itself */
  async function askOnce(
    method: HttpExchange['method'],
    name: string | null,
    { body = null, condition, query }: Asked,
  ): Promise<HttpAnswer> {
    const url = new URL(endpoint);
    const path = name === null ? `/${bucket}` : `/${bucket}/${prefix}${name}`;
    url.pathname = url.pathname.replace(/\/$/, '') + encodeURIComponent(path).replaceAll('%2F', '/');
    url.search = String(new URLSearchParams(query));
    const sha256 = createHash('sha256')
      .update(body ?? '')
      .digest('hex');
    // Buckets with Object Lock demand a digest of what is put there.
    const md5 = createHash('md5')
      .update(body ?? '')
      .digest('base64');
    const put = method === 'PUT' ? { ...putHeaders, 'content-md5': md5 } : {};
    const given = { ...put, ...condition, 'x-amz-content-sha256': sha256 };
    const signer = new AwsV4Signer({ ...keys, service: 's3', method, url: url.href, headers: given });
    const { headers } = await signer.sign();
    // Each answer has the limit of size for itself: a background job reads many during one call of the relay.
    life.callBegins();
    const sent = {
      method,
      // As it was signed: stores decode and encode a path in several ways.
      path: `${signer.encodedPath}${query === undefined ? '' : `?${signer.encodedSearch}`}`,
      headers: Object.fromEntries(headers),
      body,
    };
    return await target.exchange(agent, sent, life.signal);
  }

  /** Sends a request, again after an answer that may pass: each of them does the same when it is repeated. */
  async function ask(method: HttpExchange['method'], name: string | null, asked: Asked = {}): Promise<HttpAnswer> {
    for (let tries = 1; ; tries++) {
      const answer = await askOnce(method, name, asked);
      const { status } = answer;
      // A missing bucket is not a missing object.
      const isMissing = status === 404 && answer.body.includes('NoSuchBucket');
      if (((status >= 200 && status <= 299) || asked.expected?.includes(status)) && !isMissing) return answer;
      const error = answerError(method, answer);
      const askedMs = error.retryAfterMs ?? 0;
      if (!PASSING.includes(status) || tries === MOST_TRIES || askedMs > LONGEST_PAUSE_MS) throw error;
      await delay(Math.max(askedMs, backoffMs(tries, Math.random, LONGEST_PAUSE_MS)), undefined, {
        signal: life.signal,
      });
    }
  }

  /** @returns the entity tag, if there is one; null if the store says that the condition does not hold */
  async function put(name: string, body: Buffer, condition?: Condition): Promise<{ etag: string | null } | null> {
    const expected = condition === undefined ? [] : [404, 412];
    const { status, headers } = await ask('PUT', name, { body, condition, expected });
    return status > 299 ? null : { etag: etagOf(headers) };
  }

  async function remove(name: string): Promise<void> {
    await ask('DELETE', name, { expected: [404] });
  }

  return {
    put,
    remove,
    /** @returns null if it does not exist */
    get: async (name: string) => {
      const { status, headers, body } = await ask('GET', name, { expected: [404] });
      return status === 404 ? null : { bytes: body, etag: etagOf(headers) };
    },
    has: async (name: string): Promise<boolean> => (await ask('HEAD', name, { expected: [404] })).status !== 404,
    /** The names of all objects, in their order. */
    list: async (): Promise<string[]> => {
      const names = new Set<string>();
      let listed = 0;
      let last: string | undefined;
      for (let after = {}, empty = 0; ; ) {
        const text = (await ask('GET', null, { query: { 'list-type': '2', prefix, ...after } })).body.toString();
        const before = names.size;
        for (const key of keysOf(text)) names.add(key.slice(prefix.length));
        listed += text.length;
        // Stores that are written in Go may write an empty token on the last page.
        const token = unescaped(/<NextContinuationToken>([^<]*)</.exec(text)?.[1] ?? '');
        if (token === '' && !/<IsTruncated>\s*true/.test(text)) return [...names];
        // A page may have no name, where many objects were removed.
        empty = names.size === before ? empty + 1 : 0;
        if (token === '' || token === last || empty > MOST_EMPTY)
          throw new SinkError('unavailable', 'S3: the listing of the bucket does not advance');
        last = token;
        if (listed > MOST_LISTED)
          throw new SinkError('misconfigured', 'S3: too many objects have this prefix. Use a prefix of its own');
        after = { 'continuation-token': token };
      }
    },
    /**
     * Whether the store refuses a PUT whose condition does not hold, and carries out one whose condition holds. Writes an
     * object of its own, and removes it.
     */
    triesConditions: async (): Promise<boolean> => {
      const isAnswered = async (wanted: number, condition: Condition): Promise<boolean> => {
        const asked = { body: PROBE_TEXT, condition, expected: [400, 404, 412, 501] };
        return (await ask('PUT', PROBE, asked)).status === wanted;
      };
      const { etag = null } = (await put(PROBE, PROBE_TEXT)) ?? {};
      const isConditional =
        etag !== null &&
        (await isAnswered(412, { 'if-none-match': '*' })) &&
        (await isAnswered(412, { 'if-match': '"0"' })) &&
        (await isAnswered(200, { 'if-match': etag }));
      await remove(PROBE);
      return isConditional;
    },
  };
}
