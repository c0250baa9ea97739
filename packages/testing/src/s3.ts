import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/*
 * A store that speaks S3, as AWS documents it. It verifies each signature by itself, and refuses what AWS refuses. It keeps
 * objects in memory, and lists three keys at a time.
 */

export const S3_KEY = { id: 'AKIDEXAMPLE', secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY', region: 'eu-test-1' };
const MAX_SKEW_MS = 15 * 60_000;
const LIST_KEYS = 3;

export interface FakeS3 {
  readonly url: string;
  readonly port: number;
  /** By bucket and key: `books/prefix/manifest.json`. */
  readonly objects: Map<string, Buffer>;
  /** Method and path of every request that was signed well. */
  readonly requests: string[];
  /** How a PUT with a condition is answered; `ignored`: as one without. */
  conditions: 'kept' | 'ignored' | 'refused';
  /** How objects are tagged; `weak`: as behind a proxy that compresses. Conditions compare the strong tag. */
  etags: 'strong' | 'weak' | 'none';
  /** The encryption that the policy of the bucket demands; null: none. */
  sse: string | null;
  /** Called before each request that was signed well; may answer by itself: then it returns true. */
  before: (method: string, path: string, response: ServerResponse) => boolean;
  stop(): Promise<void>;
}

class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string) {
    super(code);
    this.status = status;
    this.code = code;
  }
}

const hash = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');
const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const strict = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
/** As Go's encoder writes it: some characters by their numbers. */
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll("'", '&#39;').replaceAll('"', '&#x22;');
const etagOf = (bytes: Buffer): string => `"${createHash('md5').update(bytes).digest('hex')}"`;

function header(request: IncomingMessage, name: string): string {
  return [request.headers[name]].flat().join(',').trim();
}

/** Signature Version 4, from its documentation. @throws Refusal */
function verify(request: IncomingMessage, url: URL, body: Buffer): void {
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/;
  const [, id, day = '', region, names = '', signature] = form.exec(header(request, 'authorization')) ?? [];
  if (id === undefined) throw new Refusal(403, 'AccessDenied');
  if (id !== S3_KEY.id) throw new Refusal(403, 'InvalidAccessKeyId');
  if (region !== S3_KEY.region) throw new Refusal(400, 'AuthorizationHeaderMalformed');
  const at = header(request, 'x-amz-date');
  const time = Date.parse(at.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (!at.startsWith(day) || !(Math.abs(Date.now() - time) <= MAX_SKEW_MS))
    throw new Refusal(403, 'RequestTimeTooSkewed');
  const payload = header(request, 'x-amz-content-sha256');
  if (payload === '') throw new Refusal(400, 'MissingSecurityHeader');
  if (payload !== 'UNSIGNED-PAYLOAD' && payload !== hash(body)) throw new Refusal(400, 'XAmzContentSHA256Mismatch');
  const signed = names.split(';');
  const must = Object.keys(request.headers).filter((name) => name === 'host' || name.startsWith('x-amz-'));
  if (!must.every((name) => signed.includes(name))) throw new Refusal(403, 'AccessDenied');
  const path = url.pathname
    .split('/')
    .map((part) => strict(decodeURIComponent(part)))
    .join('/');
  const query = [...url.searchParams]
    .map(([name, value]) => `${strict(name)}=${strict(value)}`)
    .sort()
    .join('&');
  const headers = signed.map((name) => `${name}:${header(request, name).replace(/ +/g, ' ')}\n`).join('');
  const canonical = [request.method, path, query, headers, names, payload].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const key = [day, S3_KEY.region, 's3', 'aws4_request'].reduce<Buffer | string>(hmac, `AWS4${S3_KEY.secret}`);
  const expected = hmac(key, ['AWS4-HMAC-SHA256', at, scope, hash(canonical)].join('\n')).toString('hex');
  if (expected !== signature) throw new Refusal(403, 'SignatureDoesNotMatch');
}

function listing(objects: FakeS3['objects'], bucket: string, query: URLSearchParams): string {
  if (query.get('list-type') !== '2') throw new Refusal(400, 'InvalidArgument');
  const start = `${bucket}/${query.get('prefix') ?? ''}`;
  const after = Buffer.from(query.get('continuation-token') ?? '', 'base64').toString();
  const keys = [...objects.keys()].filter((key) => key.startsWith(start) && key > after).sort();
  const page = keys.slice(0, LIST_KEYS);
  const token = Buffer.from(page.at(-1) ?? '').toString('base64');
  const more =
    keys.length > page.length
      ? `<IsTruncated>true</IsTruncated><NextContinuationToken>${token}</NextContinuationToken>`
      : '';
  const contents = page.map((key) => `<Contents><Key>${escaped(key.slice(bucket.length + 1))}</Key></Contents>`);
  return `<?xml version="1.0"?>\n<ListBucketResult><Name>${bucket}</Name>${more}${contents.join('')}</ListBucketResult>`;
}

/** Starts a store with the buckets `books` and `other`. */
export async function startS3(): Promise<FakeS3> {
  const objects: FakeS3['objects'] = new Map();
  const buckets = ['books', 'other'];

  function put(request: IncomingMessage, key: string, body: Buffer): string {
    if (request.headers['content-length'] === undefined) throw new Refusal(411, 'MissingContentLength');
    // As a bucket with Object Lock, and one that demands encryption.
    const md5 = createHash('md5').update(body).digest('base64');
    if (header(request, 'content-md5') !== md5) throw new Refusal(400, 'InvalidRequest');
    if (store.sse !== null && header(request, 'x-amz-server-side-encryption') !== store.sse)
      throw new Refusal(403, 'AccessDenied');
    const [match, none] = [header(request, 'if-match'), header(request, 'if-none-match')];
    const found = objects.get(key);
    const isConditional = match !== '' || none !== '';
    if (isConditional && store.conditions === 'refused') throw new Refusal(501, 'NotImplemented');
    if (isConditional && store.conditions === 'kept') {
      if (none !== '' && found !== undefined) throw new Refusal(412, 'PreconditionFailed');
      if (match !== '' && found === undefined) throw new Refusal(404, 'NoSuchKey');
      if (match !== '' && found !== undefined && match !== etagOf(found)) throw new Refusal(412, 'PreconditionFailed');
    }
    objects.set(key, body);
    return etagOf(body);
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces);
    const url = new URL(request.url ?? '', 'http://store');
    const { method = '' } = request;
    verify(request, url, body);
    store.requests.push(`${method} ${url.pathname}`);
    if (store.before(method, url.pathname, response)) return;
    const key = decodeURIComponent(url.pathname.slice(1));
    const [bucket = '', ...rest] = key.split('/');
    if (!buckets.includes(bucket)) throw new Refusal(404, 'NoSuchBucket');
    if (rest.length === 0) return void response.end(listing(objects, bucket, url.searchParams));
    if (Buffer.byteLength(rest.join('/')) > 1_024) throw new Refusal(400, 'KeyTooLongError');
    if (method === 'PUT') return void response.writeHead(200, tagged(put(request, key, body))).end();
    if (method === 'DELETE') {
      objects.delete(key);
      return void response.writeHead(204).end();
    }
    const found = objects.get(key);
    if (found === undefined) throw new Refusal(404, 'NoSuchKey');
    response
      .writeHead(200, { ...tagged(etagOf(found)), 'content-length': found.length })
      .end(method === 'HEAD' ? '' : found);
  }

  const tagged = (etag: string): { etag?: string } =>
    store.etags === 'none' ? {} : { etag: store.etags === 'weak' ? `W/${etag}` : etag };

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      const { status, code } = error instanceof Refusal ? error : new Refusal(500, 'InternalError');
      response
        .writeHead(status)
        .end(`<?xml version="1.0"?>\n<Error><Code>${code}</Code><AWSAccessKeyId>${S3_KEY.id}</AWSAccessKeyId></Error>`);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const store: FakeS3 = {
    url: `http://127.0.0.1:${port}`,
    port,
    objects,
    requests: [],
    conditions: 'kept',
    etags: 'strong',
    sse: null,
    before: () => false,
    stop: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return store;
}
