import formbody from '@fastify/formbody';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.ts';
import { createApp } from '../../src/web/app.ts';
import { addAuth } from '../../src/web/auth.ts';
import { listen } from '../../src/web/listen.ts';
import { sendErrorPage } from '../../src/web/page/error-page.tsx';
import { operatorOf } from '../../src/web/page/session.ts';
import { createTokenCheck } from '../../src/web/token-check.ts';
import { emptyMirror, serve } from './place.ts';
import { get, openReader } from './reader.ts';

const token = 'right-and-secret';
const HOUR = 3_600_000;
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

type Web = Pick<Awaited<ReturnType<typeof serve>>['web'], 'url'>;

/** Posts a form as a browser at the page does, unless `headers` say otherwise. */
function post(
  web: Web,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = { origin: web.url },
) {
  const body = new URLSearchParams(fields).toString();
  return get(`${web.url}${path}`, { method: 'POST', headers: { ...HTML, ...FORM, ...headers }, body });
}

/** Signs in. @returns the cookie as the browser sends it back */
async function signIn(web: Web, fields: Record<string, string> = {}): Promise<string> {
  const { status, headers } = await post(web, '/login', { token, ...fields });
  expect(status).toBe(303);
  const [cookie = ''] = headers['set-cookie'] ?? [];
  return cookie.split(';')[0] ?? '';
}

function codeOf(text: string): string {
  return (JSON.parse(text) as { error: { code: string } }).error.code;
}

/** A clock that a test can put forward. */
function settableClock(): Clock & { aheadMs: number } {
  const clock = { ...systemClock, aheadMs: 0, now: () => Date.now() + clock.aheadMs };
  return clock;
}

describe('the login', () => {
  it('is where a browser without a session is sent, and back to where it was', async () => {
    const { web } = await serve(emptyMirror(), { token });
    for (const method of ['GET', 'HEAD']) {
      const sent = await get(`${web.url}/?a=b&c=%3C`, { method, headers: HTML });
      expect(sent).toMatchObject({ status: 303, headers: { location: '/login?back=%2F%3Fa%3Db%26c%3D%253C' } });
    }
    expect((await get(web.url, { headers: HTML })).headers.location).toBe('/login');
    const form = await get(`${web.url}/login?back=%2F%3Fa%3Db%22%3E%3Cb%3E`, { headers: HTML });
    expect(form.status).toBe(200);
    expect(form.text).toContain('name="back" value="/?a=b%22%3E%3Cb%3E"');
    expect(form.text).not.toContain('<nav');
    const cookie = await signIn(web);
    const page = await get(`${web.url}/`, { headers: { ...HTML, cookie } });
    expect(page.status).toBe(200);
    expect((await post(web, '/login', { token, back: '/?a=b' })).headers.location).toBe('/?a=b');
    expect((await get(`${web.url}/login?back=/runs/1`, { headers: { ...HTML, cookie } })).headers.location).toBe(
      '/runs/1',
    );
  });

  it('never leads to another server, nor in a circle', async () => {
    const { web } = await serve(emptyMirror(), { token });
    const hostile = [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      '/\t/evil.example',
      '/..//evil.example',
    ];
    for (const back of [...hostile, 'javascript:alert(1)', '', '/login?back=/login', '/logout', '/live/']) {
      expect((await post(web, '/login', { token, back })).headers.location, back).toBe('/');
    }
  });

  it('sets a cookie that scripts and other sites cannot use', async () => {
    const { web } = await serve(emptyMirror(), { token });
    const plain = await post(web, '/login', { token });
    expect(plain.headers['set-cookie']).toEqual([
      expect.stringMatching(/^catchword_[0-9a-f]{8}=[^;]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/),
    ]);
    expect(plain.text + JSON.stringify(plain.headers)).not.toContain(token);
    const secure = await post(web, '/login', { token }, { origin: web.url, 'x-forwarded-proto': 'https, http' });
    expect(secure.headers['set-cookie']?.[0]).toMatch(/; HttpOnly; Secure; SameSite=Strict$/);
  });

  it('shows the name that the operator gave, as text', async () => {
    const { web } = await serve(emptyMirror(), { token });
    const cookie = await signIn(web, { name: ` <b>Anna</b>\n\u202e${'x'.repeat(100)}` });
    const { text } = await get(`${web.url}/`, { headers: { ...HTML, cookie } });
    expect(text).toContain(`Signed in as &lt;b>Anna&lt;/b> \\u202e${'x'.repeat(42)}<`);
    expect(text).toContain('action="/logout"');
  });

  it('rejects a form that is incomplete or too large', async () => {
    const { web } = await serve(emptyMirror(), { token });
    const headers = { ...HTML, origin: web.url };
    for (const fields of [{}, { name: 'Anna' }, { token, name: 'x'.repeat(20_000) }] as Record<string, string>[]) {
      expect((await post(web, '/login', fields)).status).toBe(400);
    }
    const odd = await get(`${web.url}/login`, { method: 'POST', headers, body: token });
    expect(odd.status).toBe(400);
    const twice = { method: 'POST', headers: { ...headers, ...FORM }, body: `token=a&token=${token}` };
    expect((await get(`${web.url}/login`, twice)).status).toBe(400);
  });

  it('does not exist without a token', async () => {
    const { web } = await serve(emptyMirror());
    expect((await get(`${web.url}/login`, { headers: HTML })).status).toBe(404);
    const page = await get(web.url, { headers: HTML });
    expect(page.status).toBe(200);
    expect(page.text).not.toContain('/logout');
  });
});

describe('a session', () => {
  it('opens every path, as the token does', async () => {
    const { web } = await serve(emptyMirror(), { token });
    const cookie = await signIn(web);
    for (const path of ['/', '/api/status', '/metrics', '/api/runs'])
      expect((await get(`${web.url}${path}`, { headers: { cookie } })).status, path).toBe(200);
    for (const path of ['/', '/api/status', '/metrics', '/live/'])
      expect((await get(`${web.url}${path}`)).status, path).toBe(401);
    const { text } = await get(`${web.url}/login`);
    for (const [, asset = ''] of text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g))
      expect((await get(`${web.url}${asset}`)).status, asset).toBe(200);
  });

  it('survives a restart, and ends with another token, after 12 hours, and when it is forged', async () => {
    const db = emptyMirror();
    const clock = settableClock();
    const { web } = await serve(db, { token, clock });
    const cookie = await signIn(web, { name: 'Anna' });
    const statusAt = async (at: Web, sent: string) => (await get(`${at.url}/`, { headers: { cookie: sent } })).status;
    const second = await serve(db, { token, clock });
    expect(await statusAt(second.web, cookie)).toBe(200);
    const changed = await serve(db, { token: 'another', clock });
    expect(await statusAt(changed.web, cookie)).toBe(401);

    const [name = '', value = ''] = cookie.split('=');
    const [body = '', signature = ''] = decodeURIComponent(value).split('.');
    const later = Buffer.from(JSON.stringify({ name: 'Eve', expiresAt: Date.now() + HOUR })).toString('base64url');
    const forged = [
      '',
      body,
      `${body}.`,
      `${later}.${signature}`,
      `${body}.${signature}x`,
      `.${signature}`,
      `${later}.`,
      '%',
      'a.b.c',
    ];
    for (const one of forged) expect(await statusAt(web, `${name}=${one}`), one).toBe(401);
    // The key of another token signs for another name; under this one it is wrong as well.
    const other = await post(changed.web, '/login', { token: 'another' });
    const [, otherValue = ''] = (other.headers['set-cookie']?.[0]?.split(';')[0] ?? '').split('=');
    expect(await statusAt(web, `${name}=${otherValue}`)).toBe(401);

    clock.aheadMs = 12 * HOUR - 60_000;
    expect(await statusAt(web, cookie)).toBe(200);
    clock.aheadMs = 12 * HOUR + 1;
    expect(await statusAt(web, cookie)).toBe(401);
  });

  it('ends with its streams', async () => {
    const clock = settableClock();
    const { web } = await serve(emptyMirror(), { token, clock });
    clock.aheadMs = -12 * HOUR + 1_500;
    const cookie = await signIn(web);
    clock.aheadMs = 0;
    const readers = [];
    for (const path of ['/live/', '/api/changes/stream'])
      readers.push(await openReader(`${web.url}${path}`, { cookie }));
    for (const reader of readers) {
      expect(reader.response.statusCode).toBe(200);
      for await (const _block of reader.blocks());
    }
    expect((await get(`${web.url}/live/`, { headers: { cookie, accept: 'text/event-stream' } })).status).toBe(401);
  });

  it('ends in the browser that signs out', async () => {
    const { web } = await serve(emptyMirror(), { token });
    const cookie = await signIn(web);
    const out = await post(web, '/logout', {}, { origin: web.url, cookie });
    expect(out).toMatchObject({ status: 303, headers: { location: '/login' } });
    expect(out.headers['set-cookie']?.[0]).toMatch(
      /^catchword_[0-9a-f]{8}=; Max-Age=0; Path=\/; HttpOnly; SameSite=Strict$/,
    );
  });

  it('ends with its streams, also for a copy of the cookie, when the browser signs out', async () => {
    const { web } = await serve(emptyMirror(), { token });
    const cookie = await signIn(web, { name: 'Anna' });
    const other = await signIn(web, { name: 'Anna' });
    const statusOf = async (sent: string) => (await get(`${web.url}/api/status`, { headers: { cookie: sent } })).status;
    const readers = [];
    for (const path of ['/live/', '/api/changes/stream'])
      readers.push(await openReader(`${web.url}${path}`, { cookie }));
    const kept = await openReader(`${web.url}/live/`, { cookie: other });
    await post(web, '/logout', {}, { origin: web.url, cookie });
    for (const reader of readers) for await (const _block of reader.blocks());
    expect(await statusOf(cookie)).toBe(401);
    expect(await statusOf(other)).toBe(200);
    expect(kept.response.destroyed).toBe(false);
  });

  it('does not last for years if the clock was wrong when it began', async () => {
    const clock = settableClock();
    const { web } = await serve(emptyMirror(), { token, clock });
    const status = async (cookie: string) => (await get(`${web.url}/`, { headers: { ...HTML, cookie } })).status;
    clock.aheadMs = 1_000 * 24 * HOUR;
    const wrong = await signIn(web);
    clock.aheadMs = HOUR;
    const right = await signIn(web);
    clock.aheadMs = 0;
    expect(await status(wrong)).toBe(303);
    expect(await status(right)).toBe(200);
  });
});

describe('wrong tokens', () => {
  it('are limited by address, while sessions go on, and logged once without the token', async () => {
    const clock = settableClock();
    const { web, log } = await serve(emptyMirror(), { token, clock });
    const cookie = await signIn(web);
    const bearer = (value: string) => get(`${web.url}/api/status`, { headers: { authorization: `Bearer ${value}` } });
    for (let nth = 0; nth < 5; nth++) {
      expect((await bearer(`wrong-bearer-${nth}`)).status).toBe(401);
      const form = await post(web, '/login', { token: `wrong-form-${nth}`, name: 'Anna', back: '/runs/1' });
      expect(form.status).toBe(401);
      expect(form.text).toMatch(/This token is wrong.*value="\/runs\/1".*value="Anna"/s);
      expect(form.text).not.toContain('wrong-form');
    }
    // The right one is not even looked at.
    const refused = await bearer(token);
    expect(refused.status).toBe(429);
    expect(codeOf(refused.text)).toBe('TOO_MANY_WRONG_TOKENS');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(50);
    const form = await post(web, '/login', { token });
    expect(form.status).toBe(429);
    expect(form.headers['set-cookie']).toBeUndefined();
    expect(form.text).toMatch(/Wait \d+ s/);
    expect((await get(`${web.url}/api/status`, { headers: { cookie } })).status).toBe(200);
    // Who sends no token is not limited.
    expect((await get(`${web.url}/api/status`)).status).toBe(401);

    clock.aheadMs += 60_000;
    expect((await bearer(token)).status).toBe(200);
    await web.stop();
    const lines = log.filter(({ msg }) => msg.startsWith('too many wrong tokens'));
    expect(lines).toEqual([expect.objectContaining({ address: '127.0.0.1', failures: 10 })]);
    expect(JSON.stringify(log)).not.toMatch(/right-and|wrong-(?:form|bearer)/);
  });

  it('count for an IPv6 network as for one address, and use little memory', () => {
    const warned: object[] = [];
    const quiet = { debug: () => {}, info: () => {}, error: () => {}, fatal: () => {} };
    const log = { ...quiet, warn: (fields: object) => void warned.push(fields) };
    const check = createTokenCheck(token, systemClock, log);
    for (let nth = 0; nth < 10; nth++) expect(check('wrong', `2001:db8:0:1::${nth}`)?.code).toBe('UNAUTHORIZED');
    expect(check(token, '2001:db8:0:1:ffff::1')?.code).toBe('TOO_MANY_WRONG_TOKENS');
    expect(check(token, '2001:db8:0:2::1')).toBeNull();
    for (let nth = 0; nth < 10; nth++) check('wrong', '::ffff:192.0.2.1');
    expect(check(token, '192.0.2.1')?.code).toBe('TOO_MANY_WRONG_TOKENS');
    expect(warned).toHaveLength(2);
    // The addresses that came first are forgotten.
    for (let nth = 0; nth < 5_000; nth++) check('wrong', `10.${nth >> 16}.${(nth >> 8) & 255}.${nth & 255}`);
    expect(check(token, '192.0.2.1')).toBeNull();
  });
});

it('limits the time of a whole request, not only of its headers', async () => {
  const { server } = createApp(pino({ level: 'silent' }), '');
  expect(server.requestTimeout).toBe(30_000);
  expect(server.headersTimeout).toBeLessThanOrEqual(server.requestTimeout);
});

describe('a request of another site', () => {
  it('cannot sign in or out', async () => {
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

  it('cannot make the server search, but may link to a page', async () => {
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

  it('follows a link with the session, which the browser withholds at first', async () => {
    const { web } = await serve(emptyMirror(), { token });
    const linked = await get(`${web.url}/login?back=/`, {
      headers: { ...HTML, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    });
    expect(linked.headers.refresh).toBe('0');
    expect(
      (await get(`${web.url}/login`, { headers: { ...HTML, 'sec-fetch-site': 'same-origin' } })).headers.refresh,
    ).toBeUndefined();
  });
});

describe('a page', () => {
  it('has headers that forbid frames, inline scripts and other servers, also if it is an error', async () => {
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

  it('says what went wrong and what to do, where a program gets JSON', async () => {
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

  it('tells who posts after the session is over that nothing was done', async () => {
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
});
