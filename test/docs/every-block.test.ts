// @module-tag slow
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { serveHttp } from '@catchword/testing/listen';
import { mariadbAvailable, startMariadb } from '@catchword/testing/mariadb';
import { natsAvailable, startNats } from '@catchword/testing/nats';
import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import type { ServerProcess } from '@catchword/testing/server';
import { sqliteToolsAvailable } from '@catchword/testing/sqlite-tools';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { directoryOfFile } from '../package/fresh-project.ts';
import { addressOf, startProcess } from '../support/cli.ts';
import { installPackage } from '../support/package.ts';
import { BLOCKS } from './blocks.ts';
import { ELSEWHERE, scriptOf, standIns } from './page-script.ts';

/*
 * Runs every block of the README and the documents as a user would, page by page: with the packed package installed, a
 * filled mirror, and stores that it feeds. page-script.ts has what cannot run here, with the reasons.
 */

const MODULES = fileURLToPath(new URL('../../node_modules/', import.meta.url));
const NPX = fileURLToPath(new URL('npx.mjs', import.meta.url));
const run = promisify(execFile);

const phpAvailable = process.env.CI !== undefined || spawnSync('php', ['--version']).status === 0;

const PAGES = [...new Set(BLOCKS.map(({ page }) => page))];
const canRun = [postgresAvailable, mariadbAvailable, redisAvailable, natsAvailable, sqliteToolsAvailable].every(
  Boolean,
);

/** What a page needs, besides what each has, for bash. */
const BEFORE: Readonly<Record<string, string>> = {
  // Each command meets the same held run, because it can be decided about only once.
  'docs/held.md': `curl -s "$CATCHWORD_BASE_URL/_sandbox/mutate" -d '{"remove":3}' >/dev/null
    CATCHWORD_REMOVAL_LIMIT=1 npx catchword sync --full || [ $? = 5 ]
    mv data held
    export CATCHWORD_LOOKUP_PATH=/v4/products/:vbid
    npx() { rm -rf data; cp -r held data; command npx "\${@/#12/3}"; }`,
  // The catalog changes after the mirror was filled.
  'docs/export.md': `curl -s "$CATCHWORD_BASE_URL/_sandbox/mutate" -d '{"update":1}' >/dev/null`,
  // Each command meets the same held sink.
  'docs/bad-night.md': `export CATCHWORD_SINK_SHOP=jsonl:data/shop.jsonl CATCHWORD_SINK_SHOP_FIELDS=title,variants
    npx catchword relay
    CATCHWORD_CURRENCY=XXX npx catchword sync --full
    npx catchword relay
    mv data held; cp -r held data
    npx() {
      case "$*" in *approve*)
        rm -rf data; cp -r held data
        set -- "\${@/NUMBER/$(command npx catchword sink list | sed -n 's/.*approve shop \\([0-9]*\\)\\. Once.*/\\1/p')}";;
      esac
      command npx "$@"
    }`,
  // A relay has filled the table, and goes on.
  'docs/verify.md': `npx() {
      rm -f relay.log
      node node_modules/catchword/dist/cli.js relay 2>relay.log & relay=$!
      until grep -qs 'sink is open' relay.log; do sleep 0.1; done
      command npx "$@"
      kill $relay
    }`,
  'docs/recipes/second-catalog.md': 'mkdir -p books journals; cp -r data books; cp -r data journals',
};

/** What a command or a query prints that finds nothing: its example does not fit the catalog of the sandbox. */
const NOTHING =
  /\b0 (products|changes) (as of|up to) change|^0 products$|"(products|events)":\[\]|\(0 rows\)|create 0 products, update 0 and remove 0/m;
/** A block that asks for something prints it, unless that is a backup. */
const ASKS =
  /^(npx catchword (changes|products?|status|runs|sink (list|preview|parked)) [^>|]*|SELECT .*|\s*(print|console\.log)\(.*|sqlite3 -readonly (?!.*\.backup)[^>]*)$/m;
/** A file that a block writes with what is printed. */
const WRITES = /(?<![<>\d-])> ?([\w/-]+\.(?:csv|ndjson|json|html))\b/g;

/** What a page prints, among other lines. */
const PRINTS: Readonly<Record<string, readonly RegExp[]>> = {
  'docs/bad-night.md': [/^shop: held because: run 3, which comes next, emptied prices of 988 of 988 products\. /m],
  'docs/verify.md': [/^shop, as of change \d+ \(every column.*: 0 differ, 0 missing, 0 extra, 988 equal$/m],
  'docs/stores/mysql.md': [/^vbid\ttitle\tcontributors\tsku\tusd\n(\d{13}\t.+\n)+/m],
  'docs/recipes/mariadb-shop.md': [
    /^it would create [1-9]\d* products, update 0 and remove 0 [\s\S]*\nbooks +live .* mysql .*\n[\s\S]*^<h1>.+<\/h1>\n<p>.+<\/p>\n<ul><li>[A-Z]{3} [\d.]+/m,
    ...(phpAvailable ? [/^<h1>.+<\/h1><p>.*<li>[A-Z]{3} [\d.]+/m] : []),
  ],
  'docs/stores/module.md': [/^(north (created|updated) \d{13} \S.*\n){988}/m],
  'docs/node.md': [/^\d+ products, complete at \d{4}-[\s\S]*\n988\n/m, /^EVENT_INVALID$/m],
  'docs/sql.md': [
    /^vbid\|title\|contributors\|sku\|usd\n(\d{13}\|.+\|\d{13}\|[\d.]+\n){5}/m,
    /^\d{4}-\S+Z\|\d{13}\|\w+\|[A-Z]{3}\|[\d.]+\|[\d.]+$/m,
    /^(\d{13} was .+\n){2}988 products, read up to \d+$/m,
  ],
  'docs/views.md': [
    /^(\{"specversion":.*"product":\{"vbid":"\d{13}","title":"[^"]+","variants":\[.*"view":"entered"\}\}\n){3}/m,
    /^\{"products":\[\{"vbid":"\d{13}","title":"[^"]+","variants":\[.*\],"next":"\d{13}","position":".*","failed":0\}[1-9]\d*\n[1-9]\d*\n(\{"spec.*\n){3}/m,
    /^it would create [1-9]\d* products, update 0 and remove 0 of the 0 that the store has; [1-9]\d* match$[\s\S]*\n(\{"spec.*\n){3}[\s\S]*^it would create [1-9]/m,
  ],
};

describe.skipIf(!canRun)('the documents', { tags: ['stores'] }, () => {
  const postgres = usePostgres();
  const project = directoryOfFile('blocks');
  let sandbox: Sandbox;
  let environment: Record<string, string>;
  const servers: ServerProcess[] = [];

  beforeAll(async () => {
    installPackage(project);
    for (const name of ['eventsource', 'eventsource-parser', 'mariadb', 'standardwebhooks'])
      symlinkSync(join(MODULES, name), join(project, 'node_modules', name));
    mkdirSync(join(project, 'bin'));
    for (const [name, text] of standIns()) {
      writeFileSync(join(project, 'bin', name), text);
      chmodSync(join(project, 'bin', name), 0o755);
    }
    sandbox = await startSandbox({ items: 990, details: true, users: 2, withdrawnForMs: 0 });
    const { stdout: npm } = await run('sh', ['-c', 'command -v npm']);
    environment = {
      PATH: `${join(project, 'bin')}:${process.env.PATH}`,
      CI: process.env.CI ?? '',
      HOME: project,
      npm: npm.trim(),
      npx: NPX,
      tsx: join(MODULES, '.bin/tsx'),
      esbuild: join(MODULES, '.bin/esbuild'),
      PGHOST: '127.0.0.1',
      PGPORT: String(postgres.port),
      PGUSER: 'postgres',
      CATCHWORD_BASE_URL: sandbox.url,
      CATCHWORD_API_KEY: 'SANDBOXKEY',
      CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
      CATCHWORD_RATE_LIMIT: 'off',
      CATCHWORD_DELTA_OVERLAP: '1s',
      CATCHWORD_HTTP_PORT: '0',
      CATCHWORD_HTTP_TOKEN: 'a-token-of-thirty-two-characters',
    };
    servers.push(await startRedis(), await startNats(), await startMariadb());
    await postgres.client.query('CREATE DATABASE fed');
    await run('npx', ['catchword', 'sync'], { cwd: project, env: environment });
    sandbox.catalog.mutate({ remove: 2, update: 3, seed: 1 });
    const sink = { CATCHWORD_SINK_SHOP: `postgres://postgres@127.0.0.1:${postgres.port}/fed?table=books` };
    const fill = 'npx catchword sync --full; npx catchword relay';
    await run('bash', ['-ec', fill], { cwd: project, env: { ...environment, ...sink } });
  }, 300_000);

  afterAll(async () => {
    for (const server of servers) await server.stop();
    await sandbox.stop();
  });

  /** A directory of its own, as the user of the page has it. */
  function directoryOf(page: string): string {
    const directory = join(project, 'pages', page.replaceAll('/', '-'));
    for (const name of ['srv', 'backup', 'opt', 'tmp', 'etc/systemd/system'])
      mkdirSync(join(directory, name), { recursive: true });
    for (const name of ['shop', 'catchword']) symlinkSync('..', join(directory, 'srv', name));
    symlinkSync(join(project, 'node_modules'), join(directory, 'node_modules'));
    cpSync(join(project, 'node_modules/catchword/examples'), join(directory, 'examples'), { recursive: true });
    cpSync(join(project, 'data'), join(directory, 'data'), { recursive: true });
    writeFileSync(join(directory, 'users.csv'), 'reference\nuser-0000001\nuser-0000002\n');
    return directory;
  }

  /** The addresses that take the place of a page's own. */
  async function placesFor(page: string, directory: string) {
    const blocks = BLOCKS.filter((block) => block.page === page);
    for (const name of ['shop', 'staging']) await postgres.client.query(`DROP DATABASE IF EXISTS ${name}`);
    const creates = (name: string) => blocks.some(({ code }) => code.includes(`createdb ${name}`));
    for (const name of ['shop', 'staging'].filter((one) => !creates(one)))
      await postgres.client.query(`CREATE DATABASE ${name} TEMPLATE fed`);
    const receiver = await serveHttp((request, response) => {
      request.resume().once('end', () => response.end());
    });
    const places = {
      sandbox: sandbox.url,
      web: '',
      receiver,
      postgres: `postgres@127.0.0.1:${postgres.port}`,
      mysql: `root@127.0.0.1:${servers[2]?.port}`,
      redis: `127.0.0.1:${servers[0]?.port}`,
      nats: `127.0.0.1:${servers[1]?.port}`,
      secret: `whsec_${Buffer.from('a secret of thirty-two characters').toString('base64')}`,
    };
    if (!blocks.some(({ code }) => code.includes('127.0.0.1:8080'))) return places;
    // Browsers cannot send a token to a stream.
    const { CATCHWORD_HTTP_TOKEN: token = '', ...open } = environment;
    const given = blocks.some(({ code }) => code.includes('CATCHWORD_HTTP_TOKEN'))
      ? { CATCHWORD_HTTP_TOKEN: token }
      : {};
    const web = startProcess(
      [process.execPath, 'node_modules/.bin/catchword', 'web'],
      { ...open, ...given },
      directory,
    );
    onTestFinished(() => void web.child.kill('SIGTERM'));
    return { ...places, web: await addressOf(web) };
  }

  it.each(PAGES)('the documents: each block of %s runs', async (page) => {
    const directory = directoryOf(page);
    const places = await placesFor(page, directory);
    const blocks = BLOCKS.filter((block) => block.page === page);
    writeFileSync(join(directory, 'page.sh'), `${BEFORE[page] ?? ''}\n${scriptOf(blocks, places)}`);
    // What a page asks its reader to paste.
    writeFileSync(join(directory, 'pasted'), 'SANDBOXKEY\n');
    const options = { cwd: directory, env: { ...environment, page: directory }, timeout: 240_000, maxBuffer: 2 ** 28 };
    const ended = await run('sh', ['-c', 'exec bash page.sh <pasted'], options).then(
      ({ stdout, stderr }) => ({ failed: false, stdout, stderr }),
      ({ stdout, stderr }: { stdout: string; stderr: string }) => ({ failed: true, stdout, stderr }),
    );
    expect(ended).toEqual({ ...ended, failed: false });
    expect(`${ended.stdout}${ended.stderr}`).not.toMatch(NOTHING);
    const [, ...printed] = ended.stdout.split(/--- block .*\n/);
    const runsHere = ({ language }: (typeof blocks)[number]): boolean => ELSEWHERE[`${page} ${language}`] === undefined;
    const silent = blocks.filter(
      (block, nth) =>
        runsHere(block) && ASKS.test(block.code) && block.code.search(WRITES) < 0 && printed[nth]?.trim() === '',
    );
    expect(silent.map(({ code }) => code)).toEqual([]);
    const written = blocks.flatMap(({ code }) => [...code.matchAll(WRITES)].map(([, name = '']) => name));
    expect(written.filter((name) => statSync(join(directory, name)).size === 0)).toEqual([]);
    const stdout = printed.join('');
    for (const line of PRINTS[page] ?? []) expect(stdout).toMatch(line);
  });
});
