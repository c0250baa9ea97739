import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings } from '@catchword/settings/config';
import { unknownSettings } from '@catchword/settings/unknown-settings';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { runHere } from '../support/in-process.ts';
import { filled, place } from '../support/place.ts';

const WRONG = {
  CATCHWORD_PER_PAGE: 'many',
  CATCHWORD_RATE_LIMIT: 'fast',
  CATCHWORD_DELTA_CRON: 'hourly',
  CATCHWORD_SINK_SHOP: 'ftp://shop:topsecret@db.example/shop',
  CATCHWORD_SINK_STREAM: 'redis://:topsecret@db.example/?stream=a#b',
  CATCHWORD_HTTP_TOKEN: 'topsecret with spaces',
};

it('wrong settings are all named in one error, each on a line of its own, without a secret', async () => {
  const ended = await runHere(['sync'], WRONG, temporaryDirectory());
  expect(ended).toMatchObject({ code: 2, stdout: '' });
  const [first, ...lines] = ended.stderr.trimEnd().split('\n');
  expect(first).toBe('error 8 settings are wrong [CONFIG_INVALID]');
  expect(lines.pop()).toBe('hint  Correct them in the environment or in .env.');
  const names = lines.map((line) => /^ {2}([A-Z_]+)[: ]/.exec(line)?.[1]);
  expect(new Set(names)).toEqual(new Set(['CATCHWORD_API_KEY', 'CATCHWORD_BASE_URL', ...Object.keys(WRONG)]));
  expect(ended.stderr).not.toContain('topsecret');
});

it('wrong settings are separate findings of doctor', async () => {
  const ended = await runHere(['doctor', '--json'], WRONG, temporaryDirectory());
  expect(ended).toMatchObject({ code: 1, stderr: '' });
  const findings = JSON.parse(ended.stdout) as { check: string; level: string; text: string }[];
  const failed = findings.filter(({ check, level }) => check === 'settings' && level === 'failed');
  expect(failed).toHaveLength(8);
  for (const name of Object.keys(WRONG)) expect(failed.some(({ text }) => text.startsWith(name))).toBe(true);
  expect(ended.stdout).not.toContain('topsecret');
});

it.each([['daemon'], ['relay'], ['web'], ['status'], ['changes'], ['settings']])(
  'wrong settings stop %s',
  async (verb) => {
    const ended = await runHere([verb], { ...WRONG, CATCHWORD_HTTP_PORT: '0' }, temporaryDirectory());
    expect(ended.code).toBe(2);
    for (const name of Object.keys(WRONG)) expect(ended.stderr).toContain(name);
    expect(ended.stdout).not.toContain('topsecret');
  },
);

it.each([['status'], ['status', '--json'], ['sink', 'list'], ['runs'], ['run', '1']])(
  'wrong settings do not keep %s %s from showing what the mirror has, before they are reported',
  { tags: ['slow'] },
  async (...args) => {
    const { settings, directory, db } = await filled({ items: 20 });
    const wrong = { ...WRONG, CATCHWORD_NOTIFY_TEAM: 'ftp://x', CATCHWORD_TIMEZONE: 'Mars/One', CATCHWORD_DB: db };
    const ended = await runHere(args.filter(Boolean), { ...settings, ...wrong }, directory);
    expect(ended.code).toBe(2);
    expect(ended.stdout).toMatch(
      { status: /\b20\b/, sink: /^sink .*\n(.*\n)*shop/, runs: /full/, run: /sealed/ }[args[0] ?? ''] ?? /^$/,
    );
    for (const name of ['CATCHWORD_PER_PAGE', 'CATCHWORD_NOTIFY_TEAM', 'CATCHWORD_DELTA_CRON'])
      expect(ended.stderr).toContain(name);
    expect(ended.stdout + ended.stderr).not.toContain('topsecret');
  },
);

it('wrong settings are reported without a list if there is only one', () => {
  expect(() => checkedSettings({ CATCHWORD_PER_PAGE: 'many' }, 'nothing')).toThrow(
    expect.objectContaining({
      code: 'CONFIG_INVALID',
      message: 'CATCHWORD_PER_PAGE: "many" cannot be used (products per page)',
      hint: 'It must be a whole number from 1 to 1000.',
    }),
  );
});

it('wrong settings include files of secrets that cannot be read', () => {
  const environment = { CATCHWORD_API_KEY_FILE: '/nowhere', CATCHWORD_SINK_A_FILE: '/nowhere', LOG_LEVEL: 'loud' };
  expect(checkedSettings({ CATCHWORD_SINK_A_FILE: '/nowhere' }, 'nothing').sinks).toHaveLength(1);
  expect(() => checkedSettings(environment, 'nothing')).toThrow(
    /^3 settings.*API_KEY_FILE: cannot read.*LOG_LEVEL.*SINK_A_FILE: cannot read/s,
  );
});

const utf16 = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');
const KEY = 'CATCHWORD_API_KEY';

/** The settings in a directory, by name, with what the command printed. */
async function read(environment: Record<string, string>, files: Readonly<Record<string, string | Buffer>> = {}) {
  const directory = temporaryDirectory();
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
  const { stdout, stderr, code } = await runHere(['settings', '--json'], environment, directory);
  const rows = stdout === '' ? [] : (JSON.parse(stdout) as { name: string; value: string | null }[]);
  return { value: (name: string) => rows.find((row) => row.name === name)?.value, stderr, code };
}

it.each([
  ['UTF-8 with a byte order mark', Buffer.from('\ufeffCATCHWORD_SEAM=7\r\nCATCHWORD_NAME=x\r\n')],
  ['UTF-16 with a byte order mark', utf16('CATCHWORD_SEAM=7\r\nCATCHWORD_NAME=x\r\n')],
  ['UTF-16 of the other byte order', utf16('CATCHWORD_SEAM=7\r\nCATCHWORD_NAME=x\r\n').swap16()],
  ['UTF-8 with the line breaks of old Macs', Buffer.from('CATCHWORD_SEAM=7\rCATCHWORD_NAME=x\r')],
])('catchword reads .env in %s', async (_, content) => {
  const { value, code } = await read({}, { '.env': content });
  expect([code, value('CATCHWORD_SEAM'), value('CATCHWORD_NAME')]).toEqual([0, '7', 'x']);
});

it.each([
  ['UTF-16 without a byte order mark', Buffer.from('CATCHWORD_SEAM=7\n', 'utf16le')],
  ['Latin-1', Buffer.from('CATCHWORD_DB=b\xfccher.db\n', 'latin1')],
])('catchword refuses a .env in %s', async (_, content) => {
  const { stderr, code } = await read({}, { '.env': content });
  expect(code).toBe(2);
  const message = expect.stringMatching(/^\.env is not text/);
  expect(JSON.parse(stderr)).toEqual({ error: { code: 'CONFIG_INVALID', message, hint: 'Save it as UTF-8.' } });
});

it('catchword refuses a .env that is a directory', async () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, '.env'));
  const ended = await runHere(['settings'], {}, directory);
  expect(ended).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('cannot read .env (it is a directory, EISDIR)'),
  });
});

it.each([
  ['UTF-8 with a byte order mark', Buffer.from('\ufefftopsecret\r\n')],
  ['UTF-16 with a byte order mark', utf16('topsecret\r\n')],
])('catchword reads the file of a secret in %s', (_, content) => {
  const file = join(temporaryDirectory(), 'key');
  writeFileSync(file, content);
  expect(checkedSettings({ CATCHWORD_API_KEY_FILE: file }, 'nothing').apiKey).toBe('topsecret');
});

it.each([
  ['longer than a header', 'x'.repeat(8_001), /CATCHWORD_API_KEY: its value cannot be used.*up to 8,000 printable/s],
  ['quoted', '"topsecret"\n', /CATCHWORD_API_KEY_FILE: the file that it names: the value is in quotes/],
  [
    'UTF-16 without a mark',
    Buffer.from('topsecret', 'utf16le'),
    /CATCHWORD_API_KEY_FILE: the file that it names is not text/,
  ],
  ['Latin-1', Buffer.from('topsecret\xe4', 'latin1'), /CATCHWORD_API_KEY_FILE: the file that it names is not text/],
])('catchword refuses the file of a secret that is %s', async (_, content, message) => {
  const { stderr, code } = await read({ CATCHWORD_API_KEY_FILE: 'key' }, { key: content });
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(stderr).not.toContain('topsecret');
});

it('catchword drops the line breaks behind a value', () => {
  const environment = { [KEY]: 'topsecret\r\n', CATCHWORD_BASE_URL: 'http://127.0.0.1:1/\r', CATCHWORD_SEAM: '7\n' };
  const expected = { apiKey: 'topsecret', baseUrl: 'http://127.0.0.1:1', seam: 7 };
  expect(checkedSettings(environment, 'nothing')).toMatchObject(expected);
});

it.each([[KEY], ['CATCHWORD_API_KEY_FILE'], ['CATCHWORD_DB'], ['CATCHWORD_SINK_A'], ['CATCHWORD_SINK_A_SECRET']])(
  'catchword refuses a value in quotes: %s',
  async (name) => {
    const { stderr, code } = await read({ CATCHWORD_SINK_A: 'jsonl:a', [name]: '"topsecret"' });
    expect(code).toBe(2);
    const message = expect.stringContaining(`${name}: the value is in quotes`);
    const hint = expect.stringContaining('docker --env-file');
    expect(JSON.parse(stderr)).toEqual({ error: { code: 'CONFIG_INVALID', message, hint } });
    expect(stderr).not.toContain('topsecret');
  },
);

it('catchword accepts quotes around a password', () => {
  expect(checkedSettings({ CATCHWORD_USER_PASSWORD: '"x"' }, 'nothing').userPassword).toBe('"x"');
});

it.each([
  ['CATCHWORD_DB', '~/catalog.db'],
  ['CATCHWORD_TOKEN_STORE', '~/token'],
  ['CATCHWORD_API_KEY_FILE', '~/key'],
  ['CATCHWORD_SINK_A_FILE', '~root/sink'],
  ['CATCHWORD_SINK_A', 'jsonl:~/changes.jsonl'],
  ['CATCHWORD_SINK_A', 'module:~/sink.mjs'],
  ['CATCHWORD_SINK_A', 'postgres://u@db.example/shop?sslrootcert=~/ca.pem'],
])('catchword refuses a path that only a shell completes: %s=%s', (name, value) => {
  expect(() => checkedSettings({ [name]: value }, 'nothing', true)).toThrow(
    expect.objectContaining({
      code: 'CONFIG_INVALID',
      message: expect.stringMatching(new RegExp(`^${name}: `)),
      hint: 'It must be written in full: only a shell replaces ~, so use $HOME there.',
    }),
  );
});

it.each([['http://127.0.0.1/api?key=topsecret'], ['http://127.0.0.1/#topsecret']])(
  'catchword refuses the query or fragment of a base URL: %s',
  (value) => {
    expect(() => checkedSettings({ CATCHWORD_BASE_URL: value }, 'nothing')).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        message: expect.not.stringContaining('topsecret'),
        hint: expect.stringContaining('Remove what follows ? or #.'),
      }),
    );
  },
);

it.each([
  ['CATCHWORD_RATELIMIT', 'Did you mean CATCHWORD_RATE_LIMIT?'],
  ['CATCHWORD_BASEURL', 'Did you mean CATCHWORD_BASE_URL?'],
  ['CATCHWORD_API_KEY_FLIE', 'Did you mean CATCHWORD_API_KEY_FILE?'],
  ['CATCHWORD_SINK_shop', 'Did you mean CATCHWORD_SINK_SHOP?'],
  ['catchword_db', 'Did you mean CATCHWORD_DB?'],
  ['CATCHWORD_DB_FILE', 'It is ignored.'],
  ['CATCHWORD_COLOUR_OF_THE_SKY', 'It is ignored.'],
])('unknown variables are named with the nearest setting: %s', (name, suggestion) => {
  const texts = unknownSettings({ [name]: 'x' });
  expect(texts).toHaveLength(1);
  expect(texts[0]?.startsWith(`${name} is not a setting.`)).toBe(true);
  expect(texts[0]?.endsWith(suggestion)).toBe(true);
});

it('unknown variables include the secret of a sink that is not set', () => {
  const sinks = { CATCHWORD_SINK_HOOK: 'webhook+https://x', CATCHWORD_SINK_HOKO_SECRET: 's' };
  expect(unknownSettings(sinks)).toEqual([
    'CATCHWORD_SINK_HOKO_SECRET belongs to CATCHWORD_SINK_HOKO, which is not set. It is ignored. Did you mean CATCHWORD_SINK_HOOK?',
  ]);
});

it('a sink may be called secret or headers, and unknown variables include the headers of a sink that is not set', () => {
  const sinks = {
    CATCHWORD_SINK_SECRET: 'jsonl:a',
    CATCHWORD_SINK_HEADERS: 'jsonl:b',
    CATCHWORD_SINK_SECRET_HEADERS: 'A: b',
  };
  const { values } = readSettings({ ...sinks, CATCHWORD_SINK_X_HEADERS_FILE: 'c' });
  expect(values.sinks.map(({ name, headers }) => [name, headers])).toEqual([
    ['headers', undefined],
    ['secret', 'A: b'],
  ]);
  expect(unknownSettings({ ...sinks, CATCHWORD_SINK_X_HEADERS_FILE: 'c' })).toEqual([
    'CATCHWORD_SINK_X_HEADERS_FILE belongs to CATCHWORD_SINK_X, which is not set. It is ignored.',
  ]);
});

it.each(['*', 'https://shop.example/', 'https://shop.example:443', 'shop.example', 'null'])(
  'CATCHWORD_HTTP_ORIGINS does not take %s for an origin',
  (origin) => {
    const { problems } = readSettings({ CATCHWORD_HTTP_ORIGINS: `https://a.example, ${origin}` });
    expect(problems.map(({ hint }) => hint)).toEqual([
      'It must be a comma-separated list of origins such as https://shop.example.',
    ]);
    const { values } = readSettings({ CATCHWORD_HTTP_ORIGINS: 'https://a.example, http://localhost:3000' });
    expect(values.httpOrigins).toEqual(['https://a.example', 'http://localhost:3000']);
  },
);

it('unknown variables do not include settings, empty variables and those of other programs', () => {
  const sink = { CATCHWORD_SINK_HOOK_FILE: 'a', CATCHWORD_SINK_HOOK_SECRET_FILE: 'a' };
  const known = { CATCHWORD_DB: 'a', CATCHWORD_API_KEY_FILE: 'a', REDIS_URL: 'a' };
  expect(unknownSettings({ ...sink, ...known, CATCHWORD_FOO: '', PATH: 'a' })).toEqual([]);
});

it('an address in a variable that ends in _SECRET is an error, and a secret is not', () => {
  const read = (env: Record<string, string>) => readSettings(env).problems.map(({ message, hint }) => [message, hint]);
  expect(read({ CATCHWORD_SINK_TOP_SECRET: 'jsonl:changes.jsonl' })).toContainEqual([
    'CATCHWORD_SINK_TOP_SECRET: its value is an address, but it is the secret of CATCHWORD_SINK_TOP',
    'Choose another name: none of a sink or a channel ends in _SECRET.',
  ]);
  expect(read({ CATCHWORD_SINK_TOP_SECRET: 'whsec_c2VjcmV0' })).toEqual(read({}));
});

it.each(['SINK_MY', 'NOTIFY_MY'])('an address in a variable that ends in _FILE is an error: %s', (name) => {
  const { values, problems } = readSettings({ [`CATCHWORD_${name}_FILE`]: 'jsonl:secret' });
  expect([...problems, ...(values.sinks[0]?.problems ?? [])]).toMatchObject([
    {
      code: 'CONFIG_INVALID',
      message: `CATCHWORD_${name}_FILE: its value is an address, not a path`,
      hint: expect.stringContaining('a variable that ends in _FILE names a file'),
    },
  ]);
});

it('unknown variables do not include the one that pm2 names like the process', () => {
  expect(unknownSettings({ name: 'catchword-daemon', 'catchword-daemon': '{}' })).toEqual([]);
  expect(unknownSettings({ 'catchword-daemon': '{}' })).toHaveLength(1);
});

it('unknown variables are named on stderr by every verb that reads settings, and never on stdout', async () => {
  const { directory, settings } = await place({ items: 20 }, { CATCHWORD_RATELIMIT: '5/min' });
  const note = 'note  CATCHWORD_RATELIMIT is not a setting. It is ignored. Did you mean CATCHWORD_RATE_LIMIT?\n';
  for (const args of ['sync --json', 'status --json', 'licenses --json', 'runs', 'verify', 'settings']) {
    const ended = await runHere(args.split(' '), settings, directory);
    expect(ended).toMatchObject({ code: 0, stderr: note });
    expect(ended.stdout).not.toContain('RATELIMIT');
  }
  const doctor = await runHere(['doctor'], settings, directory);
  expect(doctor).toMatchObject({ code: 0, stderr: '' });
  expect(doctor.stdout).toContain('Did you mean CATCHWORD_RATE_LIMIT?');
});

it('unknown variables are named before a missing setting, which may be misspelt', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, '.env'), 'CATCHWORD_BASEURL=http://127.0.0.1:1\nCATCHWORD_API_KEY=K\n');
  const ended = await runHere(['sync'], {}, directory);
  expect(ended.stderr).toMatch(/^note .*Did you mean CATCHWORD_BASE_URL\?\nerror CATCHWORD_BASE_URL is not set/);
});

async function settings(environment: Record<string, string>, dotEnv = '') {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'key'), 'topsecret\n');
  writeFileSync(join(directory, '.env'), dotEnv);
  const { stdout, stderr, code } = await runHere(['settings', '--json'], environment, directory);
  const rows = JSON.parse(stdout) as { name: string; value: string | null; from: string }[];
  const found = new Map(rows.map(({ name, value, from }) => [name, [value, from]]));
  return { of: (name: string) => found.get(name), stdout, stderr, code };
}

it('settings prints where each value comes from', async () => {
  const { of, code } = await settings(
    { CATCHWORD_PER_PAGE: '50', CATCHWORD_API_KEY_FILE: 'key', CATCHWORD_SEAM: '5', CATCHWORD_DB: '' },
    'CATCHWORD_SEAM=7\nCATCHWORD_CONCURRENCY=2\nCATCHWORD_DB=other.db\n',
  );
  expect(code).toBe(0);
  expect(of('CATCHWORD_PER_PAGE')).toEqual(['50', 'environment']);
  expect(of('CATCHWORD_SEAM')).toEqual(['5', 'environment']);
  expect(of('CATCHWORD_CONCURRENCY')).toEqual(['2', '.env']);
  expect(of('CATCHWORD_DB')).toEqual(['data/catalog.db', 'default']);
  expect(of('CATCHWORD_API_KEY')).toEqual(['********', 'CATCHWORD_API_KEY_FILE']);
  expect(of('CATCHWORD_BASE_URL')).toEqual([null, 'default']);
});

it('settings masks secrets and the credentials of sinks', async () => {
  const { of, stdout } = await settings({
    CATCHWORD_ACCESS_TOKEN: 'topsecret',
    REDIS_URL: 'redis://:topsecret@127.0.0.1:6379',
    CATCHWORD_SINK_SHOP: 'postgres://shop:topsecret@db.example/shop',
    CATCHWORD_SINK_HOOK: 'webhook+https://example.org/topsecret?key=topsecret',
    CATCHWORD_SINK_HOOK_SECRET: `whsec_${Buffer.from('topsecret').toString('base64')}`,
  });
  expect(of('CATCHWORD_SINK_SHOP')).toEqual(['postgres db.example:5432/shop products', 'environment']);
  expect(of('CATCHWORD_SINK_HOOK_SECRET')).toEqual(['********', 'environment']);
  expect(stdout).not.toContain('topsecret');
  expect(stdout).not.toContain('whsec_');
});

it('settings prints wrong values without their secrets, reports them and exits 2', async () => {
  const { of, stdout, stderr, code } = await settings({
    ...WRONG,
    CATCHWORD_BASE_URL: 'ftp://user:topsecret@127.0.0.1',
  });
  expect(code).toBe(2);
  expect(of('CATCHWORD_PER_PAGE')).toEqual(['many', 'environment']);
  expect(of('CATCHWORD_BASE_URL')).toEqual(['ftp://…@127.0.0.1', 'environment']);
  expect(of('CATCHWORD_SINK_SHOP')).toEqual(['********', 'environment']);
  expect(stdout + stderr).not.toContain('topsecret');
  const message = expect.stringMatching(/^7 settings are wrong/);
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'CONFIG_INVALID', message } });
});

it('settings prints a table for a person', async () => {
  const { stdout, code } = await runHere(['settings'], { CATCHWORD_SEAM: '5' }, temporaryDirectory());
  expect(code).toBe(0);
  expect(stdout).toMatch(/^setting +value +from\n/);
  expect(stdout).toMatch(/^CATCHWORD_SEAM +5 +environment$/m);
});
