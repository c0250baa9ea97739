import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { golden, KEY, type Server, serve, TOKEN } from '../client/connection.ts';
import { run } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { temporaryDirectory } from '../support/mirror.ts';

const FRESH = 'freshtokenthatmustnotshow';
const VERIFIED = `<credentials><credential reference="me" guid="G" access-token="${FRESH}" email=""/></credentials>`;
const NAMES = ['--first-name', 'Ada', '--last-name', 'Abernathy'];

function settings(server: Server): Record<string, string> {
  return {
    CATCHWORD_BASE_URL: server.url,
    CATCHWORD_API_KEY: KEY,
    CATCHWORD_ACCESS_TOKEN: TOKEN,
    CATCHWORD_RATE_LIMIT: 'off',
  };
}

describe('licenses', () => {
  // @rule 4.2-3
  it('prints a table, or JSON', async () => {
    const server = await serve(() => golden('licenses-two.xml'));
    const directory = temporaryDirectory();
    const shown = await runHere(['licenses', '--sku', '9780000000026', '--type', 'all'], settings(server), directory);
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toMatch(/9780000000026 +downloadable +2016-03-10 22:14:54 \(expired\) +Elements of Hydrology/);
    expect(shown.stdout).toContain('3 licenses in the account, 1 accessible here\n');
    expect(server.asked[0]?.url).toBe('/v3/licenses.xml?sku=9780000000026&license_type=all');
    const json = await runHere(['licenses', '--json'], settings(server), directory);
    expect(JSON.parse(json.stdout)).toMatchObject({
      total: 3,
      licenses: [{ type: 'online' }, { type: 'downloadable' }],
    });
  });

  it('trims the SKU', async () => {
    const server = await serve(() => golden('licenses-none.xml'));
    const ended = await runHere(['licenses', '--sku', ' 9788074089008\t'], settings(server), temporaryDirectory());
    expect(ended).toMatchObject({ code: 0, stdout: '9788074089008 is not licensed\n' });
    expect(server.asked[0]?.url).toBe('/v3/licenses.xml?sku=9788074089008');
    const empty = await runHere(['licenses', '--sku', ' '], settings(server), temporaryDirectory());
    expect(empty).toMatchObject({ code: 2, stdout: '' });
    expect(server.asked).toHaveLength(1);
  });

  it('prints that nothing is licensed', async () => {
    const server = await serve(() => golden('licenses-none.xml'));
    const directory = temporaryDirectory();
    expect((await runHere(['licenses', '--sku', 'x'], settings(server), directory)).stdout).toBe('x is not licensed\n');
    expect((await runHere(['licenses'], settings(server), directory)).stdout).toBe('the account holds no license\n');
    const wrong = await runHere(['licenses', '--type', 'paper'], settings(server), directory);
    expect(wrong).toMatchObject({ code: 2, stdout: '' });
  });

  it('reports an error inside a 200', async () => {
    const server = await serve(() => golden('error-601.xml'));
    const ended = await runHere(['licenses'], settings(server), temporaryDirectory());
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(/SERVICE_TOKEN.*\nhint .*CATCHWORD_USER_REFERENCE/);
    expect(ended.stderr).not.toContain(TOKEN);
  });
});

describe('user create', () => {
  it('creates a reference user', async () => {
    const server = await serve(() => golden('user-reference-response.xml'));
    const args = ['user', 'create', '--reference', 'pupil-7', '--first-name', 'Élodie', '--last-name', 'Dubois & Fils'];
    const ended = await runHere(args, settings(server), temporaryDirectory());
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout).toContain('guid: 5N8C3DGK7Q2M9XW4TZ1B\nreference: pupil-7\n');
    expect(server.asked[0]?.body).toBe(golden('user-reference-request.xml'));
  });

  it('takes the password from the environment', async () => {
    const server = await serve(() => golden('user-full-response.xml'));
    const directory = temporaryDirectory();
    const args = ['user', 'create', '--email', 'ada@example.com', ...NAMES, '--json'];
    const without = await runHere(args, settings(server), directory);
    expect(without).toMatchObject({ code: 2, stdout: '' });
    expect(without.stderr).toContain('CATCHWORD_USER_PASSWORD');
    expect(server.asked).toEqual([]);
    const secret = { CATCHWORD_USER_PASSWORD: 'correct <horse>' };
    const ended = await runHere(args, { ...settings(server), ...secret }, directory);
    expect(JSON.parse(ended.stdout)).toMatchObject({ guid: '1B5N8C3DGK7Q2M9XW4TZ', email: 'ada@example.com' });
    expect(server.asked[0]?.body).toBe(golden('user-full-request.xml'));
  });

  it('takes the password from stdin', async () => {
    const server = await serve(() => golden('user-full-response.xml'));
    const args = ['user', 'create', '--email', 'ada@example.com', '--password-stdin', ...NAMES];
    const ended = await run(args, settings(server), temporaryDirectory(), 'correct <horse>\n');
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(server.asked[0]?.body).toBe(golden('user-full-request.xml'));
  });

  it('rejects a password that is not UTF-8', async () => {
    const server = await serve(() => golden('user-full-response.xml'));
    const args = ['user', 'create', '--email', 'ada@example.com', '--password-stdin', ...NAMES];
    const password = Buffer.from('p\xe4ssword', 'latin1');
    const ended = await run(args, settings(server), temporaryDirectory(), password);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain('the password on stdin: it is not UTF-8');
    expect(ended.stderr).not.toContain('ssword\n');
    expect(server.asked).toEqual([]);
  });

  it('prints a user without control characters', async () => {
    const server = await serve(() => '<user><guid>G&#x9b;2J</guid><reference>me</reference></user>');
    const args = ['user', 'create', '--reference', 'me', ...NAMES];
    const ended = await runHere(args, settings(server), temporaryDirectory());
    expect(ended.stdout).toContain('guid: G 2J\nreference: me\n');
  });

  it.each([
    ['password', /CATCHWORD_USER_PASSWORD/],
    ['Password', /CATCHWORD_USER_PASSWORD/],
    ['reference', /--reference/],
    ['guid', /Omit it/],
    ['ACCESS_TOKEN', /Omit it/],
  ])('rejects %s as --field', async (name, hint) => {
    const server = await serve(() => '');
    const args = ['user', 'create', '--reference', 'me', ...NAMES, '--field', `${name}=topsecret`];
    const ended = await runHere(args, settings(server), temporaryDirectory());
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(hint);
    expect(ended.stderr).not.toContain('topsecret');
    expect(server.asked).toEqual([]);
  });

  it('requires either a reference or an email', async () => {
    const server = await serve(() => '');
    for (const args of [[], ['--reference', 'a', '--email', 'b']]) {
      const ended = await runHere(['user', 'create', ...args, ...NAMES], settings(server), temporaryDirectory());
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toContain('either a reference or an email');
    }
  });
});

describe('user reset-access', () => {
  const service = () => serve(({ url }) => (url.includes('reset_access') ? '' : VERIFIED));

  it('stores the new token in its file and does not print it', async () => {
    const server = await service();
    const directory = temporaryDirectory();
    const more = { CATCHWORD_USER_REFERENCE: 'me', CATCHWORD_TOKEN_STORE: 'token', CATCHWORD_V3_SUFFIX: 'off' };
    const ended = await runHere(['user', 'reset-access'], { ...settings(server), ...more }, directory);
    expect(ended).toMatchObject({ code: 0, stdout: 'the new token is in token\n', stderr: '' });
    expect(readFileSync(join(directory, 'token'), 'utf8').split('\n')[0]).toBe(FRESH);
    expect(server.asked.map(({ url }) => url)).toEqual(['/v3/users/reset_access', '/v3/credentials.xml']);
  });

  it('prints the new token if no file is configured', async () => {
    const more = { CATCHWORD_USER_REFERENCE: 'me' };
    const ended = await runHere(
      ['user', 'reset-access'],
      { ...settings(await service()), ...more },
      temporaryDirectory(),
    );
    expect(ended).toMatchObject({ code: 0, stdout: `${FRESH}\n`, stderr: '' });
  });

  it('resets the token of the reference if none is configured', async () => {
    let valid = TOKEN;
    const server = await serve(({ url }) => {
      if (!url.includes('reset_access')) return VERIFIED.replace(FRESH, valid);
      valid = FRESH;
      return '';
    });
    const { CATCHWORD_ACCESS_TOKEN: _none, ...without } = settings(server);
    const more = { CATCHWORD_USER_REFERENCE: 'me' };
    const ended = await runHere(['user', 'reset-access'], { ...without, ...more }, temporaryDirectory());
    expect(ended).toMatchObject({ code: 0, stdout: `${FRESH}\n`, stderr: '' });
    expect(server.asked[1]).toMatchObject({ url: '/v3/users/reset_access.xml' });
    expect(Object.values(server.asked[1]?.headers ?? {})).toContain(TOKEN);
  });

  it('resets nothing if the new token could not be fetched', async () => {
    const server = await service();
    const ended = await runHere(['user', 'reset-access'], settings(server), temporaryDirectory());
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(server.asked).toEqual([]);
  });
});
