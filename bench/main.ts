/**
 * Compares catchword with a bare script. Needs no network, and deletes its files.
 *
 *     npm run bench -- [--runs N] [--huge] [--rate]
 *
 * --runs  number of measurements of each pair (default 5; medians are printed)
 * --huge  also measure 3,000,000 products
 * --rate  also measure a load with a limit of 600 requests a minute; takes 100 s
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import Database from 'better-sqlite3';
import { table } from '../src/report/text.ts';
import {
  CLI,
  environment,
  inDirectory,
  type Measured,
  measure,
  measureNight,
  measureSync,
  median,
  mutate,
  print,
  serveSandbox,
} from './process.ts';
import { measureRate } from './rate.ts';

const BARE = new URL('./bare.mjs', import.meta.url).pathname;
const CHANGES = 1_000;

const { values: flags } = parseArgs({
  options: { runs: { type: 'string', default: '5' }, huge: { type: 'boolean' }, rate: { type: 'boolean' } },
});
const runs = Number(flags.runs);

interface Size {
  readonly name: string;
  readonly items: number;
  readonly details: boolean;
}

interface Sample {
  readonly what: string;
  readonly ms: number;
  readonly items: number;
  /** Of the whole processes. */
  readonly ratio: number | null;
  readonly measured: Measured;
  readonly bytesAProduct: number | null;
}

/** Bytes of the change log for each product. */
function changeLogBytes(db: string): number {
  const sqlite = new Database(db, { readonly: true });
  const [bytes, rows] = sqlite
    .prepare("SELECT (SELECT sum(pgsize) FROM dbstat WHERE name = 'changes'), (SELECT count(*) FROM changes)")
    .raw()
    .get() as [number, number];
  sqlite.close();
  return bytes / rows;
}

async function measureAll(size: Size, url: string, redisUrl: string | undefined, directory: string): Promise<Sample[]> {
  const { items } = size;
  const bareDb = join(directory, 'bare.db');
  const db = join(directory, 'catalog.db');
  const samples: Sample[] = [];
  const bare = await measure([BARE, url, String(items / 1000), bareDb]);
  const bareMs = (JSON.parse(bare.stdout) as { ms: number }).ms;
  const add = (what: string, ms: number, measured: Measured, count: number, compared: boolean, file?: string): void => {
    const bytesAProduct = file === undefined ? null : statSync(file).size / items;
    const ratio = compared ? measured.wallMs / bare.wallMs : null;
    samples.push({ what, ms, items: count, ratio, measured, bytesAProduct });
  };
  add('bare script', bareMs, bare, items, true, bareDb);
  const upsert = await measure([BARE, url, String(items / 1000), join(directory, 'upsert.db'), 'upsert']);
  add('the same with ON CONFLICT and FULL', (JSON.parse(upsert.stdout) as { ms: number }).ms, upsert, items, true);
  const fresh = await measureSync(environment(url, db), '--full');
  add('full load, fresh', fresh.ms, fresh.measured, items, true, db);
  const again = await measureSync(environment(url, db), '--full');
  add('full load, unchanged', again.ms, again.measured, items, true, db);
  const verified = await measure([CLI, 'verify'], environment(url, db));
  add('verify, nothing differs', verified.wallMs, verified, items, true);
  const nothing = await measureSync(environment(url, db));
  add('delta of nothing', nothing.measured.wallMs, nothing.measured, 0, false);
  const status = await measure([CLI, 'status'], environment(url, db));
  add('status', status.wallMs, status, 0, false);
  const node = await measure(['-e', '0']);
  add('node -e 0', node.wallMs, node, 0, false);
  await mutate(url, CHANGES, 1);
  const delta = await measureSync(environment(url, db));
  add(`delta of ${CHANGES} changes`, delta.measured.wallMs, delta.measured, CHANGES, false);
  const night = await measureNight(url, db, items / 100, 2);
  add('full load, 1% changed', night.ms, night.measured, items, true);
  if (redisUrl !== undefined) {
    const throughDb = join(directory, 'redis.db');
    const through = await measureSync(environment(url, throughDb, { REDIS_URL: redisUrl }), '--full');
    add('full load, through BullMQ', through.ms, through.measured, items, true);
  }
  return samples;
}

/** Fills a table with `sqlite-utils upsert` (Debian's), fed by the bare script; milliseconds. */
async function measureSqliteUtils({ items }: Size, url: string): Promise<number> {
  return await inDirectory(async (directory) => {
    const startedAt = performance.now();
    const lines = spawn(process.execPath, [BARE, url, String(items / 1000), '', 'lines'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const args = ['upsert', join(directory, 'utils.db'), 'products', '-', '--pk', 'vbid', '--nl', '--alter'];
    const utils = spawn('sqlite-utils', args, { stdio: [lines.stdout, 'ignore', 'inherit'] });
    const [code] = (await once(utils, 'close')) as [number];
    if (code !== 0) throw new Error(`sqlite-utils ended with ${code}`);
    return performance.now() - startedAt;
  });
}

const hasSqliteUtils = spawnSync('sqlite-utils', ['--version']).status === 0;

async function compare(size: Size, redisUrl: string | undefined): Promise<void> {
  const rounds: Sample[][] = [];
  let logBytes = 0;
  let utilsMs: number | null = null;
  for (let round = 0; round < runs; round++) {
    // A new one each round: a delta starts five minutes earlier and would find the changes of the round before.
    const details = size.details ? '--details' : '--no-details';
    const sandbox = await serveSandbox('--items', String(size.items), details);
    try {
      await inDirectory(async (directory) => {
        rounds.push(await measureAll(size, sandbox.url, redisUrl, directory));
        logBytes = changeLogBytes(join(directory, 'catalog.db'));
      });
      if (hasSqliteUtils && round === 0) utilsMs = await measureSqliteUtils(size, sandbox.url);
    } finally {
      await sandbox.stop();
    }
  }
  const rows = (rounds[0] ?? []).map(({ what, items }, index) => {
    const of = (pick: (sample: Sample) => number | null) =>
      median(rounds.map((round) => pick(round[index] as Sample) ?? Number.NaN));
    const perProduct = of((sample) => sample.bytesAProduct);
    const ratio = of((sample) => sample.ratio);
    return [
      what,
      (of((sample) => sample.ms) / 1000).toFixed(2),
      items === 0 ? '–' : Math.round(items / (of((sample) => sample.ms) / 1000)),
      (of((sample) => sample.measured.wallMs) / 1000).toFixed(2),
      Number.isNaN(ratio) ? '–' : ratio.toFixed(2),
      (of((sample) => sample.measured.peakBytes) / 1e6).toFixed(0),
      Number.isNaN(perProduct) ? '–' : perProduct.toFixed(0),
      (of((sample) => sample.measured.writtenBytes) / 1e6).toFixed(1),
      items === 0 ? '–' : (of((sample) => sample.measured.writtenBytes) / items).toFixed(1),
    ];
  });
  print(`\n${size.name}, median of ${runs}`);
  const head = [
    '',
    'seconds',
    'products/s',
    'process s',
    'to bare',
    'peak MB',
    'bytes/product',
    'MB written',
    'kB written/page',
  ];
  print(table(head, rows));
  print(`change log: ${logBytes.toFixed(1)} bytes a product`);
  const seconds = utilsMs === null ? 'not installed' : `${(utilsMs / 1000).toFixed(1)} s, once`;
  print(`sqlite-utils upsert, fed by the bare script: ${seconds}`);
}

const redis = redisAvailable ? await startRedis() : undefined;
if (redis === undefined) print('redis-server is not installed: the load through BullMQ is skipped');
print(`${cpus()[0]?.model ?? ''}, ${cpus().length} processors, Node.js ${process.version}`);
print('"to bare" compares whole processes');
try {
  await compare({ name: '1,000,000 lean products', items: 1_000_000, details: false }, redis?.url);
  await compare({ name: '100,000 detailed products', items: 100_000, details: true }, redis?.url);
  if (flags.huge) await compare({ name: '3,000,000 lean products', items: 3_000_000, details: false }, undefined);
  if (flags.rate) print(`\n${await measureRate()}`);
} finally {
  await redis?.stop();
}
