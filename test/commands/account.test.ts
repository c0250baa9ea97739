import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { golden, KEY, serve, TOKEN } from '../client/connection.ts';
import { run } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { temporaryDirectory } from '../support/mirror.ts';

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

describe('licenses', () => {
  // @rule 4.2-3
  it('prints a table, or JSON', async () => {
    const { server, catchword } = await against(() => golden('licenses-two.xml'));
    const shown = await catchword(['licenses', '--sku', '9780000000026', '--type', 'all']);
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toMatch(/9780000000026 +downloadable +2016-03-10 22:14:54 \(expired\) +Elements of Hydrology/);
    expect(shown.stdout).toContain('3 licenses in the account, 1 accessible here\n');
    expect(server.asked[0]?.url).toBe('/v3/licenses.xml?sku=9780000000026&license_type=all');
    const json = await catchword(['licenses', '--json']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      total: 3,
      licenses: [{ type: 'online' }, { type: 'downloadable' }],
    });
  });

  it('trims the SKU', async () => {
    const { server, catchword } = await against(() => golden('licenses-none.xml'));
    const ended = await catchword(['licenses', '--sku', ' 9788074089008\t']);
    expect(ended).toMatchObject({ code: 0, stdout: '9788074089008 is not licensed\n' });
    expect(server.asked[0]?.url).toBe('/v3/licenses.xml?sku=9788074089008');
    expect(await catchword(['licenses', '--sku', ' '])).toMatchObject({ code: 2, stdout: '' });
    expect(server.asked).toHaveLength(1);
  });

  it('prints that nothing is licensed', async () => {
    const { catchword } = await against(() => golden('licenses-none.xml'));
    expect((await catchword(['licenses', '--sku', 'x'])).stdout).toBe('x is not licensed\n');
    expect((await catchword(['licenses'])).stdout).toBe('the account holds no license\n');
    expect(await catchword(['licenses', '--type', 'paper'])).toMatchObject({ code: 2, stdout: '' });
  });

  it('reports an error inside a 200', async () => {
    const { catchword } = await against(() => golden('error-601.xml'));
    const ended = await catchword(['licenses']);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(/SERVICE_TOKEN.*\nhint .*CATCHWORD_USER_REFERENCE/);
    expect(ended.stderr).not.toContain(TOKEN);
  });
});

describe('user create', () => {
  it('creates a reference user', async () => {
    const { server, catchword } = await against(() => golden('user-reference-response.xml'));
    const names = ['--first-name', 'Élodie', '--last-name', 'Dubois & Fils'];
    const ended = await catchword(['user', 'create', '--reference', 'pupil-7', ...names]);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain('guid: 5N8C3DGK7Q2M9XW4TZ1B\nreference: pupil-7\n');
    expect(server.asked[0]?.body).toBe(golden('user-reference-request.xml'));
  });

  it('takes the password from the environment', async () => {
    const { server, catchword } = await against(() => golden('user-full-response.xml'));
    const without = await catchword(ADA);
    expect(without).toMatchObject({ code: 2, stdout: '' });
    expect(without.stderr).toContain('CATCHWORD_USER_PASSWORD');
    expect(server.asked).toEqual([]);
    const ended = await catchword([...ADA, '--json'], { CATCHWORD_USER_PASSWORD: 'correct <horse>' });
    expect(JSON.parse(ended.stdout)).toMatchObject({ guid: '1B5N8C3DGK7Q2M9XW4TZ', email: 'ada@example.com' });
    expect(server.asked[0]?.body).toBe(golden('user-full-request.xml'));
  });

  it('takes the password from stdin', async () => {
    const { server, withStdin } = await against(() => golden('user-full-response.xml'));
    const ended = await withStdin([...ADA, '--password-stdin'], 'correct <horse>\n');
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(server.asked[0]?.body).toBe(golden('user-full-request.xml'));
  });

  it('rejects a password that is not UTF-8', async () => {
    const { server, withStdin } = await against();
    const ended = await withStdin([...ADA, '--password-stdin'], Buffer.from('p\xe4ssword', 'latin1'));
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain('the password on stdin: it is not UTF-8');
    expect(ended.stderr).not.toContain('ssword\n');
    expect(server.asked).toEqual([]);
  });

  it('prints a user without control characters', async () => {
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
  ])('rejects %s as --field', async (name, hint) => {
    const { server, catchword } = await against();
    const ended = await catchword(['user', 'create', '--reference', 'me', ...NAMES, '--field', `${name}=topsecret`]);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(hint);
    expect(ended.stderr).not.toContain('topsecret');
    expect(server.asked).toEqual([]);
  });

  it('requires either a reference or an email', async () => {
    const { catchword } = await against();
    for (const args of [[], ['--reference', 'a', '--email', 'b']]) {
      const ended = await catchword(['user', 'create', ...args, ...NAMES]);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toContain('either a reference or an email');
    }
  });
});

describe('user reset-access', () => {
  const service = () => against(({ url }) => (url.includes('reset_access') ? '' : VERIFIED));
  const RESET = ['user', 'reset-access'];

  it('stores the new token in its file and does not print it', async () => {
    const { server, directory, catchword } = await service();
    const more = { CATCHWORD_USER_REFERENCE: 'me', CATCHWORD_TOKEN_STORE: 'token', CATCHWORD_V3_SUFFIX: 'off' };
    const ended = await catchword(RESET, more);
    expect(ended).toMatchObject({ code: 0, stdout: 'the new token is in token\n', stderr: '' });
    expect(readFileSync(join(directory, 'token'), 'utf8').split('\n')[0]).toBe(FRESH);
    expect(server.asked.map(({ url }) => url)).toEqual(['/v3/users/reset_access', '/v3/credentials.xml']);
  });

  it('prints the new token if no file is configured', async () => {
    const { catchword } = await service();
    const ended = await catchword(RESET, { CATCHWORD_USER_REFERENCE: 'me' });
    expect(ended).toMatchObject({ code: 0, stdout: `${FRESH}\n`, stderr: '' });
  });

  it('resets the token of the reference if none is configured', async () => {
    let valid = TOKEN;
    const { server, catchword } = await against(({ url }) => {
      if (!url.includes('reset_access')) return VERIFIED.replace(FRESH, valid);
      valid = FRESH;
      return '';
    });
    const ended = await catchword(RESET, { CATCHWORD_USER_REFERENCE: 'me', CATCHWORD_ACCESS_TOKEN: '' });
    expect(ended).toMatchObject({ code: 0, stdout: `${FRESH}\n`, stderr: '' });
    expect(server.asked[1]).toMatchObject({ url: '/v3/users/reset_access.xml' });
    expect(Object.values(server.asked[1]?.headers ?? {})).toContain(TOKEN);
  });

  it('resets nothing if the new token could not be fetched', async () => {
    const { server, catchword } = await service();
    expect(await catchword(RESET)).toMatchObject({ code: 2, stdout: '' });
    expect(server.asked).toEqual([]);
  });
});
