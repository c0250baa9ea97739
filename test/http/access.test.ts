import { systemClock } from '@catchword/base/clock';
import { expect, it } from 'vitest';
import { createTokenCheck } from '../../src/http/token-check.ts';
import { codeOf, FORM, HTML, post, signIn, token, type Web } from './browser-requests.ts';
import { emptyMirror, serve, settableClock } from './place.ts';
import { get, openReader } from './reader.ts';

const HOUR = 3_600_000;

it('a browser without a session is sent to the login, and back to where it was', async () => {
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

it('the login never leads to another server, nor in a circle', async () => {
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

it('the login sets a cookie that scripts and other sites cannot use', async () => {
  const { web } = await serve(emptyMirror(), { token });
  const plain = await post(web, '/login', { token });
  expect(plain.headers['set-cookie']).toEqual([
    expect.stringMatching(/^catchword_[0-9a-f]{8}=[^;]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/),
  ]);
  expect(plain.text + JSON.stringify(plain.headers)).not.toContain(token);
  const secure = await post(web, '/login', { token }, { origin: web.url, 'x-forwarded-proto': 'https, http' });
  expect(secure.headers['set-cookie']?.[0]).toMatch(/; HttpOnly; Secure; SameSite=Strict$/);
});

it('a page shows the name that the operator gave, as text', async () => {
  const { web } = await serve(emptyMirror(), { token });
  const cookie = await signIn(web, { name: ` <b>Anna</b>\n\u202e${'x'.repeat(100)}` });
  const { text } = await get(`${web.url}/`, { headers: { ...HTML, cookie } });
  expect(text).toContain(`Signed in as &lt;b>Anna&lt;/b> \\u202e${'x'.repeat(42)}<`);
  expect(text).toContain('action="/logout"');
});

it('the login rejects a form that is incomplete or too large', async () => {
  const { web } = await serve(emptyMirror(), { token });
  const headers = { ...HTML, origin: web.url };
  const forms: readonly (readonly [Record<string, string>, number])[] = [
    [{}, 400],
    [{ name: 'Anna' }, 400],
    [{ token, name: 'x'.repeat(20_000) }, 413],
  ];
  for (const [fields, status] of forms) expect((await post(web, '/login', fields)).status).toBe(status);
  const odd = await get(`${web.url}/login`, { method: 'POST', headers, body: token });
  expect(odd.status).toBe(415);
  const twice = { method: 'POST', headers: { ...headers, ...FORM }, body: `token=a&token=${token}` };
  expect((await get(`${web.url}/login`, twice)).status).toBe(400);
});

it('the login does not exist without a token', async () => {
  const { web } = await serve(emptyMirror());
  expect((await get(`${web.url}/login`, { headers: HTML })).status).toBe(404);
  const page = await get(web.url, { headers: HTML });
  expect(page.status).toBe(200);
  expect(page.text).not.toContain('/logout');
});

it('a session opens every path, as the token does', async () => {
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

it('a session survives a restart, and ends with another token, after 12 hours, and when it is forged', async () => {
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

it('a session ends with its streams', async () => {
  const clock = settableClock();
  const { web } = await serve(emptyMirror(), { token, clock });
  clock.aheadMs = -12 * HOUR + 1_500;
  const cookie = await signIn(web);
  clock.aheadMs = 0;
  const readers = [];
  for (const path of ['/live/', '/api/changes/stream']) readers.push(await openReader(`${web.url}${path}`, { cookie }));
  for (const reader of readers) {
    expect(reader.response.statusCode).toBe(200);
    for await (const _block of reader.blocks());
  }
  expect((await get(`${web.url}/live/`, { headers: { cookie, accept: 'text/event-stream' } })).status).toBe(401);
});

it('a session ends with its streams, also for a copy of the cookie, when the browser signs out', async () => {
  const { web } = await serve(emptyMirror(), { token });
  const cookie = await signIn(web, { name: 'Anna' });
  const other = await signIn(web, { name: 'Anna' });
  const statusOf = async (sent: string) => (await get(`${web.url}/api/status`, { headers: { cookie: sent } })).status;
  const readers = [];
  for (const path of ['/live/', '/api/changes/stream']) readers.push(await openReader(`${web.url}${path}`, { cookie }));
  const kept = await openReader(`${web.url}/live/`, { cookie: other });
  const out = await post(web, '/logout', {}, { origin: web.url, cookie });
  expect(out).toMatchObject({ status: 303, headers: { location: '/login' } });
  expect(out.headers['set-cookie']?.[0]).toMatch(/=; Max-Age=0; Path=\/; HttpOnly; SameSite=Strict$/);
  for (const reader of readers) for await (const _block of reader.blocks());
  expect(await statusOf(cookie)).toBe(401);
  expect(await statusOf(other)).toBe(200);
  expect(kept.response.destroyed).toBe(false);
});

it('a session does not last for years if the clock was wrong when it began', async () => {
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

it('wrong tokens are limited by address, while sessions go on, and logged once without the token', async () => {
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
  const refused = await bearer('wrong-bearer-5');
  expect(refused.status).toBe(429);
  expect(codeOf(refused.text)).toBe('TOO_MANY_WRONG_TOKENS');
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(50);
  const form = await post(web, '/login', { token: 'wrong-form-5' });
  expect(form.status).toBe(429);
  expect(form.headers['set-cookie']).toBeUndefined();
  expect(form.text).toMatch(/for \d+ s/);
  expect((await get(`${web.url}/api/status`, { headers: { cookie } })).status).toBe(200);
  // Behind a proxy, all readers have the address: the right token passes, for a scraper of figures and a person as well.
  expect((await bearer(token)).status).toBe(200);
  expect((await get(`${web.url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
  expect((await post(web, '/login', { token })).status).toBe(303);
  // Who sends no token is not limited.
  expect((await get(`${web.url}/api/status`)).status).toBe(401);

  clock.aheadMs += 60_000;
  expect((await bearer(token)).status).toBe(200);
  await web.stop();
  const lines = log.filter(({ msg }) => msg.startsWith('too many wrong tokens'));
  expect(lines).toEqual([expect.objectContaining({ address: '127.0.0.1', failures: 10 })]);
  expect(JSON.stringify(log)).not.toMatch(/right-and|wrong-(?:form|bearer)/);
});

it('wrong tokens count for an IPv6 network as for one address, and use little memory', () => {
  const warned: object[] = [];
  const quiet = { debug: () => {}, info: () => {}, error: () => {}, fatal: () => {} };
  const log = { ...quiet, warn: (fields: object) => void warned.push(fields) };
  const check = createTokenCheck(token, systemClock, log);
  for (let nth = 0; nth < 10; nth++) expect(check('wrong', `2001:db8:0:1::${nth}`)?.code).toBe('UNAUTHORIZED');
  expect(check('wrong', '2001:db8:0:1:ffff::1')?.code).toBe('TOO_MANY_WRONG_TOKENS');
  expect(check(token, '2001:db8:0:1:ffff::1')).toBeNull();
  expect(check('wrong', '2001:db8:0:2::1')?.code).toBe('UNAUTHORIZED');
  for (let nth = 0; nth < 10; nth++) check('wrong', '::ffff:192.0.2.1');
  expect(check('wrong', '192.0.2.1')?.code).toBe('TOO_MANY_WRONG_TOKENS');
  expect(warned).toHaveLength(2);
  // The addresses that came first are forgotten.
  for (let nth = 0; nth < 5_000; nth++) check('wrong', `10.${nth >> 16}.${(nth >> 8) & 255}.${nth & 255}`);
  expect(check('wrong', '192.0.2.1')?.code).toBe('UNAUTHORIZED');
});
