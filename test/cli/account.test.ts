import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { golden, KEY, serve, TOKEN } from '../../packages/client/test/connection.ts';
import { run } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { expectFailure } from './failure.ts';

const FRESH = 'freshtokenthatmustnotshow';
const VERIFIED = `<credentials><credential reference="me" guid="G" access-token="${FRESH}" email=""/></credentials>`;
const NAMES = ['--first-name', 'Ada', '--last-name', 'Abernathy'];

/** A service, and a function that runs a command against it. */
async function against(reply: Parameters<typeof serve>[0] = () => '') {
  const server = await serve(reply);
  const directory = temporaryDirectory();
  const address = { CATCHWORD_BASE_URL: server.url, CATCHWORD_API_KEY: KEY, CATCHWORD_RATE_LIMIT: 'off' };
  const env = { ...address, CATCHWORD_ACCESS_TOKEN: TOKEN };
  const catchword = (args: readonly string[], more = {}) => runHere(args, { ...env, ...more }, directory);
  const withStdin = (args: readonly string[], stdin: string | Buffer) => run(args, env, directory, stdin);
  return { server, directory, catchword, withStdin };
}

/** An email user, without its password. */
const ADA = ['user', 'create', '--email', 'ada@example.com', ...NAMES];

// @rule 4.2-3
it('licenses prints a table, or JSON', async () => {
  const { server, catchword } = await against(() => golden('licenses-two.xml'));
  const shown = await catchword(['licenses', '--sku', '9780000000026', '--type', 'all']);
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.stdout).toMatch(
    /9780000000026 +downloadable +Thu, 10 Mar 2016 22:14:54 GMT \(expired\) +Elements of Hydrology/,
  );
  expect(shown.stdout).toContain('3 licenses in the account, 1 accessible here\n');
  expect(server.asked[0]?.url).toBe('/v3/licenses.xml?sku=9780000000026&license_type=all');
  const json = await catchword(['licenses', '--json']);
  expect(JSON.parse(json.stdout)).toMatchObject({
    total: 3,
    licenses: [{ type: 'online' }, { type: 'downloadable' }],
  });
});

it('licenses prints the expiration as the service wrote it, and both forms with --json', async () => {
  const license = '<license sku="9780000000026" type="online" expiration="2030-01-01"/>';
  const { catchword } = await against(() => `<licenses>${license}</licenses>`);
  expect((await catchword(['licenses'])).stdout).toMatch(/9780000000026 +online +2030-01-01 /);
  const json = await catchword(['licenses', '--json']);
  const expiresAt = Date.parse('2030-01-02T00:00:00Z');
  expect(JSON.parse(json.stdout)).toMatchObject({ licenses: [{ expiration: '2030-01-01', expiresAt }] });
});

it('licenses says that no token is set before it sends anything', async () => {
  const { server, catchword } = await against(() => golden('licenses-none.xml'));
  const ended = await catchword(['licenses'], { CATCHWORD_ACCESS_TOKEN: '' });
  expectFailure(ended, 2, /needs an access token, and none is set \[CONFIG_INVALID\]\n.*CATCHWORD_ACCESS_TOKEN/);
  expect(server.asked).toEqual([]);
});

it('licenses trims the SKU, and prints that nothing is licensed', async () => {
  const { server, catchword } = await against(() => golden('licenses-none.xml'));
  const ended = await catchword(['licenses', '--sku', ' 9788074089008\t']);
  expect(ended).toMatchObject({ code: 0, stdout: '9788074089008 is not licensed\n' });
  expect(server.asked[0]?.url).toBe('/v3/licenses.xml?sku=9788074089008');
  for (const wrong of [
    ['--sku', ' '],
    ['--type', 'paper'],
  ])
    expect(await catchword(['licenses', ...wrong])).toMatchObject({ code: 2, stdout: '' });
  expect(server.asked).toHaveLength(1);
  expect((await catchword(['licenses'])).stdout).toBe('the account holds no license\n');
});

it('licenses reports an error inside a 200', async () => {
  const { catchword } = await against(() => golden('error-601.xml'));
  const ended = await catchword(['licenses']);
  expectFailure(ended, 2, /SERVICE_TOKEN.*\nhint .*CATCHWORD_USER_REFERENCE/);
  expect(ended.stderr).not.toContain(TOKEN);
});

it('user create creates a reference user', async () => {
  const { server, catchword } = await against(() => golden('user-reference-response.xml'));
  const names = ['--first-name', 'Élodie', '--last-name', 'Dubois & Fils'];
  const ended = await catchword(['user', 'create', '--reference', 'pupil-7', ...names]);
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expect(ended.stdout).toContain('guid: 5N8C3DGK7Q2M9XW4TZ1B\nreference: pupil-7\n');
  expect(server.asked[0]?.body).toBe(golden('user-reference-request.xml'));
});

it('user create takes the password from the environment', async () => {
  const { server, catchword } = await against(() => golden('user-full-response.xml'));
  expectFailure(await catchword(ADA), 2, 'CATCHWORD_USER_PASSWORD');
  expect(server.asked).toEqual([]);
  const ended = await catchword([...ADA, '--json'], { CATCHWORD_USER_PASSWORD: 'correct <horse>' });
  expect(JSON.parse(ended.stdout)).toMatchObject({ guid: '1B5N8C3DGK7Q2M9XW4TZ', email: 'ada@example.com' });
  expect(server.asked[0]?.body).toBe(golden('user-full-request.xml'));
});

it('user create takes the password from stdin', async () => {
  const { server, withStdin } = await against(() => golden('user-full-response.xml'));
  const ended = await withStdin([...ADA, '--password-stdin'], 'correct <horse>\n');
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expect(server.asked[0]?.body).toBe(golden('user-full-request.xml'));
});

it('user create rejects a password that is not UTF-8', async () => {
  const { server, withStdin } = await against();
  const ended = await withStdin([...ADA, '--password-stdin'], Buffer.from('p\xe4ssword', 'latin1'));
  expectFailure(ended, 2, 'the password on stdin: it is not UTF-8');
  expect(ended.stderr).not.toContain('ssword\n');
  expect(server.asked).toEqual([]);
});

it('user create prints a user without control characters', async () => {
  const { catchword } = await against(() => '<user><guid>G&#x9b;2J</guid><reference>me</reference></user>');
  const ended = await catchword(['user', 'create', '--reference', 'me', ...NAMES]);
  expect(ended.stdout).toContain('guid: G 2J\nreference: me\n');
});

it.each([
  ['password', /CATCHWORD_USER_PASSWORD/],
  ['Password', /CATCHWORD_USER_PASSWORD/],
  ['reference', /--reference/],
  ['guid', /Omit it/],
  ['ACCESS_TOKEN', /Omit it/],
])('user create rejects %s as --field', async (name, hint) => {
  const { server, catchword } = await against();
  const ended = await catchword(['user', 'create', '--reference', 'me', ...NAMES, '--field', `${name}=topsecret`]);
  expectFailure(ended, 2, hint);
  expect(ended.stderr).not.toContain('topsecret');
  expect(server.asked).toEqual([]);
});

it('user create says in its help which options are required', async () => {
  const { catchword } = await against();
  const { stdout } = await catchword(['user', 'create', '--help']);
  expect(stdout).toContain('Required: --first-name, --last-name, and either --reference or --email with a password.');
  expect(stdout).toMatch(/--first-name <name> +first name of the user \(required\)/);
  const { stderr, code } = await catchword(['user', 'create', '--reference', 'a']);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/firstName: missing.*lastName: missing/)]);
});

it('user create sends what was not seen with --force', async () => {
  const { server, catchword } = await against(() => golden('user-reference-response.xml'));
  const ended = await catchword(['user', 'create', '--reference', 'a', '--email', 'b', '--force'], {
    CATCHWORD_USER_PASSWORD: 'correct <horse>',
  });
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expect(server.asked[0]?.body).toContain(
    '<user><reference>a</reference><email>b</email><password>correct &lt;horse&gt;</password></user>',
  );
});

it('user create requires no password with --force', async () => {
  const { server, catchword } = await against(() => golden('user-reference-response.xml'));
  expect(await catchword(['user', 'create', '--email', 'b', '--force'])).toMatchObject({ code: 0, stderr: '' });
  expect(server.asked[0]?.body).toContain('<user><email>b</email></user>');
});

it('user create requires either a reference or an email', async () => {
  const { catchword } = await against();
  for (const args of [[], ['--reference', 'a', '--email', 'b']]) {
    expectFailure(await catchword(['user', 'create', ...args, ...NAMES]), 2, 'either a reference or an email');
  }
});

it('user get prints a user', async () => {
  const { server, catchword } = await against(() => golden('user-reference-response.xml'));
  const ended = await catchword(['user', 'get', 'Pupil-7@example.com']);
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  expect(ended.stdout).toContain('guid: 5N8C3DGK7Q2M9XW4TZ1B\nreference: pupil-7\n');
  expect(server.asked.map(({ method, url }) => `${method} ${url}`)).toEqual([
    'GET /v3/users.xml/Pupil-7%40example.com',
  ]);
  expect(JSON.parse((await catchword(['user', 'get', 'pupil-7', '--json'])).stdout)).toMatchObject({
    reference: 'pupil-7',
  });
});

it('user get exits with 1 for an unknown user', async () => {
  const { catchword } = await against(() => ({ status: 404, body: golden('error-474.xml') }));
  expectFailure(await catchword(['user', 'get', 'x'.repeat(300)]), 1, 'SERVICE_UNKNOWN_USER');
});

const service = () => against(({ url }) => (url.includes('reset_access') ? '' : VERIFIED));
const RESET = ['user', 'reset-access'];

it('user reset-access stores the new token in its file and does not print it', async () => {
  const { server, directory, catchword } = await service();
  const more = { CATCHWORD_USER_REFERENCE: 'me', CATCHWORD_TOKEN_STORE: 'token', CATCHWORD_V3_SUFFIX: 'off' };
  const ended = await catchword(RESET, more);
  expect(ended).toMatchObject({ code: 0, stdout: 'the new token is in token\n', stderr: '' });
  expect(readFileSync(join(directory, 'token'), 'utf8').split('\n')[0]).toBe(FRESH);
  expect(server.asked.map(({ url }) => url)).toEqual(['/v3/users/reset_access', '/v3/credentials.xml']);
});

it('user reset-access prints the new token if no file is configured', async () => {
  const { catchword } = await service();
  const ended = await catchword(RESET, { CATCHWORD_USER_REFERENCE: 'me' });
  expect(ended).toMatchObject({ code: 0, stdout: `${FRESH}\n`, stderr: '' });
});

it('user reset-access finds the new token by the guid if no reference is set', async () => {
  const { server, catchword } = await service();
  expect(await catchword(RESET)).toMatchObject({ code: 0, stdout: `${FRESH}\n`, stderr: '' });
  expect(server.asked.map(({ url }) => url)).toEqual([
    '/v3/credentials.xml',
    '/v3/users/reset_access.xml',
    '/v3/credentials.xml',
  ]);
  expect(server.asked[0]?.body).toContain(`access-token="${TOKEN}"`);
  expect(server.asked[2]?.body).toContain('guid="G"');
});

it('user reset-access takes the new token from the answer to the reset', async () => {
  const user = `<user><guid>G</guid><access-token>${FRESH}</access-token></user>`;
  const { server, catchword } = await against(() => user);
  const ended = await catchword(RESET, { CATCHWORD_USER_REFERENCE: 'me' });
  expect(ended).toMatchObject({ code: 0, stdout: `${FRESH}\n`, stderr: '' });
  expect(server.asked.map(({ url }) => url)).toEqual(['/v3/users/reset_access.xml']);
});

it('user reset-access keeps the new token for the configured one, not for that of another user', async () => {
  const { server, catchword } = await against(({ url }) => {
    if (url.startsWith('/v3/licenses')) return golden('licenses-none.xml');
    return url.includes('reset_access') ? '' : VERIFIED;
  });
  const store = { CATCHWORD_TOKEN_STORE: 'token' };
  expect(await catchword(RESET, store)).toMatchObject({ code: 0, stderr: '' });
  for (const CATCHWORD_ACCESS_TOKEN of [TOKEN, 'tokenofanotheruser']) {
    expect(await catchword(['licenses'], { ...store, CATCHWORD_ACCESS_TOKEN })).toMatchObject({ code: 0 });
  }
  const sent = server.asked.slice(-2).map(({ headers }) => headers['x-service-access-token']);
  expect(sent).toEqual([FRESH, 'tokenofanotheruser']);
});

it('user reset-access resets nothing without a token and a reference', async () => {
  const { server, catchword } = await service();
  expect(await catchword(RESET, { CATCHWORD_ACCESS_TOKEN: '' })).toMatchObject({ code: 2, stdout: '' });
  expect(server.asked).toEqual([]);
});
