import { readFileSync } from 'node:fs';
import { COLUMNS, ROWS } from '@catchword/catalog/fields';
import { describe, expect, it } from 'vitest';
import type * as z from 'zod';
import { KINDS } from '../src/relay/kinds/kinds.ts';
import { SUMMARY } from '../src/shown/run-summary.ts';
import { CHANGE } from '../src/shown/shown-change.ts';
import { CHANNEL } from '../src/shown/shown-channel.ts';
import { DECISION } from '../src/shown/shown-decision.ts';
import { PARKED } from '../src/shown/shown-parked.ts';
import { PROBLEM } from '../src/shown/shown-problem.ts';
import { PROCESS } from '../src/shown/shown-process.ts';
import { REJECTED } from '../src/shown/shown-rejected.ts';
import type { Row } from '../src/shown/shown-row.ts';
import { RUN } from '../src/shown/shown-run.ts';
import { SETTING } from '../src/shown/shown-setting.ts';
import { SINK } from '../src/shown/shown-sink.ts';
import { STATUS } from '../src/shown/shown-status.ts';
import { SOURCES as files, importedSource, PACKAGES, sourceText } from './support/sources.ts';

const ROOT = new URL('..', import.meta.url);

/** Rooms that every other one may import. */
const COMMON = ['base', 'pace'];

const KITS = ['sink-kit', 'sink-nats', 'sink-redis', 'sink-s3', 'sink-sql'];

/** The rooms that a room of src may import from, besides itself and the common ones. The compiler keeps those of packages. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  proof: ['catalog'],
  store: ['catalog', 'proof'],
  state: ['catalog', 'store'],
  view: ['catalog', 'store'],
  relay: ['catalog', 'settings', 'store', 'view', ...KITS],
  contract: ['catalog', 'relay', 'settings', 'sink-kit', 'store'],
  report: ['catalog', 'proof', 'relay', 'settings', 'sink-kit', 'state', 'store', 'view'],
  shown: ['catalog', 'operate', 'relay', 'report', 'settings', 'sink-kit', 'state', 'store'],
  sync: ['catalog', 'client', 'proof', 'queue', 'settings', 'store'],
  // Channels are reached like sinks: signatures, private addresses, secrets in addresses.
  operate: ['catalog', 'relay', 'report', 'settings', 'sink-kit', 'state', 'store', 'sync'],
  http: ['catalog', 'events', 'operate', 'report', 'shown', 'state', 'store', 'view'],
  events: ['catalog'],
  mirror: ['catalog', 'events', 'state', 'store', 'view'],
  cli: ['*'],
};

/** Packages that no room of src may import. */
const OF_PACKAGES =
  'undici bullmq ioredis pg mariadb @nats-io/jetstream @nats-io/transport-node standardwebhooks @rgrove/parse-xml aws4fetch hyparquet hyparquet-writer'.split(
    ' ',
  );

/** Packages that only these rooms of src may import. Those of `packages` have their own manifests, which Biome checks. */
const ONLY_IN: Record<string, readonly string[]> = {
  'better-sqlite3': ['store', 'view'],
  'drizzle-orm': ['store'],
  nodemailer: ['operate'],
  'node-cron': ['operate'],
  croner: ['operate'],
  fastify: ['http'],
  '@fastify/swagger': ['http'],
  'fastify-type-provider-zod': ['http'],
  preact: ['http'],
  'preact-render-to-string': ['http'],
  '@opentelemetry/api': ['operate'],
  '@opentelemetry/sdk-metrics': ['operate'],
  '@opentelemetry/exporter-prometheus': ['operate'],
  'csv-parse': ['cli'],
  'csv-stringify': ['cli'],
  commander: ['cli'],
  ...Object.fromEntries(OF_PACKAGES.map((name) => [name, []])),
};

/** Files that name kinds of stores, besides those in relay/kinds, and why. */
const NAMING_KINDS: Readonly<Record<string, string>> = {
  'base/log.ts': 'a member of log records names the Redis of the queue',
  'base/redis-place.ts': 'the addresses of the Redis of the queue',
  'settings/setting-forms.ts': 'the addresses of the Redis of the queue',
  'queue-redis/check-redis.ts': 'the addresses of the Redis of the queue',
  'operate/incidents/channel-config.ts': 'kinds of channels: a webhook is one, too',
  'contract/subject.ts': 'the setting of a module that handles an address',
  'shown/shown-channel.ts': 'kinds of channels: a webhook is one, too',
  'shown/shown-sink.ts': 'an address as an example',
  'cli/roles/roles.ts': 'an address as an example',
  'cli/commands/demo/demo-stay.ts': 'the sink of the demo',
  'http/pages/layout.tsx': 'a module of JavaScript',
};

interface Import {
  readonly file: string;
  readonly from: string;
}

function importsOf(file: string): Import[] {
  const text = sourceText(file);
  const found = text.matchAll(
    /^(?:import|export)\b[^;]*?\bfrom\s+'([^']+)';|^import '([^']+)';|\bimport\('([^']+)'\)/gm,
  );
  return [...found].map((match) => ({ file, from: match[1] ?? match[2] ?? match[3] ?? '' }));
}

/** The room of a file in src; `cli` for the entry. */
function layerOf(file: string): string {
  const [head = ''] = file.split('/');
  return head.replace(/\.tsx?$/, '');
}

const imports = files.flatMap(importsOf);
const local = imports.flatMap(({ file, from }) => {
  const to = importedSource(file, from);
  return to === undefined ? [] : { file, to };
});

/** The package of a file in it; the name of a module of Node.js. */
function packageOf(from: string): string {
  return /^(?:@[^/]+\/)?[^/]+/.exec(from)?.[0] ?? from;
}

/** The files and packages that are loaded with a file, without those that it imports on demand. */
function loadedBy(entry: string): Set<string> {
  const loaded = new Set<string>();
  const load = (file: string): void => {
    loaded.add(file);
    const text = /\.tsx?$/.test(file) ? sourceText(file) : '';
    for (const [, from = ''] of text.matchAll(/^import (?!type )[^;]*?'([^']+)';/gm)) {
      const next = importedSource(file, from) ?? packageOf(from);
      if (!loaded.has(next)) load(next);
    }
  };
  load(entry);
  return loaded;
}

interface Manifest extends Readonly<Record<string, unknown>> {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
}

/** @param directory of a package, from the root of the project */
function manifestOf(directory: string): Manifest {
  return JSON.parse(readFileSync(new URL(`${directory}/package.json`, ROOT), 'utf8')) as Manifest;
}

/** The rooms that are packages, and those that the compiler lets each import. */
const REFERENCES = new Map(
  PACKAGES.map((name) => {
    const text = readFileSync(new URL(`packages/${name}/tsconfig.json`, ROOT), 'utf8');
    const { references } = JSON.parse(text) as { references: readonly { readonly path: string }[] };
    return [name, references.map(({ path }) => path.replace('../', ''))] as const;
  }),
);

describe('architecture', () => {
  it('importsOf finds imports', () => {
    expect(local.length).toBeGreaterThan(100);
  });

  it('imports go in one direction only', () => {
    const wrong = local.filter(({ file, to }) => {
      const [own, other] = [layerOf(file), layerOf(to)];
      if (own === other || (COMMON.includes(other) && !REFERENCES.has(own))) return false;
      const allowed = REFERENCES.get(own) ?? MAY_IMPORT[own] ?? [];
      return !allowed.includes('*') && !allowed.includes(other);
    });
    expect(wrong).toEqual([]);
  });

  it('a package is compiled against the packages that it imports, and depends on the versions of the whole', () => {
    const whole = manifestOf('.');
    const versions = { ...whole.dependencies, ...whole.optionalDependencies, ...whole.devDependencies };
    for (const [name, references] of REFERENCES) {
      const { dependencies, optionalDependencies, devDependencies } = manifestOf(`packages/${name}`);
      const named = { ...dependencies, ...optionalDependencies, ...devDependencies };
      expect(versions, name).toMatchObject(named);
      const imported = local.filter(({ file }) => layerOf(file) === name).map(({ to }) => layerOf(to));
      expect(new Set(imported.filter((room) => room !== name)), name).toEqual(new Set(references));
    }
  });

  it('sync imports only the port of queue', () => {
    const wrong = local.filter(
      ({ file, to }) => layerOf(file) === 'sync' && layerOf(to) === 'queue' && to !== 'queue/queue-port.ts',
    );
    expect(wrong).toEqual([]);
  });

  it('only state decides how the mirror is', () => {
    const decides = /\b(clockSeen|recentRuns\.(ended|read|restless)|diskOf|stopped' \|\|)/;
    const owners = ['state', 'store', 'sync'];
    const wrong = files.filter((file) => !owners.includes(layerOf(file)) && decides.test(sourceText(file)));
    // The metric shows when runs of each kind ended; doctor forecasts the size of the file.
    expect(wrong.sort()).toEqual(['cli/commands/doctor/disk-check.ts', 'operate/metrics/mirror-metrics.ts']);
  });

  it('only judge-item, and the accelerators, decide whether an item has changed', () => {
    const judges = /\bdifference\(|products\.match\(|ithdrawn(Body\(body\))? && |\? items\.withdrawn/;
    const wrong = files.filter((file) => layerOf(file) === 'sync' && judges.test(sourceText(file)));
    // compare-mirrors is for `verify`, which compares two mirrors.
    expect(wrong.sort()).toEqual(['sync/compare-mirrors.ts', 'sync/fast/unchanged-items.ts', 'sync/judge-item.ts']);
  });

  it('only the table of fields says where in a product a field is', () => {
    const names = ROWS.flatMap(({ path }) => path.split('.'));
    // Names of one word, of columns and of SQLite mean other things too: forbidden is how one reads them from an item.
    const known = ['page_count', ...COLUMNS.map(({ column }) => column)];
    const own = names.filter((name) => name.includes('_') && !known.includes(name));
    const reading = String.raw`body, '\$\.|\b(fields|members)(\.|\.get\('|\[')`;
    const old = new RegExp(`\\b(${own.join('|')})\\b|(${reading})(${names.join('|')})\\b`);
    // These have other objects with such members: books, assets and the items that the sandbox makes.
    const others = /^(sandbox|client)\/|^cli\/commands\/(asset|licenses)/;
    const wrong = files.filter((file) => !others.test(file) && old.test(sourceText(file)));
    expect(wrong).toEqual(['catalog/fields.ts']);
  });

  it('lets only the run judge seams: the picture of a run shows what it noted, and previews neighbours before', () => {
    const users = files.flatMap((file) => {
      const [, names] = /import \{([^}]*)\} from '[^']*\/seams\.ts'/.exec(sourceText(file)) ?? [];
      return names === undefined || ['proof', 'sync'].includes(layerOf(file)) ? [] : [`${file}:${names.trimEnd()}`];
    });
    expect(users).toEqual(['report/run-watch.ts: previewSeam']);
    // A seam depends on what has changed since. Rules that ask for it to draw a picture would judge again.
    const asks = files.filter((file) => /changedSeq\(/.test(sourceText(file)));
    expect(asks.filter((file) => ['report', 'http'].includes(layerOf(file)))).toEqual([]);
  });

  it('only src/shown lists the names and members of what people look at', () => {
    const things: readonly (readonly Row<never>[])[] = [
      STATUS,
      RUN,
      SUMMARY,
      SINK,
      DECISION,
      PROBLEM,
      CHANNEL,
      CHANGE,
      PARKED,
      REJECTED,
      PROCESS,
      SETTING,
    ];
    const oneOf = (names: readonly string[], end: string) => new RegExp(`^ +'?(${names.join('|')})'?: ?${end}`, 'gm');
    const forms = things.map((rows) => ({
      labels: oneOf(
        rows.flatMap(({ label = '' }) => (/^[A-Z]/.test(label) ? [label] : [])),
        '',
      ),
      members: oneOf(
        rows.map(({ key }) => key),
        '(?:z|count|text|time|orNull|list|object)\\w*[.(]',
      ),
    }));
    const distinct = (text: string, form: RegExp) => new Set([...text.matchAll(form)].map(([, name]) => name)).size;
    // Some names mean other things too: three names, or four members, are a second declaration.
    const wrong = files.filter((file) => {
      if (!['cli', 'http', 'operate', 'report'].includes(layerOf(file))) return false;
      const text = sourceText(file);
      return forms.some(({ labels, members }) => distinct(text, labels) > 2 || distinct(text, members) > 3);
    });
    expect(wrong).toEqual([]);
  });

  it('each package is imported only where it belongs', () => {
    const wrong = imports.filter(({ file, from }) => {
      const name = Object.keys(ONLY_IN).find((known) => from === known || from.startsWith(`${known}/`));
      return name !== undefined && !REFERENCES.has(layerOf(file)) && !ONLY_IN[name]?.includes(layerOf(file));
    });
    expect(wrong).toEqual([]);
  });

  it('file names are unique, but for the service and its double', () => {
    const names = new Map<string, string[]>();
    for (const file of files) {
      const name = (file.split('/').at(-1) ?? '').replace(/\.tsx?$/, '');
      names.set(name, [...(names.get(name) ?? []), file]);
    }
    const isTwin = (found: readonly string[]): boolean =>
      found.length === 2 && found.map(layerOf).sort().join() === 'client,sandbox';
    expect([...names.values()].filter((found) => found.length > 1 && !isTwin(found))).toEqual([]);
  });

  it('imports form no cycle', () => {
    const next = new Map<string, string[]>();
    for (const { file, to } of local) next.set(file, [...(next.get(file) ?? []), to]);
    const done = new Set<string>();
    const cycles: string[][] = [];
    const visit = (file: string, path: string[]): void => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file]);
      if (path.includes(file) || done.has(file)) return;
      for (const to of next.get(file) ?? []) visit(to, [...path, file]);
      done.add(file);
    };
    for (const file of files) visit(file, []);
    expect(cycles).toEqual([]);
  });

  it('only the entry, and the switch for tests, read the environment of the process', () => {
    const wrong = files.filter((file) => /process\.env\b/.test(sourceText(file)));
    expect(wrong.sort()).toEqual(['base/plain.ts', 'cli.ts']);
  });

  it('the entry loads no command, and no package but commander', () => {
    const loaded = loadedBy('cli.ts');
    const others = [...loaded].filter(
      (name) => !/^(node:|base\/|settings\/|cli\/(program|verb-table)\.ts$|cli\.ts$)/.test(name),
    );
    expect(others).toEqual(['commander']);
    expect(loaded.size).toBeLessThanOrEqual(21);
  });

  it('the library loads no package that is optional, or only a part of the programs', () => {
    const manifest = manifestOf('.');
    const packages = ['client/client.ts', 'events/events.ts', 'sink-kit/sink.ts'].flatMap((entry) =>
      [...loadedBy(entry)].filter((name) => !/^node:|\.ts$/.test(name)),
    );
    expect(packages).toContain('undici');
    expect(packages.filter((name) => !(name in manifest.dependencies))).toEqual([]);
  });

  it('npm ci can verify each package that is not only for development', () => {
    const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', ROOT), 'utf8')) as {
      packages: Record<string, { integrity?: string; dev?: boolean; link?: boolean }>;
    };
    const installed = Object.entries(packages).filter(
      ([path, { dev, link }]) => /node_modules/.test(path) && !dev && !link,
    );
    expect(installed.length).toBeGreaterThan(100);
    expect(installed.filter(([, { integrity }]) => integrity === undefined).map(([path]) => path)).toEqual([]);
  });

  it('the package of the client has what its exports load, as the whole package has it', () => {
    const [whole, client] = [manifestOf('.'), manifestOf('packages/client')];
    // The sandbox loads its server when it is started.
    const entries = ['client/client.ts', 'events/events.ts', 'sandbox/sandbox.ts', 'sandbox/sandbox-server.ts'];
    const packages = entries.flatMap((entry) => [...loadedBy(entry)].filter((name) => !/^node:|\.ts$/.test(name)));
    expect(Object.keys(client.dependencies).sort()).toEqual([...new Set(packages)].sort());
    expect(whole.dependencies).toMatchObject({ ...client.dependencies, ...client.peerDependencies });
    for (const path of ['.', './events', './sandbox']) expect(client.exports[path]).toEqual(whole.exports[path]);
    for (const field of ['version', 'license', 'type', 'engines', 'publishConfig', 'repository'])
      expect(client[field], field).toEqual(whole[field]);
  });

  it('a daemon without channels and a heartbeat loads nothing that sends notifications', () => {
    const loaded = [...loadedBy('operate/incidents/notifier.ts'), ...loadedBy('operate/incidents/heartbeat.ts')];
    expect(loaded).toContain('relay/sink-config.ts');
    expect(
      loaded.filter((name) => /^(nodemailer|undici|standardwebhooks)$|^operate.incidents.channels/.test(name)),
    ).toEqual([]);
  });

  it('only a kind of store itself, and the list of kinds, name it', () => {
    const names = Object.keys(KINDS).join('|');
    const schemes = Object.values(KINDS).flatMap(({ schemes: own }) => own.map((scheme) => scheme.replace('+', '\\+')));
    // A value that is a name or begins with a scheme, a member with such a name, and a name in an expression of texts.
    const naming = new RegExp(
      `(['"\`])(?:${names})\\1|(?<![\\w.])(?:${schemes.join('|')})(?!\\s)|^ +(?:${names}): [{'"\`]|\\((?:${names})\\|`,
      'm',
    );
    const comments = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ .*$/gm;
    const wrong = files.filter(
      (file) => !/^(relay\/kinds|sink-\w+)\//.test(file) && naming.test(sourceText(file).replace(comments, '')),
    );
    expect(wrong.sort()).toEqual(Object.keys(NAMING_KINDS).sort());
  });

  it('each option of a kind of store has its description, as people write it', () => {
    const undescribed = Object.entries(KINDS).flatMap(([kind, { options }]) =>
      Object.entries(options).flatMap(([name, type]) => {
        const written = Object.keys((type as z.ZodType).meta() ?? {});
        return written.some((one) => one.startsWith(`${name}=`)) ? [] : [`${kind}: ${name}`];
      }),
    );
    expect(undescribed).toEqual([]);
  });

  it('reading the settings of sinks loads no driver of a store', () => {
    const loaded = [...loadedBy('relay/sink-config.ts')];
    expect(loaded).toContain('relay/kinds/kinds.ts');
    expect(loaded.filter((name) => !/^(node:|(zod|better-sqlite3)$)|\.ts$/.test(name))).toEqual([]);
    expect(loaded.filter((name) => /^(sink-(?!kit)|relay.kinds).*-sink\.ts$/.test(name))).toEqual([]);
  });

  it('no statement is prepared that could be garbage-collected (see store/schema/statements.ts)', () => {
    const wrong = files.filter((file) => /\.(iterate|pragma)\(/.test(sourceText(file)));
    expect(wrong).toEqual([]);
  });

  it('zod is imported as a namespace, of which the bundle keeps only what is used', () => {
    const wrong = files.filter((file) => /^import \{[^}]*\} from 'zod/m.test(sourceText(file)));
    expect(wrong).toEqual([]);
  });

  it('drizzle-orm is loaded as CommonJS, because its ES modules take 200 MB on newer versions of Node.js', () => {
    const loaded = files.filter((file) => /^(?:import|export) (?!type )[^;]*from 'drizzle-orm/m.test(sourceText(file)));
    expect(loaded).toEqual([]);
  });
});
