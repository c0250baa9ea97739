// @module-tag service
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createServer as createTcpServer, type LookupFunction, type Socket } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '@catchword/base/clock';
import { httpConnector } from '@catchword/base/http-connector';
import { type ProxySettings, proxyFor } from '@catchword/base/proxy';
import { publicLookup } from '@catchword/base/public-address';
import { Agent, request } from '@catchword/base/undici';
import { withDotEnv } from '@catchword/settings/environment';
import { createHttpTarget } from '@catchword/sink-kit/http-target';
import { makeCertificate } from '@catchword/testing/certificate';
import { startHttpProxy } from '@catchword/testing/http-proxy';
import { listen } from '@catchword/testing/listen';
import { sandboxFor } from '@catchword/testing/sandbox-for';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { createTransport, type Transport, type TransportSettings } from 'catchword-client/http/transport';
import { expect, it, onTestFinished, vi } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { receiver } from '../operate/scene.ts';
import { runHere } from '../support/in-process.ts';
import { settingsFor } from '../support/mirror.ts';

const BOTH = { httpsProxy: 'http://secure.proxy:1', httpProxy: 'http://plain.proxy:2' };
const USER = 'http://ada:p%40ssword@';
const BASIC = `Basic ${Buffer.from('ada:p@ssword').toString('base64')}`;

function chosen(target: string, settings: ProxySettings): string | undefined {
  return proxyFor(new URL(target), settings)?.name;
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

it.each<[string, ProxySettings, string | undefined]>([
  ['https://books.example', BOTH, 'secure.proxy:1'],
  ['http://books.example', BOTH, 'plain.proxy:2'],
  ['https://books.example', { httpProxy: BOTH.httpProxy }, 'plain.proxy:2'],
  ['http://books.example', { httpsProxy: BOTH.httpsProxy }, undefined],
  ['https://books.example', { httpsProxy: 'https://ada:secret@proxy' }, 'proxy:443'],
  ['https://books.example', {}, undefined],
])('the proxy of the target %s with %j is %s', (target, settings, expected) => {
  expect(chosen(target, settings)).toBe(expected);
});

it.each(['localhost', 'LOCALHOST:8080', '127.0.0.1', '127.3.2.1:80', '[::1]', '[::1]:8443'])(
  'the proxy of a target is none on loopback: %s',
  (host) => {
    expect([chosen(`https://${host}`, BOTH), chosen(`http://${host}/x`, BOTH)]).toEqual([undefined, undefined]);
  },
);

it.each([
  ['*', 'books.example', true],
  ['books.example', 'books.example', true],
  ['Books.Example', 'BOOKS.example', true],
  ['example', 'books.example', true],
  ['.example', 'books.example', true],
  ['*.example', 'books.example', true],
  ['ooks.example', 'books.example', false],
  ['other.example, books.example', 'books.example', true],
  ['other.example books.example', 'books.example', true],
  ['books.example:443', 'books.example', true],
  ['books.example:8443', 'books.example', false],
  ['books.example:8443', 'books.example:8443', true],
  ['10.1.2.3', '10.1.2.3', true],
  ['fd12::1', '[fd12::1]', true],
  ['fd12:0:0::0001', '[fd12::1]', true],
  ['[fd12::1]:443', '[fd12::1]', true],
  ['', 'books.example', false],
  [' , ', 'books.example', false],
])('the proxy of a target is none for NO_PROXY=%j and %s: %s', (noProxy, host, excepted) => {
  expect(chosen(`https://${host}`, { ...BOTH, noProxy }) === undefined).toBe(excepted);
});

const read = (environment: Record<string, string>) =>
  checkedSettings(withDotEnv(environment, temporaryDirectory()).environment, 'nothing');

it('the settings of proxies have names in lower case too, which take precedence, and need no scheme', () => {
  expect(read({ https_proxy: 'proxy:1', HTTPS_PROXY: 'proxy:2', HTTP_PROXY: 'http://proxy:3' })).toMatchObject({
    httpsProxy: 'http://proxy:1',
    httpProxy: 'http://proxy:3',
  });
  expect(read({ http_proxy: '', HTTP_PROXY: 'proxy', no_proxy: 'a' })).toMatchObject({
    httpProxy: 'http://proxy',
    noProxy: 'a',
  });
});

it.each([
  'socks5://ada:topsecret@proxy:1080',
  'http://ada:topsecret/2@proxy:3128',
  'http://ada:topsecret@proxy:3128/path',
  'http://ada:topsecret#@proxy:3128',
  'ada:topsecret@:3128',
])('the settings of proxies are invalid, and not repeated: %s', (given) => {
  const error = expect.objectContaining({
    code: 'CONFIG_INVALID',
    setting: 'HTTPS_PROXY',
    message: expect.not.stringContaining('topsecret'),
    hint: expect.stringMatching(/^It must be an address such as http:\/\/proxy/),
  });
  expect(() => read({ HTTPS_PROXY: given })).toThrow(error);
});

it('the settings of proxies show host and port only', async () => {
  const environment = { HTTPS_PROXY: `${USER}proxy.example:3128`, http_proxy: 'ada:topsecret@proxy.example' };
  const { stdout } = await runHere(['settings'], environment, temporaryDirectory());
  expect(stdout).toMatch(/HTTPS_PROXY +proxy\.example:3128 .*\nHTTP_PROXY +proxy\.example:80 /);
  expect(stdout).not.toMatch(/ada|ssword|secret/);
});

interface Tunnelling {
  /** The answer of the proxy; null: none. */
  readonly refuse?: number | null;
  /** Whether the proxy speaks TLS. */
  readonly isSecure?: boolean;
  readonly timeout?: number;
  readonly lookup?: LookupFunction;
  readonly host?: string;
}

/** An agent that trusts a server of this machine, and connects to it through a proxy. */
async function tunnelled({ refuse, isSecure = false, host = '127.0.0.1', ...more }: Tunnelling = {}) {
  const files = await makeCertificate(temporaryDirectory());
  const [cert, key] = [readFileSync(files.cert, 'utf8'), readFileSync(files.key, 'utf8')];
  const server = createServer({ cert, key }, ({ url, headers }, response) => {
    response.end(`${url} ${headers.host} ${headers['proxy-authorization']}`);
  });
  const port = await listen(server);
  const running = await startHttpProxy(port, refuse, isSecure ? { cert, key } : undefined);
  const httpsProxy = `${isSecure ? USER.replace('http:', 'https:') : USER}${running.name}`;
  const proxy = proxyFor(new URL('https://books.example'), { httpsProxy });
  const options = { ca: cert, timeout: 30_000, ...more };
  const agent = new Agent({ connections: 1, connect: httpConnector(options, undefined, proxy) });
  onTestFinished(() => agent.destroy());
  const get = async () => {
    const asked = { origin: `https://${host}:${port}`, path: '/x', method: 'GET' as const, headers: {} };
    return await (await request(agent, asked, proxy)).body.text();
  };
  return { get, asked: running.asked, name: running.name, host: `${host}:${port}` };
}

it.each([false, true])(
  'https goes through one tunnel, whose credentials the target does not get: TLS %s',
  async (isSecure) => {
    const { get, asked, host } = await tunnelled({ isSecure });
    expect([await get(), await get()]).toEqual([`/x ${host} undefined`, `/x ${host} undefined`]);
    expect(asked).toEqual([{ line: `CONNECT ${host}`, authorization: BASIC }]);
  },
);

it.each([
  [407, 'USER:PASSWORD', false],
  [403, 'NO_PROXY', false],
  [502, 'NO_PROXY', true],
])('https fails if the proxy answers %i', async (status, hint, retryable) => {
  const { get, name, host } = await tunnelled({ refuse: status });
  await expect(get()).rejects.toMatchObject({
    code: 'SOURCE_UNAVAILABLE',
    message: `the proxy ${name} answered ${status} when asked for ${host}`,
    setting: 'HTTPS_PROXY',
    hint: expect.stringContaining(hint),
    retryable,
  });
});

it('https fails if the proxy does not answer', async () => {
  const { get, name } = await tunnelled({ refuse: null, timeout: 100 });
  await expect(get()).rejects.toMatchObject({
    message: `the proxy ${name} cannot be reached or broke off (it does not answer)`,
    retryable: true,
  });
});

it('https asks the proxy only after the addresses of the target were judged', async () => {
  const lookup = publicLookup((host) => new Error(`${host} is private`));
  const { get, asked } = await tunnelled({ host: 'localhost', lookup });
  await expect(get()).rejects.toThrow('localhost is private');
  expect(asked).toEqual([]);
});

function transportTo(more: Partial<TransportSettings>): Transport {
  const headers = { apiKeyHeader: 'X-Key', accessTokenHeader: 'X-Token' };
  const settings = {
    baseUrl: 'https://books.example',
    apiKey: 'KEY',
    ...headers,
    requestTimeoutMs: 6e4,
    concurrency: 1,
  };
  const transport = createTransport({ ...settings, ...more }, () => undefined, systemClock);
  onTestFinished(() => transport.close());
  return transport;
}

function send(transport: Transport, signal = new AbortController().signal) {
  const how = { method: 'GET', format: 'json', token: false, repeatable: true, path: '/x' } as const;
  return transport.send({ ...how, body: undefined, secrets: [] }, signal);
}

it('the source is read through the proxy, by its whole address', async () => {
  const sandbox = await sandboxFor({ items: 30 });
  const { name, asked } = await startHttpProxy(portOf(sandbox.url));
  const directory = temporaryDirectory();
  const settings = settingsFor('http://books.example', join(directory, 'catalog.db'), {
    http_proxy: `${USER}${name}`,
    CATCHWORD_SINK_SHOP: 'webhook+http://shop.example/path-secret#allow=private',
    CATCHWORD_SINK_OWN: 'webhook+http://127.0.0.1:1/#allow=private',
    NO_PROXY: 'shop.example',
  });
  expect(await runHere(['sync'], settings, directory)).toMatchObject({ code: 0 });
  expect(asked[0]).toEqual({
    line: expect.stringMatching(/^GET http:\/\/books\.example\/v4\/products\?/),
    authorization: BASIC,
  });
  const { stdout } = await runHere(['doctor'], settings, directory);
  expect(stdout).toContain(`ok     proxy      the service: ${name} (HTTP_PROXY)\n`);
  expect(stdout).toMatch(/ok {5}proxy {6}sink shop: none\n/);
  expect(stdout).toMatch(/ok {5}proxy {6}sink own: none\n/);
  expect(stdout).toMatch(/ok {5}source {5}30 products/);
  expect(stdout).not.toMatch(/ssword|path-secret/);
});

it('the source is read directly on loopback, whatever the proxy', { tags: ['slow'] }, async () => {
  const sandbox = await sandboxFor({ items: 3 });
  const { url, asked } = await startHttpProxy(1);
  const directory = temporaryDirectory();
  const more = { HTTP_PROXY: url, HTTPS_PROXY: url };
  const settings = settingsFor(sandbox.url, join(directory, 'catalog.db'), more);
  expect(await runHere(['sync'], settings, directory)).toMatchObject({ code: 0 });
  expect(await runHere(['demo'], more, temporaryDirectory())).toMatchObject({ code: 0 });
  expect(asked).toEqual([]);
});

it.each([
  ['http://books.example', 407, 'answered 407 when asked for http://books.example'],
  ['https://books.example', 407, 'answered 407 when asked for books.example:443'],
  ['https://books.example', undefined, 'cannot be reached or broke off (ECONNREFUSED)'],
])('the error of the source %s names the proxy that answers %s', async (address, status, problem) => {
  const { name } = await startHttpProxy(1, status ?? 200);
  const at = status === undefined ? '127.0.0.1:1' : name;
  const directory = temporaryDirectory();
  const more = { HTTP_PROXY: `${USER}${at}`, LOG_LEVEL: 'debug' };
  const ended = await runHere(['sync'], settingsFor(address, join(directory, 'a.db'), more), directory);
  expect(ended.stderr).toContain(`the proxy ${at} ${problem}`);
  expect(ended.stderr).toMatch(/HTTP_PROXY/);
  expect(ended.stderr + ended.stdout).not.toMatch(/ssword|YWRhO/);
});

it('the source names the proxy if it does not answer', async () => {
  const { url, name } = await startHttpProxy(1, null);
  const transport = transportTo({ httpsProxy: url, requestTimeoutMs: 100 });
  const message = `https://books.example through the proxy ${name} did not answer within 0.1 s`;
  await expect(send(transport)).rejects.toMatchObject({ code: 'SOURCE_TIMEOUT', message });
});

it.each(['http', 'https'])('the source closes connections over %s that do not come about', async (scheme) => {
  const arrived: Socket[] = [];
  const silent = createTcpServer((socket) => void arrived.push(socket.on('error', () => {}).resume()));
  const address = `127.0.0.1:${await listen(silent)}`;
  for (const more of [{ baseUrl: `https://${address}` }, { httpsProxy: `${scheme}://${address}` }]) {
    const transport = transportTo({ ...more, requestTimeoutMs: 3_600_000 });
    const stopping = new AbortController();
    const sent = expect(send(transport, stopping.signal)).rejects.toMatchObject({ code: 'INTERRUPTED' });
    const socket = await vi.waitUntil(() => arrived.pop(), { timeout: 30_000 });
    const closed = once(socket, 'close');
    stopping.abort();
    await sent;
    await transport.close();
    await closed;
  }
});

it('the source does not show credentials that the proxy repeats', async () => {
  const { name } = await startHttpProxy(1, 400);
  const transport = transportTo({ baseUrl: 'http://books.example', httpProxy: `${USER}${name}` });
  await expect(send(transport)).rejects.toThrow('[secret]');
});

const never = new AbortController().signal;

it('webhooks, channels and heartbeats go through the proxy', async () => {
  const { url, received } = await receiver();
  const { name, asked } = await startHttpProxy(portOf(url));
  const sandbox = await sandboxFor({ items: 3 });
  const directory = temporaryDirectory();
  const settings = settingsFor(sandbox.url, join(directory, 'catalog.db'), {
    HTTP_PROXY: name,
    CATCHWORD_SINK_SHOP: 'webhook+http://shop.example/sink#allow=private',
    CATCHWORD_NOTIFY_TEAM: 'slack+http://team.example/channel#allow=private',
    CATCHWORD_HEARTBEAT_URL: 'http://beat.example/ping#allow=private',
  });
  expect(await runHere(['sync'], settings, directory)).toMatchObject({ code: 0 });
  expect(await runHere(['notify', 'test', 'team'], settings, directory)).toMatchObject({ code: 0 });
  const [sink] = checkedSettings(settings, 'nothing').sinks.map((one) => sinkConfig(one).make());
  expect(await (await sink)?.check(never)).toContain(`its proxy ${name} can be reached; no request was sent`);
  const lines = asked.map(({ line }) => line);
  expect(lines).toEqual([
    'GET http://beat.example/ping/start',
    'GET http://beat.example/ping',
    'POST http://team.example/channel',
  ]);
  expect(received.map(({ headers }) => headers.host)).toEqual(['beat.example', 'beat.example', 'team.example']);
});

const target = (url: string, httpsProxy: string) =>
  createHttpTarget({ url: new URL(url), timeoutMs: 5_000, isPrivateAllowed: false, proxies: { httpsProxy } });

it('webhooks, channels and heartbeats are sent to a proxy in a private network, but not through it to a private address', async () => {
  const { url, asked } = await startHttpProxy(1, 403);
  await expect(target('https://10.1.2.3/', url).tryToConnect(never)).rejects.toThrow('is a private address');
  expect(asked).toEqual([]);
  await expect(target('https://93.184.216.34/', url).tryToConnect(never)).rejects.toThrow('answered 403');
  expect(asked.map(({ line }) => line)).toEqual(['CONNECT 93.184.216.34:443']);
});

it('webhooks, channels and heartbeats may have an address in IPv6, and so may the proxy', async () => {
  const { asked, port } = await startHttpProxy(1, 403, undefined, '::1');
  const hook = target('https://[2606:2800:220:1::1]/', `http://[::1]:${port}`);
  await expect(hook.tryToConnect(never)).rejects.toThrow(`the proxy [::1]:${port} answered 403`);
  expect(asked.map(({ line }) => line)).toEqual(['CONNECT [2606:2800:220:1::1]:443']);
});

it('webhooks, channels and heartbeats need a name that is known here, unless private addresses are allowed', async () => {
  const { url, asked } = await startHttpProxy(1, 403);
  await expect(target('https://hook.invalid/', url).tryToConnect(never)).rejects.toThrow(
    /^hook\.invalid cannot be looked up here \(E\w+\), so its addresses cannot be judged; #allow=private leaves that/,
  );
  expect(asked).toEqual([]);
});

it('webhooks, channels and heartbeats name the proxy and its setting in errors', async () => {
  const { url, name } = await startHttpProxy(1, 407);
  const hook = target('https://93.184.216.34/', url.replace('http://', USER));
  const agent = hook.connect();
  onTestFinished(() => agent.destroy());
  await expect(hook.post(agent, { id: '1', contentType: 'text/plain', body: '' }, never)).rejects.toMatchObject({
    failure: 'misconfigured',
    message: `the proxy ${name} answered 407 when asked for 93.184.216.34:443. Set HTTPS_PROXY to http://USER:PASSWORD@HOST:PORT, with a user that the proxy accepts.`,
  });
});
