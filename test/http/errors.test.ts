import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { HTTP_ERRORS } from '../../src/http/http-error.ts';
import { emptyMirror, serve, serveFilled, settableClock } from './place.ts';
import { get, openReader } from './reader.ts';

const ERROR_BODY = z.strictObject({
  error: z.strictObject({ code: z.string(), message: z.string().min(1), hint: z.string().min(1) }),
});

async function errorOf(url: string, asking: Parameters<typeof get>[1] = {}) {
  const { status, headers, text: answered } = await get(url, asking);
  expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
  expect(headers['content-type']).toMatch(/^application\/json/);
  expect(headers['access-control-allow-origin']).toBeUndefined();
  return { status, headers, ...ERROR_BODY.parse(JSON.parse(answered)).error };
}

it('each error code of HTTP is in docs/api.md', () => {
  const page = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
  expect(Object.keys(HTTP_ERRORS).filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
});

it('an invalid request is rejected with the parameter that is wrong', async () => {
  const { web } = await serveFilled({ items: 10 });
  const wrong: [string, RegExp][] = [
    ['/api/changes?after=-1', /after.*-1/],
    ['/api/changes?after=1.5', /after.*1\.5/],
    ['/api/changes?after=', /after/],
    ['/api/changes?after=latest', /after.*latest/],
    ['/api/changes?after=99999999999999999999', /after/],
    ['/api/changes?after=1&after=2', /after/],
    ['/api/changes?after=11', /after: 11 is beyond.*10/],
    ['/api/changes?limit=0', /limit.*0/],
    ['/api/changes?limit=10001', /limit.*10001/],
    ['/api/changes?limit=many', /limit.*many/],
    ['/api/changes?afer=3', /afer/],
    ['/api/changes/stream?after=-1', /after.*-1/],
    ['/api/changes/stream?after=newest', /after.*newest/],
    ['/api/changes/stream?after=11', /after: 11 is beyond.*10/],
    ['/api/changes/stream?limit=3', /limit/],
    ['/api/products', /q is missing/],
    ['/api/products?q=+', /q is missing/],
    ['/api/products?q=a&limit=1001', /limit.*1001/],
    [`/api/products?q=${Array.from({ length: 17 }, (_, nth) => `w${nth}`).join('+')}`, /17 words/],
    ['/api/runs?limit=0', /limit/],
    ['/api/status?verbose=1', /verbose/],
    ['/api/products/%zz', /%zz/],
  ];
  for (const [path, message] of wrong) {
    const rejected = await errorOf(`${web.url}${path}`);
    expect(rejected, path).toMatchObject({ status: 400, code: 'USAGE' });
    expect(rejected.message, path).toMatch(message);
  }
});

it('a request gets 404 for an unknown path', async () => {
  const { web } = await serve(emptyMirror());
  const unknown = ['/nothing', '/api', '/api/changes/nothing', `/${'x'.repeat(2_000)}`, '/api/products/A%2FB'];
  for (const path of unknown)
    expect(await errorOf(`${web.url}${path}`), path).toMatchObject({ status: 404, code: 'NOT_FOUND' });
});

it('a request gets 405 for any method but GET and HEAD', async () => {
  const { web } = await serve(emptyMirror());
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE']) {
    for (const path of ['/api/status', '/healthz', '/nothing']) {
      const rejected = await errorOf(`${web.url}${path}`, { method, headers: { 'content-type': 'text/odd' } });
      expect(rejected, method).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED' });
      expect(rejected.headers.allow).toBe('GET, HEAD');
    }
  }
  for (const path of ['/api/status', '/healthz', '/api/changes/stream']) {
    const head = await get(`${web.url}${path}`, { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '' });
  }
});

it('a request gets a short error of the same shape if it is not even HTTP', async () => {
  const { web } = await serve(emptyMirror());
  const { port } = new URL(web.url);
  const clientHello = Buffer.from('16030100c8010000c40303', 'hex');
  const broken: [string | Buffer, number, RegExp][] = [
    ['nonsense\r\n\r\n', 400, /not valid HTTP/],
    [`GET / HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n`, 400, /not valid HTTP/],
    [`GET /${'x'.repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`, 431, /too long/],
    [`GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`, 431, /too long/],
    [clientHello, 400, /TLS/],
    ['GET / HTTP/1.1\r\nconnection: close\r\n\r\n', 400, /Host is missing/],
    ['GET /api/status HTTP/1.1\r\nhost: localhost\r\nexpect: miracles\r\n\r\n', 417, /expectation/],
    ['CONNECT a:1 HTTP/1.1\r\nhost: localhost\r\n\r\n', 405, /not a proxy/],
  ];
  for (const [sent, status, message] of broken) {
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(sent);
    const answer = (await text(socket)).split('\r\n');
    expect(answer[0]).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(answer).toContain('cache-control: no-store');
    const { error } = ERROR_BODY.parse(JSON.parse(answer.at(-1) ?? ''));
    expect(error).toMatchObject({ code: 'USAGE', message: expect.stringMatching(message) as string });
  }
  for (const path of [`/%zz${'x'.repeat(15_000)}`, `/api/products/%zz${'y'.repeat(15_000)}`]) {
    const { status, message } = await errorOf(`${web.url}${path}`);
    expect(status).toBe(400);
    expect(message.length).toBeLessThan(600);
  }
  expect((await errorOf(`${web.url}/api/products/${'"'.repeat(900)}`)).message.length).toBeLessThan(600);
});

it('a request may be broken off by the client', async () => {
  const { web } = await serve(emptyMirror());
  const { port } = new URL(web.url);
  for (const sent of ['CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n', 'GET / HTTP/1.1\r\nhost: a\r\nexpect: b\r\n\r\n']) {
    for (let times = 0; times < 20; times++) {
      const socket = connect(Number(port), '127.0.0.1').on('error', () => {});
      await new Promise((resolve) => socket.write(sent, resolve));
      socket.resetAndDestroy();
    }
  }
  expect((await get(`${web.url}/healthz`)).status).toBe(200);
});

it('a client gets no detail of an error of the mirror, which is logged', async () => {
  const { db, web, logged } = await serveFilled({ items: 10 });
  execute(db, 'DROP VIEW change_log; DROP TABLE changes');
  const rejected = await errorOf(`${web.url}/api/changes`);
  expect(rejected).toMatchObject({ status: 500, code: 'INTERNAL' });
  expect(rejected.message).not.toContain(db);
  expect(JSON.stringify(await logged('a request failed'))).toContain(db);
});

const token = 'right-and-secret';
const bearer = (value: string) => ({ headers: { authorization: value } });

it('access needs the token on every path but /healthz, and never logs it', async () => {
  const clock = settableClock();
  const { web, log } = await serve(emptyMirror(), { token, clock });
  const paths = ['/api/status', '/api/changes', '/api/changes/stream', '/readyz', '/nothing', '/api/changes?after=x'];
  const wrong = ['', token, 'Bearer', 'Bearer wrong', `Basic ${token}`, `Bearer ${token}x`, 'Bearer right'];
  for (const path of paths) {
    // Fewer than ten wrong tokens a minute: see access.test.ts.
    clock.aheadMs += 60_000;
    const without = await errorOf(`${web.url}${path}`);
    expect(without, path).toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
    expect(without.headers['www-authenticate']).toMatch(/^Bearer/);
    for (const value of wrong)
      expect((await errorOf(`${web.url}${path}`, bearer(value))).status, `${path} ${value}`).toBe(401);
  }
  expect((await errorOf(`${web.url}/api/status?token=${token}`)).status).toBe(401);
  expect((await get(`${web.url}/healthz`)).status).toBe(200);
  for (const value of [`Bearer ${token}`, `bearer  ${token}`]) {
    expect((await get(`${web.url}/api/status`, bearer(value))).status).toBe(200);
    expect((await errorOf(`${web.url}/nothing`, bearer(value))).status).toBe(404);
  }
  // With a token, the host name is not checked.
  const named = { host: 'mirror.example', authorization: `Bearer ${token}` };
  expect((await get(`${web.url}/api/status`, { headers: named })).status).toBe(200);
  const reader = await openReader(`${web.url}/api/changes/stream`, { authorization: `Bearer ${token}` });
  expect(reader.response.statusCode).toBe(200);
  await web.stop();
  expect(log.length).toBeGreaterThan(paths.length);
  expect(JSON.stringify(log)).not.toMatch(/right|wrong/);
});

it('access without a token is limited to local host names', async () => {
  const { web } = await serve(emptyMirror());
  const { port } = new URL(web.url);
  const strangers = ['rebound.example', 'localhost.example', '127.0.0.1.example', '10.0.0.1', '[::2]'];
  for (const path of ['/api/status', '/api/changes/stream', '/healthz', '/readyz', '/nothing']) {
    for (const host of [...strangers, `rebound.example:${port}`]) {
      const rejected = await errorOf(`${web.url}${path}`, { headers: { host } });
      expect(rejected, host).toMatchObject({ status: 403, code: 'HOST_REFUSED' });
    }
  }
  for (const host of ['localhost', `LOCALHOST:${port}`, '127.0.0.1', `127.0.0.1:${port}`, '[::1]', `[::1]:${port}`])
    expect((await get(`${web.url}/api/status`, { headers: { host } })).status, host).toBe(200);
});

it('a server beyond loopback needs a token before the mirror is opened', async () => {
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'mirror.example']) {
    const db = emptyMirror();
    await expect(serve(db, { host })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('CATCHWORD_HTTP_TOKEN') as string,
    });
    expect(existsSync(db)).toBe(false);
  }
  const { web } = await serve(emptyMirror(), { host: '0.0.0.0', token });
  expect(web.url).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/);
  expect((await get(web.url.replace('0.0.0.0', '127.0.0.1'))).status).toBe(401);
});

it('an error names a port that is taken and an address of another machine', async () => {
  const { web } = await serve(emptyMirror());
  const port = Number(new URL(web.url).port);
  await expect(serve(emptyMirror(), { port })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    exitCode: 2,
    message: expect.stringContaining(`CATCHWORD_HTTP_PORT: ${port}`) as string,
  });
  await expect(serve(emptyMirror(), { host: '192.0.2.1', token })).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('CATCHWORD_HTTP_HOST: 192.0.2.1') as string,
  });
});
