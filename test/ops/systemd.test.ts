// @module-tag slow
import { execFile } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv, promisify } from 'node:util';
import { unknownSettings } from '@catchword/settings/unknown-settings';
import { python, sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { describe, expect, it, onTestFinished } from 'vitest';
import { VERBS } from '../../src/cli/verb-table.ts';
import { addressOf, CLI, startProcess } from '../support/cli.ts';
import { catalogOf } from '../support/mirror.ts';
import { place } from '../support/place.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SINGLE = join(ROOT, 'ops/catchword.service');
const TEMPLATE = join(ROOT, 'ops/catchword@.service');
const run = promisify(execFile);

/** systemd rates a unit from 0 (confined) to 10; what is left here is the network, and that Node.js compiles code. */
const MOST_EXPOSURE = 1.5;

async function systemdAnalyze(...args: string[]): Promise<{ code: number; output: string } | null> {
  try {
    const { stdout, stderr } = await run('systemd-analyze', args);
    return { code: 0, output: `${stdout}${stderr}` };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number | string; stdout: string; stderr: string };
    if (code === 'ENOENT' && process.env.CI === undefined) return null;
    return { code: Number(code), output: `${stdout}${stderr}` };
  }
}

/** The lines that the documents add to a unit, so that another user can read the mirror. */
const FOR_READERS =
  /```ini\n(\[Service\]\nDynamicUser=no\n[^`]*)```/.exec(readFileSync(join(ROOT, 'docs/systemd.md'), 'utf8'))?.[1] ??
  '';
/** A unit's settings by name, each with its values. */
function unit(path: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [, name = '', value = ''] of readFileSync(path, 'utf8').matchAll(/^(\w+)=(.*)$/gm))
    found.set(name, [...(found.get(name) ?? []), value]);
  return found;
}

const UNITS = [
  ['catchword.service', SINGLE, ''],
  ['catchword@.service', TEMPLATE, 'shop'],
] as const;

describe('the units of systemd', () => {
  it.each(UNITS)('%s is valid', async (_name, path, instance) => {
    const copy = join(temporaryDirectory(), basename(path).replace('@', `@${instance}`));
    // Node.js can be anywhere on a developer's machine.
    writeFileSync(copy, readFileSync(path, 'utf8').replace('ExecStart=node ', `ExecStart=${process.execPath} `));
    const verified = await systemdAnalyze('verify', copy);
    if (verified !== null) expect(verified).toEqual({ code: 0, output: '' });
  });

  it.each(UNITS)('%s is confined', async (_name, path, instance) => {
    const copy = join(temporaryDirectory(), basename(path).replace('@', `@${instance}`));
    copyFileSync(path, copy);
    const threshold = `--threshold=${MOST_EXPOSURE * 10}`;
    const rated = await systemdAnalyze('security', '--offline=true', threshold, copy);
    if (rated !== null)
      expect(rated).toMatchObject({ code: 0, output: expect.stringContaining('Overall exposure level') });
  });

  it('both units are the same, except for the name of the catalog', () => {
    const body = (path: string) => readFileSync(path, 'utf8').replace(/^(#.*\n)+|^Description=.*\n/gm, '');
    const places = /(?<=\/etc\/|%S\/|^StateDirectory=)catchword/gm;
    expect(body(TEMPLATE)).toBe(body(SINGLE).replace(places, 'catchword/%i'));
  });

  it.each(UNITS)(
    '%s starts a daemon that serves /healthz, fills the mirror and stops with 0',
    async (_name, path, instance) => {
      const settings = unit(path);
      const { settings: own, directory } = await place({ items: 50 });
      const credentials = join(directory, 'credentials');
      mkdirSync(credentials);
      const given: Record<string, string> = {
        'api-key': own.CATCHWORD_API_KEY ?? '',
        'access-token': own.CATCHWORD_ACCESS_TOKEN ?? '',
      };
      for (const one of settings.get('LoadCredential') ?? []) {
        const [name = '', source = ''] = one.split(':');
        expect(source).toBe(`/etc/catchword/${instance === '' ? '' : '%i/'}${name}`);
        writeFileSync(join(credentials, name), given[name] ?? '', { mode: 0o400 });
      }
      // What systemd does: the directories, the specifiers, and the environment.
      const state = join(directory, 'state');
      const expanded = (text: string): string =>
        text.replaceAll('%S', state).replaceAll('%d', credentials).replaceAll('%i', instance);
      const [stateDirectory = ''] = settings.get('StateDirectory') ?? [];
      const home = join(state, expanded(stateDirectory));
      mkdirSync(home, { recursive: true });
      expect(expanded(settings.get('WorkingDirectory')?.[0] ?? '')).toBe(home);
      const environment = {
        ...(parseEnv((settings.get('Environment') ?? []).join('\n').replaceAll(' ', '\n')) as Record<string, string>),
        CATCHWORD_BASE_URL: own.CATCHWORD_BASE_URL ?? '',
        CATCHWORD_HTTP_PORT: '0',
      };
      for (const [name, value] of Object.entries(environment))
        environment[name as keyof typeof environment] = expanded(value);
      expect(unknownSettings(environment)).toEqual([]);
      const [program, cli = '', verb, ...more] = (settings.get('ExecStart')?.[0] ?? '').split(' ');
      expect({ program, more }).toEqual({ program: 'node', more: [] });
      expect(VERBS.map(({ name }) => name)).toContain(verb);
      const local = cli.replace('/opt/catchword/node_modules/catchword/', ROOT);
      const daemon = startProcess([process.execPath, local, verb ?? ''], environment, home);
      onTestFinished(() => void daemon.child.kill('SIGKILL'));
      const address = await addressOf(daemon);
      expect((await fetch(`${address}/healthz`)).status).toBe(200);
      await daemon.shows('run complete');
      expect(catalogOf(join(home, 'catalog.db')).size).toBe(50);
      expect(await daemon.stop()).toMatchObject({ code: 0, signal: null });
    },
  );

  /** A unit with lines of an administrator (`systemctl edit`), in a directory of its own. */
  function edited(lines: string): string {
    const copy = join(temporaryDirectory(), 'catchword.service');
    writeFileSync(copy, readFileSync(SINGLE, 'utf8').replace('ExecStart=node ', `ExecStart=${process.execPath} `));
    mkdirSync(`${copy}.d`);
    writeFileSync(`${copy}.d/override.conf`, lines);
    return copy;
  }

  it('the lines of the documents for another user leave a unit valid and confined', async () => {
    const copy = edited(FOR_READERS);
    const verified = await systemdAnalyze('verify', copy);
    if (verified !== null) expect(verified).toEqual({ code: 0, output: '' });
    const rated = await systemdAnalyze('security', '--offline=true', `--threshold=${MOST_EXPOSURE * 10}`, copy);
    if (rated !== null) expect(rated).toMatchObject({ code: 0 });
  });

  it.each([
    ['p%40ss', /Failed to resolve specifiers in CATCHWORD_SINK_SHOP=.*ignoring/],
    ['p%%40ss', /^$/],
  ])('systemd says of an address in Environment= with %s what the documents say', async (password, said) => {
    const address = `postgres://shop:${password}@db.example/shop`;
    const verified = await systemdAnalyze('verify', edited(`[Service]\nEnvironment=CATCHWORD_SINK_SHOP=${address}\n`));
    if (verified !== null) expect(verified.output.trim()).toMatch(said);
  });

  it.skipIf(process.geteuid?.() !== 0 || !sqliteToolsAvailable)(
    'a user of the group reads the mirror of a daemon with the rights that the documents give it',
    async () => {
      const rights = unit(edited(FOR_READERS).concat('.d/override.conf'));
      const { settings, directory } = await place({ items: 50 }, { LOG_LEVEL: 'info' });
      chmodSync(directory, 0o755);
      const state = join(directory, 'state');
      // As systemd makes the directory, for the user and the group of the unit.
      const [daemonUser, group, reader] = [61_001, 61_002, 61_003];
      mkdirSync(state);
      chownSync(state, daemonUser, group);
      chmodSync(state, Number.parseInt(rights.get('StateDirectoryMode')?.[0] ?? '', 8));
      const [, mode = ''] = rights.get('Environment')?.[0]?.split('=') ?? [];
      const db = join(state, 'catalog.db');
      const given = { ...settings, CATCHWORD_DB: db, CATCHWORD_DB_MODE: mode, CATCHWORD_HTTP_PORT: '0' };
      const umask = unit(SINGLE).get('UMask')?.[0] ?? '';
      const command = ['sh', '-c', `umask ${umask}; exec "$0" "$@"`, process.execPath, CLI, 'daemon'];
      const daemon = startProcess(command, given, state, { uid: daemonUser, gid: group });
      onTestFinished(() => void daemon.child.kill('SIGKILL'));
      await daemon.shows('run complete');
      const count = (gid: number) => python(db, 'SELECT count(*) FROM catalog', { uid: reader, gid });
      expect(await count(group)).toEqual(['50']);
      await expect(count(reader)).rejects.toThrow('unable to open database file');
      expect(await daemon.stop()).toMatchObject({ code: 0 });
      expect(await count(group)).toEqual(['50']);
    },
  );
});
