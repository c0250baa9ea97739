import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { distrustOf } from '@catchword/base/certificate';
import { causesOf } from '@catchword/base/connection-causes';
import { explainMissing } from '@catchword/base/missing-package';
import { type Certificate, makeCertificate } from '@catchword/testing/certificate';
import { listen, serveHttp } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { beforeAll, expect, it } from 'vitest';
import { runHere } from '../support/in-process.ts';

/* Where several causes are possible, the message says what was seen, and the hint names the two likeliest. */

const SETTINGS = {
  CATCHWORD_API_KEY: 'SANDBOXKEY',
  CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
  CATCHWORD_RATE_LIMIT: 'off',
  LOG_LEVEL: 'silent',
};

async function said(url: string, more: Record<string, string> = {}, args: readonly string[] = ['catalog']) {
  const settings = { ...SETTINGS, CATCHWORD_BASE_URL: url, ...more };
  return (await runHere(args, settings, temporaryDirectory())).stderr;
}

let certificate: Certificate;
beforeAll(async () => {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-causes-'));
  certificate = await makeCertificate(directory);
  return () => rmSync(directory, { recursive: true });
});

function tlsServer(): Server {
  const { cert, key } = certificate;
  return createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }).on('tlsClientError', () => {});
}

/** Answers the first bytes of each connection so; undefined: ends it. */
function raw(answer?: string): Server {
  return createServer((socket) => {
    socket.on('error', () => {}).once('data', () => (answer === undefined ? socket.destroy() : socket.end(answer)));
  });
}

it.each<[string, 'http' | 'https', () => Server, RegExp, RegExp]>([
  ['speaks TLS', 'http', tlsServer, /UND_ERR_SOCKET|ECONNRESET/, /firewall or proxy .* says http for a port of https/],
  [
    'does not speak TLS',
    'https',
    () => raw('HTTP/1.1 400 x\r\n\r\n'),
    /ERR_SSL_WRONG/,
    /may not speak TLS.* or it demands/,
  ],
  ['closes connections', 'http', () => raw(), /UND_ERR_SOCKET|ECONNRESET/, /closed the connection; or/],
  [
    'speaks SOCKS',
    'http',
    () => raw('\u0005\u0000'),
    /not valid HTTP/,
    /such as one of TLS or SOCKS.* Ask the operator of the service, or of a proxy before it/,
  ],
])('a port that %s, asked by %s, is named with its two likeliest causes', async (_, scheme, server, seen, causes) => {
  const stderr = await said(`${scheme}://127.0.0.1:${await listen(server())}`);
  expect(stderr).toMatch(seen);
  expect(stderr).toMatch(causes);
  expect(stderr).toContain('CATCHWORD_BASE_URL');
});

it('an answer whose headers are too long has no hint about another kind of server', async () => {
  const server = raw(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
  const stderr = await said(`http://127.0.0.1:${await listen(server)}`);
  expect(stderr).toMatch(/headers exceed 16 kB.* Ask the operator of the service, or of a proxy/);
  expect(stderr).not.toMatch(/SOCKS/);
});

it('a certificate for another host has a hint about names, not about authorities', () => {
  expect(distrustOf('ERR_TLS_CERT_ALTNAME_INVALID')?.text).toMatch(/another host than the certificate.* or a proxy/);
  expect(distrustOf('ERR_TLS_CERT_ALTNAME_INVALID')?.text).not.toContain('NODE_EXTRA_CA_CERTS');
});

it('a redirect that names no address is not shown with an address', async () => {
  const url = await serveHttp((_request, response) => void response.writeHead(302).end());
  expect(await said(url)).toContain(`${url} redirects without an address (302); redirects are not followed`);
});

it.each([
  ['http://127.0.0.1:1', /ECONNREFUSED/, /may name another port, or the program there may not run/],
  ['http://catchword.invalid', /ENOTFOUND|EAI_AGAIN/, /typing error in CATCHWORD_BASE_URL; or .* DNS server/],
])('an address %s that cannot be reached has two causes', async (url, seen, causes) => {
  const stderr = await said(url);
  expect(stderr).toMatch(seen);
  expect(stderr).toMatch(causes);
});

it.each([
  ['EHOSTUNREACH', /a firewall may block it, or \{setting\}/],
  ['UND_ERR_CONNECT_TIMEOUT', /a firewall may block it, or \{setting\}/],
  ['EMFILE', /ulimit -n/],
  ['EPROTO', /may not speak TLS/],
  ['EUNKNOWN', /^Check \{setting\} and the network/],
])('the code %s of a connection has its causes', (code, causes) => {
  expect(causesOf(code)).toMatch(causes);
});

it.each<[number, Record<string, string>, RegExp]>([
  [503, {}, /or a proxy before it, is in trouble, or cannot keep up/],
  [504, {}, /or a proxy before it, is in trouble, or cannot keep up/],
  [431, {}, /CATCHWORD_ACCESS_TOKEN and the API key: the headers are longer/],
  [413, {}, /larger than the service, or a proxy, accepts/],
  [403, {}, /access token; or a firewall refuses/],
  [404, {}, /at this address, or hides it from this API key/],
  [410, {}, /at this address, or hides it from this API key/],
  [302, { location: '/login' }, /its path included\. If this leads to a sign-in, check the API key/],
  [422, {}, /CATCHWORD_PER_PAGE, and the names and values of the other parameters/],
  [304, {}, /the service and the caches in between/],
])('the answer %i of a catalog has a hint with two causes', async (status, headers, causes) => {
  const url = await serveHttp((_request, response) => void response.writeHead(status, headers).end());
  const stderr = await said(url);
  expect(stderr).toMatch(causes);
});

it('a service that does not answer in time may be slow, or the network in trouble', async () => {
  const url = await serveHttp(() => {});
  const stderr = await said(url, { CATCHWORD_REQUEST_TIMEOUT: '100ms' });
  expect(stderr).toMatch(/did not answer within 0.1 s/);
  expect(stderr).toMatch(/may be slow: raise CATCHWORD_REQUEST_TIMEOUT.* Or it, or the network, is in trouble/);
});

it('a key with a scheme of two words is shown with its header', async () => {
  const url = await serveHttp((_request, response) => void response.writeHead(401).end());
  const stderr = await said(url, { CATCHWORD_API_KEY: 'Api-Key abc' });
  expect(stderr).toContain('behind the word Api-Key');
  expect(stderr).not.toContain('abc');
  const inItsHeader = { CATCHWORD_API_KEY: 'Api-Key abc', CATCHWORD_API_KEY_HEADER: 'Authorization' };
  expect(await said(url, inItsHeader)).toMatch(/sent in the header Authorization\.$/m);
});

it.each([
  ['a disk that is mounted with noexec', 'x.node: failed to map segment from shared object', /mounted with noexec/],
  [
    'a file that this user may not read',
    'x.node: cannot open shared object file: Permission denied',
    /may not read it/,
  ],
])('SQLite on %s has a hint that names it', (_, message, cause) => {
  const error = Object.assign(new Error(message), { code: 'ERR_DLOPEN_FAILED' });
  expect(explainMissing(error)).toMatchObject({
    code: 'PACKAGE_MISSING',
    hint: expect.stringMatching(cause) as string,
  });
});

it('a package of SQLite that has no binary may have been copied', () => {
  const error = explainMissing(new Error('Could not locate the bindings file. Tried: ...'));
  expect(error).toMatchObject({
    hint: expect.stringMatching(/install script, or the installation was copied/) as string,
  });
});

it.each([
  [
    'below a file',
    (place: string) => join(place, 'file', 'catalog.db'),
    /ENOTDIR.*\n.*typing error in the path, and at its disk/,
  ],
  [
    'with a name that is too long',
    (place: string) => join(place, 'x'.repeat(300)),
    /ENAMETOOLONG.*\n.*typing error in the path/,
  ],
])('a mirror %s is not called a matter of rights', async (_, at, causes) => {
  const place = temporaryDirectory();
  writeFileSync(join(place, 'file'), '');
  const stderr = await said('http://127.0.0.1:1', { CATCHWORD_DB: at(place) }, ['sync']);
  expect(stderr).toMatch(causes);
  expect(stderr).not.toMatch(/owner|right to/);
});
