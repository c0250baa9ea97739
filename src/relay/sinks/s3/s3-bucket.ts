import { createHash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';
import { askedPause } from '../../../base/backoff.ts';
import type { Agent } from '../../../base/undici.ts';
import type { createHttpTarget, HttpAnswer, HttpExchange } from '../../http-target.ts';
import { SinkError } from '../../sink.ts';
import type { ConnectionLife } from '../connection-scope.ts';

/** Where the objects are, and who writes them. */
export interface BucketPlace {
  /** `/BUCKET/PREFIX/`, after the path of the endpoint; not encoded. */
  readonly root: string;
  readonly bucket: string;
  readonly endpoint: URL;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface StoredObject {
  readonly bytes: Buffer;
  readonly etag: string;
}

/** Headers of a PUT that a store with conditional writes refuses unless they hold. */
export type Condition = { readonly 'if-match': string } | { readonly 'if-none-match': '*' } | Record<string, never>;

export type Bucket = ReturnType<typeof createBucket>;

const NONE = Buffer.alloc(0);

/** Encodes a path as signatures do, which the signer does not change then. */
function encodedPath(path: string): string {
  const part = (text: string): string =>
    encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  return path.split('/').map(part).join('/');
}

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
  const retryAfterMs = askedPause(headers, status, Date.now())?.ms;
  return new SinkError('unavailable', message, retryAfterMs === undefined ? {} : { retryAfterMs });
}

/** The objects below a prefix. Every function throws a SinkError for an answer that it does not describe. */
export function createBucket(
  target: ReturnType<typeof createHttpTarget>,
  agent: Agent,
  life: ConnectionLife,
  { root, bucket, endpoint, ...keys }: BucketPlace,
) {
  const base = endpoint.pathname.replace(/\/$/, '');
  const prefix = root.slice(bucket.length + 2);

  /** @param expected statuses to return, besides 2xx; others are errors */
  async function ask(
    method: HttpExchange['method'],
    path: string,
    expected: readonly number[] = [],
    body: Buffer | null = null,
    more: Readonly<Record<string, string>> = {},
  ): Promise<HttpAnswer> {
    const url = `${endpoint.origin}${base}${path}`;
    const sha256 = createHash('sha256')
      .update(body ?? NONE)
      .digest('hex');
    const given = { ...more, 'x-amz-content-sha256': sha256 };
    const { headers } = await new AwsV4Signer({ ...keys, service: 's3', method, url, headers: given }).sign();
    // Each answer has the limit of size for itself: a background job reads many during one call of the relay.
    life.callBegins();
    const sent = { method, path: url.slice(endpoint.origin.length), headers: Object.fromEntries(headers), body };
    const answer = await target.exchange(agent, sent, life.signal);
    const { status } = answer;
    const isExpected = (status >= 200 && status <= 299) || expected.includes(status);
    // A missing bucket is not a missing object.
    if (!isExpected || (status === 404 && answer.body.includes('NoSuchBucket'))) throw answerError(method, answer);
    return answer;
  }

  const pathOf = (name: string): string => encodedPath(`${root}${name}`);

  return {
    /** @returns null if it does not exist */
    get: async (name: string): Promise<StoredObject | null> => {
      const { status, headers, body } = await ask('GET', pathOf(name), [404]);
      return status === 404 ? null : { bytes: body, etag: String(headers.etag) };
    },
    has: async (name: string): Promise<boolean> => (await ask('HEAD', pathOf(name), [404])).status !== 404,
    /** @returns the etag; null if the condition does not hold, or another request writes the object now */
    put: async (name: string, bytes: Buffer, condition: Condition = {}): Promise<string | null> => {
      const isConditional = Object.keys(condition).length > 0;
      const { status, headers } = await ask(
        'PUT',
        pathOf(name),
        isConditional ? [404, 409, 412] : [],
        bytes,
        condition,
      );
      return status > 299 ? null : String(headers.etag);
    },
    remove: async (name: string): Promise<void> => void (await ask('DELETE', pathOf(name), [404])),
    /** The names of all objects, in their order. */
    list: async (): Promise<string[]> => {
      const names: string[] = [];
      for (let after = ''; ; ) {
        const query = `list-type=2&prefix=${encodeURIComponent(prefix)}${after}`.replace(/[!'()*]/g, escape);
        const text = (await ask('GET', `${encodedPath(`/${bucket}`)}?${query}`)).body.toString();
        const found = [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = '']) => unescaped(key));
        names.push(...found.map((key) => key.slice(prefix.length)));
        const [, token] = /<NextContinuationToken>([^<]*)</.exec(text) ?? [];
        if (token === undefined) return names;
        after = `&continuation-token=${encodeURIComponent(unescaped(token))}`;
      }
    },
    /** Whether the store refuses a PUT whose condition does not hold. Writes an object of its own, and removes it. */
    triesConditions: async (name: string): Promise<boolean> => {
      const tried = async (condition: Condition): Promise<boolean> => {
        const body = Buffer.from('Whether this store has conditional writes.\n');
        const { status } = await ask('PUT', pathOf(name), [400, 409, 412, 501], body, condition);
        return status === 412;
      };
      await ask('PUT', pathOf(name), [], Buffer.from('Whether this store has conditional writes.\n'));
      const isConditional = (await tried({ 'if-none-match': '*' })) && (await tried({ 'if-match': '"0"' }));
      await ask('DELETE', pathOf(name), [404]);
      return isConditional;
    },
  };
}
