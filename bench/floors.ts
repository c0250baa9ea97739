/**
 * Compares loads with the least that a program must do for the same result (`floor.mjs`): read the pages, or write the
 * rows. `npx tsx bench/floors.ts [products] [--details] [--runs N]`, default 1,000,000 lean ones and 5 runs, after
 * `npm run build`.
 */
import { closeSync, copyFileSync, fsyncSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { table } from '../src/report/text.ts';
import {
  cpuSeconds,
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

const BARE = new URL('./bare.mjs', import.meta.url).pathname;
const FLOOR = new URL('./floor.mjs', import.meta.url).pathname;
const ALL_AT_ONCE = '1000000000';

const { values: flags, positionals } = parseArgs({
  options: { runs: { type: 'string', default: '5' }, details: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const products = Number(positionals[0] ?? (flags.details ? 100_000 : 1_000_000));
const pages = String(products / 1000);

/** Copies a file, and waits for the disk: the copy must not wait for it while it is measured. */
function copy(from: string, to: string): void {
  copyFileSync(from, to);
  const file = openSync(to, 'r');
  fsyncSync(file);
  closeSync(file);
}

interface Step extends Measured {
  /** Processor time of the sandbox meanwhile, seconds. */
  readonly sandboxSeconds: number;
}

type Round = Map<string, Step>;

async function measureRound(directory: string): Promise<Round> {
  const round: Round = new Map();
  const sandbox = await serveSandbox('--items', String(products), flags.details ? '--details' : '--no-details');
  const db = join(directory, 'catalog.db');
  const before = join(directory, 'before.db');
  const step = async (what: string, work: () => Promise<Measured>) => {
    const start = cpuSeconds(sandbox.pid);
    const measured = await work();
    round.set(what, { ...measured, sandboxSeconds: cpuSeconds(sandbox.pid) - start });
  };
  const run = async (what: string, ...args: readonly string[]) => await step(what, async () => await measure(args));
  const sync = async (what: string, ...args: readonly string[]) =>
    await step(what, async () => (await measureSync(environment(sandbox.url, db), ...args)).measured);
  const write = async (what: string, atOnce: string, ...columns: readonly string[]) => {
    await run(what, FLOOR, 'write', db, before, atOnce, ...columns);
    rmSync(before);
  };
  const update = async (what: string, atOnce: string) =>
    await write(what, atOnce, (await measure([FLOOR, 'columns', db, before])).stdout);
  try {
    await run('bare script', BARE, sandbox.url, pages, join(directory, 'bare.db'));
    await sync('load, fresh', '--full');
    await write('its rows', '64000');
    await run('its pages', FLOOR, 'read', sandbox.url, pages);
    const parsing = ['meanwhile', sandbox.url, pages, 'parse'];
    await run('its rows, while a thread parses its pages', FLOOR, ...parsing, 'write', db, before, '64000');
    rmSync(before);
    await run('its text, while a thread reads its pages', FLOOR, 'meanwhile', sandbox.url, pages, 'drop', 'known', db);
    await run('two threads with the mirror open', FLOOR, 'threads', db);
    await run('node -e 0', '-e', '0');
    await sync('load, unchanged', '--full');
    await sync('delta of nothing');
    copy(db, before);
    await mutate(sandbox.url, 1_000, 1);
    await sync('delta of 1,000');
    await update('its rows, at once', ALL_AT_ONCE);
    copy(db, before);
    await step('load, 1% changed', async () => (await measureNight(sandbox.url, db, products / 100, 2)).measured);
    await update('its rows in 64 pages at a time', '64000');
  } finally {
    await sandbox.stop();
  }
  return round;
}

const rounds: Round[] = [];
for (let round = 0; round < Number(flags.runs); round++) rounds.push(await inDirectory(measureRound));
const rows = [...(rounds[0]?.keys() ?? [])].map((what) => {
  const of = (pick: (measured: Step, round: Round) => number): number =>
    median(rounds.map((round) => pick(round.get(what) as Step, round)));
  return [
    what,
    of(({ wallMs }) => wallMs / 1e3).toFixed(2),
    of(({ wallMs }, round) => wallMs / (round.get('bare script')?.wallMs ?? Number.NaN)).toFixed(2),
    of(({ peakBytes }) => peakBytes / 1e6).toFixed(0),
    of(({ writtenBytes }) => writtenBytes / 1e6).toFixed(0),
    of(({ busiest }) => busiest[0] ?? 0).toFixed(2),
    of(({ busiest }) => busiest[1] ?? 0).toFixed(2),
    of(({ sandboxSeconds }) => sandboxSeconds).toFixed(2),
  ];
});
print(`${products} ${flags.details ? 'detailed' : 'lean'} products, medians of ${flags.runs} rounds, whole processes`);
print('threads: processor time of the two busiest; sandbox: of the service meanwhile');
const head = ['', 'seconds', 'to bare', 'peak MB', 'MB written', 'first thread', 'second', 'sandbox'];
print(table(head, rows));
