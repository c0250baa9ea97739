import { expect, it } from 'vitest';
import { FORM, HTML, post, signIn, token } from './browser-requests.ts';
import { emptyMirror, serve, serveFilled } from './place.ts';
import { get, openReader } from './reader.ts';

const PREFIX = { 'x-forwarded-prefix': '/shop/mirror' };

/** The addresses in markup that a browser would ask for. */
function addressesIn(text: string): string[] {
  return [...text.matchAll(/ (?:href|src|action|data-live)="(\/[^"]*)"/g)].map(([, address = '']) => address);
}

it.each(['/', '/runs', '/runs/1', '/products', '/products?q=a', '/changes', '/sinks', '/actions', '/nothing'])(
  'a page under the path of a proxy leads to nothing outside of that path: %s',
  async (path) => {
    const { web } = await serveFilled({ items: 30 });
    const headers = { ...HTML, ...PREFIX };
    const local = addressesIn((await get(`${web.url}${path}`, { headers })).text);
    expect(local.length).toBeGreaterThan(5);
    expect(local.filter((one) => !one.startsWith('/shop/mirror/'))).toEqual([]);
    const direct = addressesIn((await get(`${web.url}${path}`, { headers: HTML })).text);
    expect(direct.map((one) => `/shop/mirror${one}`)).toEqual(local);
  },
);

it('a live section under the path of a proxy has the links of that path, and none of it without a proxy', async () => {
  const { web } = await serveFilled({ items: 30 });
  for (const [headers, link] of [
    [PREFIX, 'href="/shop/mirror/runs/1"'],
    [{}, 'href="/runs/1"'],
  ] as const) {
    const reader = await openReader(`${web.url}/live/runs`, { accept: 'text/event-stream', ...headers });
    const { data = '{}' } = await reader.until(
      ({ event, data: sent }) => event === 'section' && sent?.includes('runs/1') === true,
    );
    expect((JSON.parse(data) as { html: string }).html).toContain(link);
  }
});

it.each(['//other.example', 'https://other.example', '/a"b', '/a/../b', '/a//b', 'a', '/<b>', '/\\other.example'])(
  'a page does not take %s for the path of a proxy',
  async (prefix) => {
    const { web } = await serve(emptyMirror());
    const { text } = await get(`${web.url}/`, { headers: { ...HTML, 'x-forwarded-prefix': prefix } });
    expect(addressesIn(text)).toContain('/runs');
  },
);

it('a session under the path of a proxy is begun, used and ended there', async () => {
  const { web } = await serveFilled({ items: 1 }, { token });
  const asked = await get(`${web.url}/runs`, { headers: { ...HTML, ...PREFIX } });
  expect([asked.status, asked.headers.location]).toEqual([303, '/shop/mirror/login?back=%2Fruns']);
  const own = { ...PREFIX, origin: web.url };
  const begun = await post(web, '/login', { token, back: '/runs' }, own);
  expect(begun.headers.location).toBe('/shop/mirror/runs');
  expect(begun.headers['set-cookie']?.[0]).toContain('; Path=/shop/mirror;');
  const cookie = await signIn(web);
  const referer = `${web.url}/shop/mirror/runs?before=9`;
  const decided = await post(web, '/actions', { action: 'start', target: 'full' }, { ...own, cookie, referer });
  expect(decided.headers.location).toBe('/shop/mirror/runs?before=9#decision-1');
  expect((await post(web, '/logout', {}, { ...own, cookie })).headers.location).toBe('/shop/mirror/login');
});

it.each([
  ['/shop/mirror', '/shop/mirror/'],
  ['/shop/mirror/', '/shop/mirror/'],
  ['/shop/mirrors', '/shop/mirror/shop/mirrors'],
])('a decision under the path of a proxy returns to the page it came from: %s', async (from, to) => {
  const { web } = await serveFilled({ items: 1 });
  const headers = { ...PREFIX, origin: web.url, referer: `${web.url}${from}` };
  const { location } = (await post(web, '/actions', { action: 'start', target: 'full' }, headers)).headers;
  expect(location).toBe(`${to}#decision-1`);
});

it.each([
  ['proto=https', true],
  ['for=192.0.2.60;proto=https;by=203.0.113.43', true],
  ['For="[2001:db8::1]:4711"; Proto="HTTPS"', true],
  ['proto=https, for=10.0.0.1;proto=http', true],
  ['for=10.0.0.1;proto=http, proto=https', false],
  ['host=proto=https.example;proto=http', false],
  ['for=10.0.0.1', false],
])('the cookie of a session is for TLS alone if a proxy says "Forwarded: %s": %s', async (forwarded, isSecure) => {
  const { web } = await serve(emptyMirror(), { token });
  const { headers } = await post(web, '/login', { token }, { origin: web.url, forwarded });
  expect(headers['set-cookie']?.[0]?.includes('; Secure;')).toBe(isSecure);
});

it('a path may end with a slash, as monitors write it', async () => {
  const { web } = await serveFilled({ items: 1 }, { token });
  expect(await get(`${web.url}/healthz/`)).toMatchObject({ status: 200, text: '{"alive":true}' });
  expect((await get(`${web.url}/readyz/`)).status).toBe(401);
  const headers = { authorization: `Bearer ${token}` };
  for (const path of ['/readyz/', '/api/status/', '/runs/', '/api/changes/?limit=1'])
    expect((await get(`${web.url}${path}`, { headers })).status, path).toBe(200);
});

const SHOP = 'https://shop.example';

it('a page of a named origin may read the stream of changes, and nothing else', async () => {
  const { web, stream } = await serveFilled({ items: 3 }, { token, httpOrigins: [SHOP] });
  const origin = { origin: SHOP, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' };
  const asks = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' };
  const preflight = await get(stream, { method: 'OPTIONS', headers: { ...origin, ...asks } });
  expect(preflight).toMatchObject({
    status: 204,
    text: '',
    headers: { 'access-control-allow-origin': SHOP, 'access-control-allow-headers': 'authorization, last-event-id' },
  });
  const reader = await openReader(`${stream}?after=0`, { ...origin, authorization: `Bearer ${token}` });
  expect(reader.response.headers).toMatchObject({ 'access-control-allow-origin': SHOP });
  expect(reader.response.headers).not.toHaveProperty('access-control-allow-credentials');
  expect(await reader.events(3)).toHaveLength(3);
  const wrong = await get(stream, { headers: { ...origin, authorization: 'Bearer wrong' } });
  expect(wrong).toMatchObject({ status: 401, headers: { 'access-control-allow-origin': SHOP } });
  const cookie = await signIn(web);
  const elsewhere: [string, string, Record<string, string>][] = [
    ['GET', '/api/changes', origin],
    ['OPTIONS', '/api/changes', origin],
    ['GET', '/', { ...origin, cookie }],
    ['POST', '/actions', { ...origin, ...FORM, cookie }],
    ['POST', '/api/changes/stream', { ...origin, cookie }],
    ['GET', '/api/changes/stream', { ...origin, cookie, origin: 'https://other.example' }],
    ['OPTIONS', '/api/changes/stream', { ...origin, ...asks, origin: 'null' }],
  ];
  for (const [method, path, headers] of elsewhere) {
    const refused = await get(`${web.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
    expect(refused.status, `${method} ${path}`).toBeGreaterThanOrEqual(403);
    expect(refused.headers).not.toHaveProperty('access-control-allow-origin');
  }
});

it('a page of another site may not read the stream of changes by default', async () => {
  const { stream } = await serve(emptyMirror());
  const headers = { origin: SHOP, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' };
  expect(await get(stream, { headers })).toMatchObject({ status: 403 });
  expect((await get(stream, { method: 'OPTIONS', headers })).headers).not.toHaveProperty('access-control-allow-origin');
});
