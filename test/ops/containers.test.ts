// @module-tag slow
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readSettings } from '@catchword/settings/config';
import { unknownSettings } from '@catchword/settings/unknown-settings';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { VERBS } from '../../src/cli/verb-table.ts';
import { addressOf, startProcess } from '../support/cli.ts';
import { keptSqlite } from '../support/package.ts';
import { place } from '../support/place.ts';

/* No image is built here: the steps of the Dockerfile run as commands in directories, one for each stage. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);
const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** Has a directory for each stage. */
const image = mkdtempSync(join(tmpdir(), 'catchword-image-'));

afterAll(() => rmSync(image, { recursive: true, force: true }));

function steps() {
  const lines = text('Dockerfile')
    .replace(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const [, name = '', args = ''] = /^(\w+) +(.*)$/.exec(line) ?? [];
      return { name, args };
    });
}

const STEPS = steps();
const last = (name: string): string => STEPS.findLast((step) => step.name === name)?.args ?? '';
const words = (json: string): string[] => z.array(z.string()).parse(JSON.parse(json));

/** The names that .dockerignore lets into a build, all others being excluded. */
function context(): string[] {
  const [first, ...rest] = text('.dockerignore').trim().split('\n');
  expect(first).toBe('*');
  return rest.map((line) => line.replace(/^!/, ''));
}

/** Carries out the steps of all stages. @returns the directory of the last one */
async function build(): Promise<string> {
  const prebuilt = keptSqlite();
  const stages = new Map<string, string>();
  let root = '';
  let here = '';
  const within = (path: string): string => (path.startsWith('/') ? join(root, path) : join(root, here, path));
  for (const { name, args } of STEPS) {
    if (name === 'FROM') {
      const stage = / AS (\w+)$/.exec(args)?.[1] ?? 'last';
      root = join(image, stage);
      stages.set(stage, root);
    } else if (name === 'WORKDIR') {
      here = args;
      mkdirSync(within(''), { recursive: true });
    } else if (name === 'COPY') {
      const [, from, list = ''] = /^(?:--from=(\w+) )?(.*)$/.exec(args) ?? [];
      const paths = list.split(' ');
      const to = paths.pop() ?? '';
      for (const path of paths) {
        if (from === undefined) expect(context()).toContain(path);
        const source = from === undefined ? join(ROOT, path) : join(stages.get(from) ?? '', path);
        cpSync(source, to === './' ? within(path) : within(to), { recursive: true, verbatimSymlinks: true });
      }
    } else if (name === 'RUN' && args === 'npm ci --ignore-scripts') {
      // This checkout was installed from the same lock file.
      symlinkSync(join(ROOT, 'node_modules'), within('node_modules'));
    } else if (name === 'RUN') {
      // This machine may not have a user called node, and is not the image.
      const command = args.replace('-o node -g node ', '').replaceAll(' /data', ` ${join(root, 'data')}`);
      const env = {
        ...process.env,
        npm_config_better_sqlite3_local_prebuilds: prebuilt,
        npm_config_prefer_offline: 'true',
        // The argument of the build.
        PACKAGES: 'mariadb',
      };
      await run('sh', ['-c', command], { cwd: within(''), env });
    }
  }
  return root;
}

describe('the Dockerfile', () => {
  it('makes an image that runs as a user who is not root, on a Node.js that is supported', () => {
    expect(last('USER')).toBe('node');
    const bases = STEPS.filter(({ name }) => name === 'FROM').map(({ args }) => args.split(' ')[0]);
    expect(bases.every((base) => /^node:20-bookworm(-slim)?$/.test(base ?? ''))).toBe(true);
    expect(bases.at(-1)).toMatch(/-slim$/);
    expect(VERBS.map(({ name }) => name)).toContain(words(last('CMD'))[0]);
  });

  it('copies what its steps need: the program starts, and the health check notices whether it runs', async () => {
    const root = await build();
    expect(existsSync(join(root, 'app/node_modules/typescript'))).toBe(false);
    // A package that the build was asked for.
    expect(existsSync(join(root, 'app/node_modules/mariadb'))).toBe(true);
    const { settings } = await place({ items: 50 });
    const declared = Object.fromEntries(
      last('ENV')
        .split(' ')
        .map((one) => one.split('=') as [string, string]),
    );
    expect(unknownSettings(declared)).toEqual([]);
    const data = join(root, 'data');
    const inside = (path: string): string => path.replace(/^\/app/, join(root, 'app')).replace(/^\/data/, data);
    const env = {
      ...settings,
      ...declared,
      CATCHWORD_DB: inside(declared.CATCHWORD_DB ?? ''),
      CATCHWORD_HTTP_PORT: '0',
    };
    const program = [...words(last('ENTRYPOINT')), ...words(last('CMD'))].map(inside);
    const daemon = startProcess(program, { ...env, LOG_LEVEL: 'info' }, data);
    onTestFinished(() => void daemon.child.kill('SIGKILL'));
    const { port } = new URL(await addressOf(daemon));
    const [check = '', ...rest] = words(/CMD (\[.*)$/.exec(last('HEALTHCHECK'))?.[1] ?? '[]');
    const isHealthy = async (): Promise<boolean> => {
      const checked = run(check, rest, { env: { PATH: process.env.PATH, CATCHWORD_HTTP_PORT: port } });
      return await checked.then(
        () => true,
        () => false,
      );
    };
    expect(await isHealthy()).toBe(true);
    await daemon.shows('run complete');
    expect(existsSync(join(data, 'catalog.db'))).toBe(true);
    expect(await daemon.stop()).toMatchObject({ code: 0 });
    expect(await isHealthy()).toBe(false);
  });
});

const COMPOSE = z.object({
  services: z.record(
    z.string(),
    z.object({
      build: z.string().optional(),
      command: z.array(z.string()),
      environment: z.record(z.string(), z.string()).default({}),
      secrets: z.array(z.string()).default([]),
      volumes: z.array(z.string()).default([]),
      depends_on: z.array(z.string()).default([]),
      ports: z.array(z.string()).default([]),
      init: z.boolean().optional(),
      stop_grace_period: z.string().optional(),
    }),
  ),
  volumes: z.record(z.string(), z.unknown()),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
});

describe.each(['ops/compose.yaml', 'ops/compose.roles.yaml'])('%s', (path) => {
  const { services, volumes, secrets } = COMPOSE.parse(parse(text(path), { merge: true }));
  const own = Object.entries(services).filter(([, { build: from }]) => from !== undefined);

  it('runs verbs that exist, with an end that they have time for', () => {
    expect(own.length).toBeGreaterThan(0);
    for (const [name, service] of own) {
      expect(VERBS.map((verb) => verb.name)).toContain(service.command[0]);
      expect(service, name).toMatchObject({ init: true, stop_grace_period: '45s' });
      expect(existsSync(join(ROOT, dirname(path), service.build ?? '', 'Dockerfile'))).toBe(true);
      expect(service.ports.every((port) => port.startsWith('127.0.0.1:'))).toBe(true);
    }
  });

  it('names only volumes, secrets and services that it declares', () => {
    for (const [name, service] of own) {
      expect(
        service.secrets.filter((one) => !(one in secrets)),
        name,
      ).toEqual([]);
      expect(
        service.volumes.filter((one) => !((one.split(':')[0] ?? '') in volumes)),
        name,
      ).toEqual([]);
      expect(
        service.depends_on.filter((one) => !(one in services)),
        name,
      ).toEqual([]);
    }
  });

  it.each(own)('gives %s only settings that are valid', (_name, { environment, secrets: given }) => {
    const directory = join(image, 'secrets');
    mkdirSync(directory, { recursive: true });
    for (const secret of given) writeFileSync(join(directory, secret), 'secret');
    const expanded = Object.entries(environment).map(([name, value]) => [
      name,
      value.replace(/\$\{CATCHWORD_BASE_URL:.*\}/, 'https://service.example').replace('/run/secrets', directory),
    ]);
    const settings = Object.fromEntries(expanded) as Record<string, string>;
    expect(unknownSettings(settings)).toEqual([]);
    expect(readSettings(settings).problems).toEqual([]);
    const files = Object.entries(environment).filter(([name]) => name.endsWith('_FILE') && !name.includes('SINK'));
    expect(files.map(([, file]) => file.replace('/run/secrets/', '')).sort()).toEqual([...given].sort());
  });
});
