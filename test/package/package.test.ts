// @module-tag slow
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { serveHttp } from '@catchword/testing/listen';
import { beforeAll, expect, it } from 'vitest';
import { brokenLinks } from '../docs/links.ts';
import { installPackage } from '../support/package.ts';
import { directoryOfFile } from './fresh-project.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/.bin/tsc');
const run = promisify(execFile);

/** Another project, with the packed package and its dependencies in node_modules. */
const project = directoryOfFile('package');
beforeAll(() => installPackage(project));

/** Starts a service that answers by method and path, and checks nothing else. */
async function service(): Promise<string> {
  const answers: Readonly<Record<string, unknown>> = {
    'PUT /v4/assets': { vbid: '9781402894626', title: 'Made', kind: { id: 1, value: 'book' }, cs_plus_discount: 12.5 },
    'GET /v4/products': { num_items: 1, page: 1, per_page: 1000, total_pages: 1, items: [{ vbid: 'A', title: 'One' }] },
    'GET /v4/products/A': { vbid: 'A', title: 'One' },
  };
  return await serveHttp((request, response) => {
    const path = (request.url ?? '').replace(/\?.*/, '');
    if (path === '/v3/licenses.xml') {
      response.writeHead(200, { 'content-type': 'application/xml' });
      response.end('<licenses><license sku="A" type="online" expiration="never"/></licenses>');
      return;
    }
    const answer = answers[`${request.method} ${path}`];
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { errors: ['Book not found'] }));
  });
}

const BODY = `
const out = [];
for await (const { products, totalPages } of client.catalog.products({ from: '2026-01-01T00:00:00Z' })) {
  out.push(products.map(({ vbid, title }) => vbid + ' ' + title).join(), totalPages);
}
const asset = await client.assets.create({ imprint_id: 5, title: 'Made', prices: [{ currency: 'USD', type: 'list', amount: '9.90' }] });
out.push(asset.vbid, asset.kind?.value, asset.cs_plus_discount, (await client.catalog.product('A'))?.title);
out.push(await client.licenses.owns('A'));
try {
  await client.books.read('unknown');
} catch (error) {
  if (error instanceof CatchwordError) out.push(error.code, error.status);
}
await client.close();
process.stdout.write(JSON.stringify(out));
`;

const EXPECTED = ['A One', 1, '9781402894626', 'book', '12.5', 'One', true, 'NOT_FOUND', 404];

it('the published package contains what users need, and no sources, tests, documents for makers or unneeded types', () => {
  const files = readdirSync(join(project, 'node_modules/catchword'), { recursive: true, encoding: 'utf8' });
  for (const file of ['drizzle/meta/_journal.json', 'dist/client/client.d.ts', 'docs/performance.md'])
    expect(files).toContain(file);
  const unneeded = /_snapshot\.json$|^(src|test|bench|docs\/dev|node_modules)(\/|$)|\.map$|\.env/;
  expect(files.filter((file) => unneeded.test(file))).toEqual([]);
  expect(files.filter((file) => /^dist\/(store|sync|http|cli|sandbox)\/(?!sandbox\.d).*\.d\.ts$/.test(file))).toEqual(
    [],
  );
});

it('a package that is installed where catchword is handles an address of its own scheme', async () => {
  const installed = join(project, 'node_modules/queue-sink');
  mkdirSync(installed);
  const manifest = { name: 'queue-sink', version: '1.0.0', type: 'module', exports: { import: './queue-sink.js' } };
  writeFileSync(join(installed, 'package.json'), JSON.stringify(manifest));
  const calls = "open: async () => null, deliver: async () => {}, close: async () => {}, check: async () => 'answers'";
  const module = `export const createSink = () => ({ batch: { events: 1, chars: 1 }, ${calls} });`;
  writeFileSync(join(installed, 'queue-sink.js'), module);
  const sink = { CATCHWORD_SINK_BUS: 'queue://broker.example/topic', CATCHWORD_SINK_BUS_MODULE: 'queue-sink' };
  const program = join(project, 'node_modules/catchword/dist/cli.js');
  // In another directory, where no package is installed. The service is not set, so doctor fails.
  const options = { cwd: tmpdir(), env: { PATH: process.env.PATH, ...sink } };
  const { stdout } = (await run(process.execPath, [program, 'doctor'], options).catch((error: unknown) => error)) as {
    readonly stdout: string;
  };
  expect(stdout).toContain('bus (module, queue://broker.example/topic): answers');
});

it('the published package has no link to a file, or to a heading, that it lacks', () => {
  const directory = join(project, 'node_modules/catchword');
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  const pages = files.filter((file) => file.endsWith('.md'));
  const { links, broken } = brokenLinks(directory, pages);
  expect(links).toBeGreaterThan(100);
  expect(broken).toEqual([]);
});

it('the published package can be used from JavaScript', async () => {
  const script = `import { CatchwordError, createClient } from 'catchword';
      const client = createClient({ baseUrl: process.argv[2], apiKey: 'KEY', accessToken: 'token', rateLimit: 'off' });${BODY}`;
  writeFileSync(join(project, 'use.js'), script);
  const { stdout } = await run(process.execPath, ['use.js', await service()], { cwd: project });
  expect(JSON.parse(stdout)).toEqual(EXPECTED);
});

it('the published package can be used from strict TypeScript that checks all declarations and has none of Node.js', async () => {
  const script = `import type { Sink, SinkEvent } from 'catchword/sink';
      import type { ConnectedStore } from 'catchword/sink/connection';
      import type { ContractCheck, SinkSubject } from 'catchword/sink-contract';
      import { type CatchwordEvent, parseEvent } from 'catchword/events';
      import { type Mirror, type MirrorProduct, openMirror } from 'catchword/mirror';
      import { type Asset, type AssetFields, CatchwordError, type Client, type ClientOptions, createClient } from 'catchword';
      declare const process: { readonly argv: readonly string[]; readonly stdout: { write(text: string): void } };
      const options: ClientOptions = { baseUrl: process.argv[2] ?? '', apiKey: 'KEY', accessToken: 'token', rateLimit: 'off' };
      const client: Client = createClient(options);${BODY.replace('const out = []', 'const out: unknown[] = []')}
      export const fields: AssetFields = { copy_drm_limit: '-1', edition: 3, identifiers: { e_isbn_10: null } };
      export const title = (one: Asset): string | undefined => one.variants?.[0]?.prices?.[0]?.price;
      export const isLarge = ({ text }: SinkEvent, { batch }: Sink): boolean => text.length > batch.chars;
      export const leave: ConnectedStore<{ end(): Promise<void> }, readonly SinkEvent[]>['leave'] = (db) => db.end();
      export const isOnce = ({ effectivelyOnce }: SinkSubject, { name }: ContractCheck): boolean => effectivelyOnce && name !== '';
      export const titleNow = ({ data }: CatchwordEvent): string | null | undefined => data.op === 'removed' ? data.before?.title : data.product.title;
      export const extra = (text: string): unknown => parseEvent(text).data.product?.['field of one service'];
      export const price = ({ product }: MirrorProduct) => product.variants?.[0]?.prices?.[0]?.value;
      export async function copy(path: string): Promise<number> {
        const mirror: Mirror = openMirror(path);
        for await (const batch of mirror.products({ batch: 10 })) batch.map(price);
        for await (const { data } of mirror.changes({ follow: true, signal: new AbortController().signal })) if (data.run > 1) break;
        mirror.close();
        return mirror.search('a').length;
      }
      // @ts-expect-error a removed product is null
      export const wrongOp = ({ data }: CatchwordEvent): string => data.op === 'removed' ? data.product.title : '';
      // @ts-expect-error a misspelt field
      export const wrong: AssetFields = { titel: 'A' };
      // @ts-expect-error a title must be a string
      export const wrongType = (): unknown => client.assets.update('A', { title: 5 });
    `;
  writeFileSync(join(project, 'use-typed.ts'), script);
  const compilerOptions = {
    target: 'es2022',
    module: 'nodenext',
    types: [],
    strict: true,
    skipLibCheck: false,
    outDir: 'out',
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
  };
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['use-typed.ts'] }));
  const compiled = await run(TSC, ['-p', project]).catch((error: { stdout: string }) => error);
  expect(compiled.stdout).toBe('');
  const { stdout } = await run(process.execPath, ['out/use-typed.js', await service()], { cwd: project });
  expect(JSON.parse(stdout)).toEqual(EXPECTED);
});

it('the published package has no effect when imported, and exports only its public entries', async () => {
  const script = `import 'catchword';
      const tried = await Promise.allSettled([import('catchword/dist/settings/config.js'), import('catchword/sink'), import('catchword/sink-contract'),
        import('catchword/events'), import('catchword/mirror'), import('catchword/schemas/event.json', { with: { type: 'json' } })]);
      process.stdout.write(JSON.stringify(tried.map(({ status }) => status)));`;
  writeFileSync(join(project, 'entries.js'), script);
  const { stdout } = await run(process.execPath, ['entries.js'], { cwd: project });
  expect(JSON.parse(stdout)).toEqual(['rejected', ...Array<string>(5).fill('fulfilled')]);
});
