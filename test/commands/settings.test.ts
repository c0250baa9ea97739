import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkedSettings, unknownSettings } from '../../src/commands/shared/settings.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { run } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { settingsFor, temporaryDirectory } from '../support/mirror.ts';

const WRONG = {
  CATCHWORD_PER_PAGE: 'many',
  CATCHWORD_RATE_LIMIT: 'fast',
  CATCHWORD_DELTA_CRON: 'hourly',
  CATCHWORD_SINK_SHOP: 'ftp://shop:topsecret@db.example/shop',
  CATCHWORD_SINK_STREAM: 'redis://:topsecret@db.example/?stream=a#b',
  CATCHWORD_HTTP_TOKEN: 'topsecret with spaces',
};

describe('settings that are wrong', () => {
  it('are all named at once, each on a line, without a secret', async () => {
    const directory = temporaryDirectory();
    const ended = await runHere(['sync'], WRONG, directory);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    const [first, ...lines] = ended.stderr.trimEnd().split('\n');
    expect(first).toBe('error 8 settings are wrong [CONFIG_INVALID]');
    expect(lines.pop()).toBe('hint  Correct them in the environment or in .env.');
    const names = lines.map((line) => /^ {2}([A-Z_]+)[: ]/.exec(line)?.[1]);
    expect(new Set(names)).toEqual(new Set(['CATCHWORD_API_KEY', 'CATCHWORD_BASE_URL', ...Object.keys(WRONG)]));
    expect(ended.stderr).not.toContain('topsecret');
  });

  it('are findings of their own in doctor', async () => {
    const ended = await runHere(['doctor', '--json'], WRONG, temporaryDirectory());
    expect(ended).toMatchObject({ code: 1, stderr: '' });
    const findings = JSON.parse(ended.stdout) as { check: string; level: string; text: string }[];
    const failed = findings.filter(({ check, level }) => check === 'settings' && level === 'failed');
    expect(failed).toHaveLength(8);
    for (const name of Object.keys(WRONG)) expect(failed.some(({ text }) => text.startsWith(name))).toBe(true);
    expect(ended.stdout).not.toContain('topsecret');
  });

  it.each([['daemon'], ['relay'], ['web'], ['status'], ['changes']])('are named by %s, too', async (verb) => {
    const ended = await runHere([verb], { ...WRONG, CATCHWORD_HTTP_PORT: '0' }, temporaryDirectory());
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    for (const name of Object.keys(WRONG)) expect(ended.stderr).toContain(name);
  });

  it('are one error of the same form as ever where there is one', () => {
    expect(() => checkedSettings({ CATCHWORD_PER_PAGE: 'many' }, 'nothing')).toThrow(
      expect.objectContaining({
        code: 'CONFIG_INVALID',
        message: 'CATCHWORD_PER_PAGE: "many" cannot be used (products a page, 1 to 1000)',
        hint: 'A whole number from 1 to 1000 is needed.',
      }),
    );
  });

  it('hide nothing else: secret files are looked at, too', () => {
    const environment = { CATCHWORD_API_KEY_FILE: '/nowhere', CATCHWORD_SINK_A_FILE: '/nowhere', LOG_LEVEL: 'loud' };
    expect(() => checkedSettings(environment, 'nothing')).toThrow(
      /^3 settings.*API_KEY_FILE: cannot read.*LOG_LEVEL.*SINK_A_FILE: cannot read/s,
    );
  });
});

describe('variables that are not settings', () => {
  it.each([
    ['CATCHWORD_RATELIMIT', 'Did you mean CATCHWORD_RATE_LIMIT?'],
    ['CATCHWORD_BASEURL', 'Did you mean CATCHWORD_BASE_URL?'],
    ['CATCHWORD_API_KEY_FLIE', 'Did you mean CATCHWORD_API_KEY_FILE?'],
    ['CATCHWORD_SINK_shop', 'Did you mean CATCHWORD_SINK_SHOP?'],
    ['catchword_db', 'Did you mean CATCHWORD_DB?'],
    ['CATCHWORD_DB_FILE', 'It is ignored.'],
    ['CATCHWORD_COLOUR_OF_THE_SKY', 'It is ignored.'],
  ])('are named with the nearest setting: %s', (name, suggestion) => {
    const [text = '', ...others] = unknownSettings({ [name]: 'x' });
    expect(others).toEqual([]);
    expect(text.startsWith(`${name} is not a setting.`)).toBe(true);
    expect(text.endsWith(suggestion)).toBe(true);
  });

  it('are secrets of sinks that there are not', () => {
    const sinks = { CATCHWORD_SINK_HOOK: 'webhook+https://x', CATCHWORD_SINK_HOKO_SECRET: 's' };
    expect(unknownSettings(sinks)).toEqual([
      'CATCHWORD_SINK_HOKO_SECRET: there is no CATCHWORD_SINK_HOKO. It is ignored. Did you mean CATCHWORD_SINK_HOOK?',
    ]);
  });

  it('are no others', () => {
    const known = {
      CATCHWORD_DB: 'a',
      CATCHWORD_API_KEY_FILE: 'a',
      REDIS_URL: 'a',
      CATCHWORD_SINK_HOOK_FILE: 'a',
      CATCHWORD_SINK_HOOK_SECRET_FILE: 'a',
      CATCHWORD_FOO: '',
      PATH: 'a',
    };
    expect(unknownSettings(known)).toEqual([]);
  });

  it('are named on stderr by each verb that reads settings, and never on stdout', async () => {
    const sandbox = await startSandbox({ items: 20 });
    onTestFinished(() => sandbox.stop());
    const directory = temporaryDirectory();
    const settings = { ...settingsFor(sandbox.url, join(directory, 'catalog.db')), CATCHWORD_RATELIMIT: '5/min' };
    const note = 'note  CATCHWORD_RATELIMIT is not a setting. It is ignored. Did you mean CATCHWORD_RATE_LIMIT?\n';
    for (const args of [['sync', '--json'], ['status', '--json'], ['licenses', '--json'], ['runs'], ['verify']]) {
      const ended = await runHere(args, settings, directory);
      expect(ended).toMatchObject({ code: 0, stderr: note });
      expect(ended.stdout).not.toContain('RATELIMIT');
    }
    const doctor = await runHere(['doctor'], settings, directory);
    expect(doctor).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringContaining('Did you mean CATCHWORD_RATE_LIMIT?'),
    });
  });

  it('are named before what is missing, which may be what was misspelt', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, '.env'), 'CATCHWORD_BASEURL=http://127.0.0.1:1\nCATCHWORD_API_KEY=K\n');
    const ended = await run(['sync'], {}, directory);
    expect(ended.stderr).toMatch(/^note .*Did you mean CATCHWORD_BASE_URL\?\nerror CATCHWORD_BASE_URL is not set/);
  });
});
