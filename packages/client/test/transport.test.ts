// @module-tag service
import type { OutgoingHttpHeaders, RequestListener } from 'node:http';
import { gzipSync } from 'node:zlib';
import { systemClock } from '@catchword/base/clock';
import { serveHttp } from '@catchword/testing/listen';
import type { BodyLimits } from 'catchword-client/http/response-body';
import { createTransport, type Transport, type TransportSettings } from 'catchword-client/http/transport';
import { expect, it, onTestFinished } from 'vitest';
import { failure, KEY, serve, TOKEN } from './connection.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

interface Options extends Partial<TransportSettings> {
  readonly limits?: BodyLimits;
}

async function transportTo(listener: RequestListener, { limits, ...more }: Options = {}): Promise<Transport> {
  const settings = {
    baseUrl: await serveHttp(listener),
    apiKey: KEY,
    apiKeyHeader: 'X-Key',
    accessTokenHeader: 'X-Token',
    requestTimeoutMs: 6e4,
    concurrency: 2,
  };
  const transport = createTransport({ ...settings, ...more }, () => TOKEN, systemClock, limits);
  onTestFinished(async () => {
    await transport.close();
  });
  return transport;
}

/** A transport to a server that answers each request so. */
function answering(status: number, headers: OutgoingHttpHeaders, body: string | Uint8Array, options?: Options) {
  return transportTo((_request, response) => response.writeHead(status, headers).end(body), options);
}

function ask(transport: Transport, signal = new AbortController().signal) {
  const query = new URLSearchParams({ page: '1' });
  const how = { method: 'GET', format: 'page', token: true, repeatable: true } as const;
  return transport.send({ ...how, path: '/v4/products', query, body: undefined, secrets: [] }, signal);
}

it('a request has its headers, keeps its connection, and returns text and times', async () => {
  const seen: { headers: unknown; url: string | undefined; port: number | undefined }[] = [];
  const transport = await transportTo((request, response) => {
    seen.push({ headers: request.headers, url: request.url, port: request.socket.remotePort });
    response.writeHead(200, JSON_TYPE).end('{"a": 10.50}');
  });
  const answer = await ask(transport);
  for (let more = 0; more < 5; more++) await ask(transport);
  expect(answer).toMatchObject({ status: 200, text: '{"a": 10.50}' });
  expect(answer.receivedAt).toBeGreaterThanOrEqual(answer.requestedAt);
  expect(seen[0]).toMatchObject({ url: '/v4/products?page=1', headers: { 'x-key': KEY, 'x-token': TOKEN } });
  expect(new Set(seen.map(({ port }) => port)).size).toBeLessThanOrEqual(2);
});

// @rule 4.1-1
it('a request is sent below the path of the base address', async () => {
  const { url, asked } = await serve(() => ({ headers: JSON_TYPE, body: '{}' }));
  await ask(await transportTo(() => {}, { baseUrl: `${url}/api/books` }));
  expect(asked.map((one) => one.url)).toEqual(['/api/books/v4/products?page=1']);
});

it('a request ends at its timeout and when its signal aborts', async () => {
  const silent = await transportTo(() => {}, { requestTimeoutMs: 100 });
  expect(await failure(ask(silent))).toMatchObject({ code: 'SOURCE_TIMEOUT', retryable: true });
  const slow = await transportTo(
    (_request, response) => {
      response.writeHead(200, JSON_TYPE);
      response.write('{');
    },
    { requestTimeoutMs: 100 },
  );
  expect(await failure(ask(slow))).toMatchObject({ code: 'SOURCE_TIMEOUT' });
  const gone = new AbortController();
  const waiting = ask(await transportTo(() => gone.abort()), gone.signal);
  expect(await failure(waiting)).toMatchObject({ code: 'INTERRUPTED' });
});

it('a request fails with the address if the connection is refused', async () => {
  const transport = await transportTo(() => {}, { baseUrl: 'http://127.0.0.1:1' });
  const error = await failure(ask(transport));
  expect(error).toMatchObject({ code: 'SOURCE_UNAVAILABLE', retryable: true, exitCode: 75 });
  expect(error.message).toContain('http://127.0.0.1:1 ');
  expect(error.message).toContain('ECONNREFUSED');
});

it.each([
  [401, {}, '{"errors":["no"]}', { code: 'SOURCE_AUTH', retryable: false, exitCode: 2 }],
  [403, {}, '"forbidden"', { code: 'SOURCE_AUTH', message: expect.stringContaining('forbidden') as string }],
  [404, {}, '', { code: 'SOURCE_NOT_SERVICE', retryable: false }],
  [405, {}, '<html>', { code: 'SOURCE_NOT_SERVICE', retryable: false }],
  [302, { location: `http://elsewhere.example/?key=${KEY}` }, '', { code: 'SOURCE_NOT_SERVICE', retryable: false }],
  [422, {}, '{"errors":["from: no","page: no"]}', { code: 'SOURCE_REFUSED', retryable: false }],
  [429, { 'retry-after': '7' }, '', { code: 'SOURCE_RATE_LIMITED', retryable: true, retryAfterMs: 7_000 }],
  [429, { 'X-RateLimit-Reset': '7' }, '', { code: 'SOURCE_RATE_LIMITED', retryable: true, retryAfterMs: 7_000 }],
  [422, { 'X-RateLimit-Reset': '7' }, '', { retryAfterMs: undefined }],
  [403, { 'retry-after': '7' }, '<html>', { code: 'SOURCE_AUTH', retryable: false, retryAfterMs: 7_000 }],
  [403, {}, '<html>', { message: expect.stringMatching(/ answered 403 with an HTML page$/) as string }],
  [302, { 'retry-after': '7' }, '', { code: 'SOURCE_NOT_SERVICE', retryable: false, retryAfterMs: 7_000 }],
  [
    304,
    {},
    '',
    { code: 'SOURCE_NOT_SERVICE', retryable: true, message: expect.not.stringContaining('redirect') as string },
  ],
  [425, {}, '', { code: 'SOURCE_UNAVAILABLE', retryable: true }],
  [429, { 'retry-after': 'soon' }, '', { code: 'SOURCE_RATE_LIMITED', retryAfterMs: undefined }],
  [500, {}, '{"errors":["Catalog not found"]}', { code: 'SOURCE_AUTH', retryable: false }],
  [500, {}, '{"errors":', { code: 'SOURCE_UNAVAILABLE', retryable: true }],
  [503, { 'retry-after': '3' }, '', { code: 'SOURCE_UNAVAILABLE', retryAfterMs: 3_000 }],
  [500, {}, `you sent ${KEY} and ${TOKEN}`, { code: 'SOURCE_UNAVAILABLE' }],
  [500, {}, 'x'.repeat(10_000_000), { code: 'SOURCE_UNAVAILABLE' }],
  [503, {}, 'x'.repeat(40_000_000), { code: 'SOURCE_UNAVAILABLE', status: 503, retryable: true }],
  [422, {}, `<error code="601"/>${' '.repeat(200_000)}`, { code: 'SERVICE_TOKEN', serviceCode: 601 }],
])('the error status %i %j has a code and a hint', async (status, headers, body, expected) => {
  const transport = await answering(status, headers, body);
  const error = await failure(ask(transport));
  expect(error).toMatchObject(expected);
  expect(error.message.length).toBeLessThan(400);
  expect(error.hint).toMatch(/\.$/);
});

it('an error status compares an HTTP date with the clock of the source', async () => {
  const date = 'Fri, 20 Nov 2026 02:00:00 GMT';
  const later = 'Fri, 20 Nov 2026 02:00:40 GMT';
  const transport = await answering(429, { date, 'retry-after': later }, '');
  expect(await failure(ask(transport))).toMatchObject({ retryAfterMs: 40_000 });
});

const body = JSON.stringify({ items: Array.from({ length: 500 }, (_, index) => index) });
const zipped = gzipSync(body);
const gzip = { ...JSON_TYPE, 'content-encoding': 'gzip' };

it.each([
  ['plain', JSON_TYPE, body],
  ['gzip', gzip, zipped],
  ['x-gzip', { ...JSON_TYPE, 'content-encoding': 'X-GZIP' }, zipped],
  ['no content type', {}, body],
  ['problem+json', { 'content-type': 'application/problem+json; charset=utf-8' }, body],
  ['a byte order mark', JSON_TYPE, `\ufeff${body}`],
  ['JSON labelled as a page', { 'content-type': 'text/html; charset=utf-8' }, body],
  ['JSON labelled as a file, and zipped', { ...gzip, 'content-type': 'application/octet-stream' }, zipped],
  ['a content type that comes twice', { 'content-type': 'application/json, application/json' }, body],
  ['no coding that is called none', { ...JSON_TYPE, 'content-encoding': 'none' }, body],
  ['no coding that is called UTF-8', { ...JSON_TYPE, 'content-encoding': 'UTF-8' }, body],
  ['the charset of a database', { 'content-type': 'application/json; charset=utf8mb4' }, body],
  ['UTF-8 with the label of UTF-16', { 'content-type': 'application/json; charset=utf-16' }, body],
  ['a charset that does not exist', { 'content-type': 'application/json; charset=binary' }, body],
  ['UTF-16', { 'content-type': 'application/json; charset="UTF-16LE"' }, Buffer.from(`\ufeff${body}`, 'utf16le')],
])('the body gate accepts %s', async (_name, headers, sent) => {
  const transport = await answering(200, headers, sent);
  expect((await ask(transport)).text).toBe(body);
});

it.each([
  ['Latin-1', 'application/json; charset=ISO-8859-1', Buffer.from('{"a":"Caf\u00e9"}', 'latin1')],
  ['Windows-1252', 'application/json;Charset="windows-1252"', Buffer.from('{"a":"Caf\u00e9"}', 'latin1')],
  ['UTF-8 with the default label of a server', 'application/json; charset=latin1', Buffer.from('{"a":"Caf\u00e9"}')],
  ['UTF-8 with the label of Latin-2', 'application/json; charset=ISO-8859-2', Buffer.from('{"a":"Caf\u00e9"}')],
  [
    'UTF-8 with a control character and the default label of a server',
    'application/json; charset=ISO-8859-1',
    Buffer.from('{"a":"Caf\u00e9\x1b"}'),
    'Caf\u00e9\x1b',
  ],
  [
    'EUC-KR that happens to be UTF-8',
    'application/json; charset=EUC-KR',
    Buffer.from('{"a":"\xc3\xa5"}', 'latin1'),
    '책',
  ],
  ['ISO-2022-JP', 'application/json; charset=ISO-2022-JP', Buffer.from('{"a":"\x1b$B;z\x1b(B"}', 'latin1'), '字'],
  ['Shift_JIS', 'application/json; charset=Shift_JIS', Buffer.from('{"a":"\x8e\x9a"}', 'latin1'), '字'],
])('the body gate decodes %s', async (_name, type, sent, text = 'Caf\u00e9') => {
  const transport = await answering(200, { 'content-type': type }, sent);
  const answer = await ask(transport);
  expect([answer.text, Buffer.from(answer.body).toString()]).toEqual([`{"a":"${text}"}`, `{"a":"${text}"}`]);
});

it('the body gate decodes XML in the charset of its declaration', async () => {
  const xml = '<?xml version="1.0" encoding="ISO-8859-1"?><user name="Caf\u00e9"/>';
  const sent = Buffer.from(xml, 'latin1');
  const type = { 'content-type': 'application/xml' };
  const transport = await answering(200, type, sent);
  expect((await ask(transport)).text).toContain('Caf\u00e9');
});

it.each([
  ['an unknown charset', 'x-ours', Buffer.from('{"a":"Caf\u00e9"}', 'latin1'), 'charset that it declares: x-ours'],
  [
    'bytes that are not what the charset says',
    'utf-16le',
    Buffer.from('{"\u00ff', 'latin1'),
    'charset that it declares: utf-16le',
  ],
])('the body gate names %s', async (_name, charset, sent, message) => {
  const type = { 'content-type': `application/json; charset=${charset}` };
  const transport = await answering(200, type, sent);
  const error = await failure(ask(transport));
  expect(error).toMatchObject({ code: 'SOURCE_BODY', message: expect.stringContaining(message) as string });
});

it.each([
  ['a truncated gzip', gzip, zipped.subarray(0, 40), 'SOURCE_BODY'],
  ['data after the gzip', gzip, Buffer.concat([zipped, Buffer.from('more')]), 'SOURCE_BODY'],
  ['plain text labelled gzip', gzip, body, 'SOURCE_BODY'],
  ['brotli', { ...JSON_TYPE, 'content-encoding': 'br' }, body, 'SOURCE_BODY'],
  ['two encodings', { ...JSON_TYPE, 'content-encoding': 'gzip, gzip' }, zipped, 'SOURCE_BODY'],
  ['a gzip bomb', gzip, gzipSync(' '.repeat(100_000)), 'SOURCE_BODY'],
  ['too many bytes', JSON_TYPE, ' '.repeat(60_000), 'SOURCE_BODY'],
  ['HTML', { 'content-type': 'text/html' }, '<html>', 'SOURCE_NOT_SERVICE'],
  ['HTML that cannot be decoded', { 'content-type': 'text/html; charset=x' }, '<html>', 'SOURCE_NOT_SERVICE'],
  ['a number labelled as a page', { 'content-type': 'text/html' }, '503', 'SOURCE_NOT_SERVICE'],
])('the body gate rejects %s', async (_name, headers, sent, code) => {
  const limits = { maxWireBytes: 50_000, maxBytes: 20_000 };
  const transport = await answering(200, headers, sent, { limits });
  const error = await failure(ask(transport));
  expect(error).toMatchObject({ code, retryable: true });
  expect(error.hint).toMatch(/\.$/);
});

it('the body gate rejects a body that is too large and does not announce its length', async () => {
  const transport = await transportTo(
    (_request, response) => {
      response.writeHead(200, JSON_TYPE);
      for (let sent = 0; sent < 20; sent++) response.write(' '.repeat(10_000));
      response.end();
    },
    { limits: { maxWireBytes: 50_000, maxBytes: 50_000 } },
  );
  expect(await failure(ask(transport))).toMatchObject({ code: 'SOURCE_BODY' });
});

it('the body gate detects a body that breaks off', async () => {
  const transport = await transportTo((_request, response) => {
    response.writeHead(200, { ...JSON_TYPE, 'content-length': 100 });
    response.write('{"items":[', () => response.socket?.destroy());
  });
  expect(await failure(ask(transport))).toMatchObject({ code: 'SOURCE_UNAVAILABLE', retryable: true });
});
