import { systemClock } from '@catchword/base/clock';
import formbody from '@fastify/formbody';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { createApp } from '../../src/http/app.ts';
import { addAuth } from '../../src/http/auth.ts';
import { listen } from '../../src/http/listen.ts';
import { sendErrorPage } from '../../src/http/pages/error-page.tsx';
import { operatorOf } from '../../src/http/pages/session.ts';
import { codeOf, HTML, post, signIn, token } from './browser-requests.ts';
import { emptyMirror, serve } from './place.ts';
import { get } from './reader.ts';

it('the server limits the time of a whole request, not only of its headers', async () => {
  const { server } = createApp(pino({ level: 'silent' }), '');
  expect(server.requestTimeout).toBe(30_000);
  expect(server.headersTimeout).toBeLessThanOrEqual(server.requestTimeout);
});

it('a request of another site cannot sign in or out', async () => {
  const { web } = await serve(emptyMirror(), { token });
  const { host, port } = new URL(web.url);
  const cookie = await signIn(web);
  const foreign: Record<string, string>[] = [
    {},
    { origin: 'null' },
    { origin: 'https://evil.example' },
    { origin: `http://${host}.evil.example` },
    { origin: `http://127.0.0.1:${Number(port) + 1}` },
    { origin: 'http://127.0.0.1' },
    { origin: 'not an origin' },
    { referer: `${web.url}/` },
    ...['cross-site', 'same-site', 'none', 'odd'].map((site) => ({ 'sec-fetch-site': site, origin: web.url })),
  ];
  for (const headers of foreign) {
    for (const path of ['/login', '/logout']) {
      const page = await post(web, path, { token }, { ...headers, cookie });
      expect(page.status, JSON.stringify(headers)).toBe(403);
      expect(page.headers['set-cookie']).toBeUndefined();
      const program = await post(web, path, { token }, { ...headers, cookie, accept: '*/*' });
      expect(codeOf(program.text)).toBe('CROSS_SITE_REFUSED');
    }
  }
  const own: Record<string, string>[] = [
    { 'sec-fetch-site': 'same-origin' },
    { origin: web.url },
    // A proxy adds TLS, and passes the host on.
    { origin: 'https://mirror.example', host: 'mirror.example' },
    { origin: 'https://mirror.example', host: 'mirror.example:443' },
    { authorization: `Bearer ${token}` },
  ];
  for (const headers of own)
    expect((await post(web, '/logout', {}, headers)).status, JSON.stringify(headers)).toBe(303);
});

it('a request of another site cannot make the server search, but may link to a page', async () => {
  const { web } = await serve(emptyMirror());
  for (const site of ['cross-site', 'same-site']) {
    const from = (mode: string, dest: string) => ({
      'sec-fetch-site': site,
      'sec-fetch-mode': mode,
      'sec-fetch-dest': dest,
    });
    for (const [mode, dest] of [
      ['no-cors', 'image'],
      ['cors', 'empty'],
      ['navigate', 'iframe'],
    ] as const) {
      const refused = await get(`${web.url}/api/products?q=a`, { headers: from(mode, dest) });
      expect(refused.status).toBe(403);
      expect(codeOf(refused.text)).toBe('CROSS_SITE_REFUSED');
    }
    expect((await get(web.url, { headers: { ...HTML, ...from('navigate', 'document') } })).status).toBe(200);
  }
  const own = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' };
  expect((await get(`${web.url}/api/products?q=a`, { headers: own })).status).toBe(200);
});

it('a link of another site opens with the session, which the browser withholds at first', async () => {
  const { web } = await serve(emptyMirror(), { token });
  const linked = await get(`${web.url}/login?back=/`, {
    headers: { ...HTML, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  });
  expect(linked.headers.refresh).toBe('0');
  expect(
    (await get(`${web.url}/login`, { headers: { ...HTML, 'sec-fetch-site': 'same-origin' } })).headers.refresh,
  ).toBeUndefined();
});

it('a page has headers that forbid frames, inline scripts and other servers, also if it is an error', async () => {
  const { web } = await serve(emptyMirror(), { token });
  const cookie = await signIn(web);
  const pages: [string, number, Record<string, string>][] = [
    ['/', 200, { cookie }],
    ['/login', 200, {}],
    ['/nothing', 404, { cookie }],
    ['/%zz', 400, { cookie }],
    ['/', 403, { cookie, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }],
  ];
  for (const method of ['GET', 'HEAD']) {
    for (const [path, status, headers] of pages) {
      const page = await get(`${web.url}${path}`, { method, headers: { ...HTML, ...headers } });
      expect(page.status, path).toBe(status);
      expect(page.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
          "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'permissions-policy': expect.stringContaining('geolocation=()') as string,
        'cache-control': 'no-store',
      });
      if (method === 'HEAD') expect(page.text).toBe('');
      else expect(page.text).toMatch(/^<!doctype html>/);
      expect(page.text).not.toMatch(/<script(?! (?:defer|type="module") src=)|<style|\son\w+=|\sstyle=/);
    }
  }
});

it('a page says what went wrong and what to do, where a program gets JSON', async () => {
  const { web } = await serve(emptyMirror());
  const unknown = await get(`${web.url}/<b>nothing`, { headers: HTML });
  expect(unknown.text).toMatch(/<h1>Not found<\/h1>.*Choose a page above/s);
  const programs: [string, Record<string, string>][] = [
    ['/nothing', {}],
    ['/nothing', { accept: '*/*' }],
    ['/nothing', { ...HTML, authorization: 'Bearer x' }],
    ['/api/products', HTML],
    ['/live/nothing', HTML],
  ];
  for (const [path, headers] of programs)
    expect(codeOf((await get(`${web.url}${path}`, { headers })).text), path).toMatch(/NOT_FOUND|USAGE/);
});

it('a page tells who posts after the session is over that nothing was done', async () => {
  const app = createApp(pino({ level: 'silent' }), 'Use /decide.');
  onTestFinished(() => app.close());
  app.decorate('sendErrorPage', sendErrorPage);
  addAuth(app, { token, clock: systemClock, log: pino({ level: 'silent' }), login: true });
  app.register(formbody);
  app.post('/decide', { config: { action: true } }, async (request) => operatorOf(request));
  const web = { url: await listen(app, '127.0.0.1', 0) };
  const { status, headers, text } = await post(web, '/decide', {});
  expect(status).toBe(401);
  expect(headers.location).toBeUndefined();
  expect(text).toMatch(/<h1>You are signed out<\/h1>.*Nothing was done.*href="\/login"/s);
  const decided = async (sent: Record<string, string>) =>
    (await post(web, '/decide', {}, { origin: web.url, ...sent })).text;
  expect(await decided({ cookie: await signIn(web, { name: 'Anna' }) })).toBe('Anna (127.0.0.1)');
  expect(await decided({ cookie: await signIn(web) })).toBe('127.0.0.1');
  expect(await decided({ authorization: `Bearer ${token}` })).toBe('127.0.0.1');
  expect((await post(web, '/decide', {}, { cookie: await signIn(web) })).status).toBe(403);
});
