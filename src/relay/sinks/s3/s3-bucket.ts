import { createHash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import { askedPause } from '../../../base/backoff.ts';
import type { Agent } from '../../../base/undici.ts';
import type { HttpAnswer, HttpExchange, HttpTarget } from '../../http-target.ts';
import { SinkError } from '../../sink.ts';
import type { ConnectionLife } from '../connection-scope.ts';
import type { s3Place } from './s3-place.ts';

/** Where the objects are, and who writes them; an empty session token is not sent. */
export type BucketPlace = ReturnType<typeof s3Place> &
  Readonly<Record<'accessKeyId' | 'secretAccessKey' | 'sessionToken', string>>;

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

function unescaped(xml: string): string {
  const characters: Record<string, string> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };
  return xml.replace(/&(lt|gt|quot|apos|amp);/g, (_, name: string) => characters[name] ?? '');
}

/** Only the code of the store's answer is shown: its text may quote what was signed. */
function answerError(method: string, { status, headers, body }: HttpAnswer): SinkError {
  const [, code = ''] = /<Code>(\w{1,64})<\/Code>/.exec(body.toString()) ?? [];
  const message = `S3: the store answered ${status}${code === '' ? '' : ` (${code})`} to a ${method}`;
  if (code === 'RequestTimeTooSkewed')
    return new SinkError('misconfigured', `${message}: set the clock of this machine`);
  if (status < 500 && status !== 408 && status !== 429 && code !== 'RequestTimeout')
    return new SinkError('misconfigured', `${message}; check the bucket, the endpoint, the region and the key`);
  return new SinkError('unavailable', message, { retryAfterMs: askedPause(headers, status, Date.now())?.ms });
}

/** The objects below a prefix. Every function throws a SinkError for an answer that it does not describe. */
export function createBucket(
  target: HttpTarget,
  agent: Agent,
  life: ConnectionLife,
  { bucket, prefix, endpoint, ...keys }: BucketPlace,
) {
  /** @param name of an object; null: the bucket itself */
  async function ask(
    method: HttpExchange['method'],
    name: string | null,
    { expected = [], body = null, condition, query }: Asked = {},
  ): Promise<HttpAnswer> {
    const url = new URL(endpoint);
    const path = name === null ? `/${bucket}` : `/${bucket}/${prefix}${name}`;
    url.pathname = url.pathname.replace(/\/$/, '') + encodeURIComponent(path).replaceAll('%2F', '/');
    url.search = String(new URLSearchParams(query));
    const sha256 = createHash('sha256')
      .update(body ?? '')
      .digest('hex');
    const given = { ...condition, 'x-amz-content-sha256': sha256 };
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
    const answer = await target.exchange(agent, sent, life.signal);
    const { status } = answer;
    const isExpected = (status >= 200 && status <= 299) || expected.includes(status);
    // A missing bucket is not a missing object.
    if (!isExpected || (status === 404 && answer.body.includes('NoSuchBucket'))) throw answerError(method, answer);
    return answer;
  }

  /** @returns the etag; null if the condition does not hold, or another request writes the object now */
  async function put(name: string, body: Buffer, condition?: Condition): Promise<string | null> {
    const expected = condition === undefined ? [] : [404, 409, 412];
    const { status, headers } = await ask('PUT', name, { body, condition, expected });
    return status > 299 ? null : String(headers.etag);
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
      return status === 404 ? null : { bytes: body, etag: String(headers.etag) };
    },
    has: async (name: string): Promise<boolean> => (await ask('HEAD', name, { expected: [404] })).status !== 404,
    /** The names of all objects, in their order. */
    list: async (): Promise<string[]> => {
      const names: string[] = [];
      for (let after = {}; ; ) {
        const text = (await ask('GET', null, { query: { 'list-type': '2', prefix, ...after } })).body.toString();
        const found = [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = '']) => unescaped(key));
        names.push(...found.map((key) => key.slice(prefix.length)));
        const [, token] = /<NextContinuationToken>([^<]*)</.exec(text) ?? [];
        if (token === undefined) return names;
        after = { 'continuation-token': unescaped(token) };
      }
    },
    /** Whether the store refuses a PUT whose condition does not hold. Writes an object of its own, and removes it. */
    triesConditions: async (): Promise<boolean> => {
      const isRefused = async (condition: Condition): Promise<boolean> => {
        const asked = { body: PROBE_TEXT, condition, expected: [400, 409, 412, 501] };
        return (await ask('PUT', PROBE, asked)).status === 412;
      };
      await put(PROBE, PROBE_TEXT);
      const isConditional = (await isRefused({ 'if-none-match': '*' })) && (await isRefused({ 'if-match': '"0"' }));
      await remove(PROBE);
      return isConditional;
    },
  };
}
