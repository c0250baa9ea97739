/**
 * Compares loads with the least that a program must do for the same result (`floor.mjs`): read the pages, or write the
 * rows. `npx tsx bench/floors.ts [products] [--runs N]`, default 1,000,000 lean ones, after `npm run build`.
 */
import { closeSync, copyFileSync, fsyncSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { table } from '../src/report/text.ts';
import {
  environment,
  inDirectory,
  type Measured,
  measure,
  measureSync,
  median,
  print,
  serveSandbox,
} from './process.ts';

const BARE = new URL('./bare.mjs', import.meta.url).pathname;
const FLOOR = new URL('./floor.mjs', import.meta.url).pathname;
const ALL_AT_ONCE = '1000000000';

const { values: flags, positionals } = parseArgs({
  options: { runs: { type: 'string', default: '5' } },
  allowPositionals: true,
});
const products = Number(positionals[0] ?? 1_000_000);
const pages = String(products / 1000);

/** Copies a file, and waits for the disk: the copy must not wait for it while it is measured. */
function copy(from: string, to: string): void {
  copyFileSync(from, to);
  const file = openSync(to, 'r');
  fsyncSync(file);
  closeSync(file);
}

type Round = Map<string, Measured>;

async function measureRound(directory: string): Promise<Round> {
  const round: Round = new Map();
  const sandbox = await serveSandbox('--items', String(products), '--no-details');
  const db = join(directory, 'catalog.db');
  const before = join(directory, 'before.db');
  const mutate = (update: number) =>
    fetch(`${sandbox.url}/_sandbox/mutate`, { method: 'POST', body: JSON.stringify({ update, seed: update }) });
  const sync = async (what: string, ...args: readonly string[]) =>
    round.set(what, (await measureSync(environment(sandbox.url, db), ...args)).measured);
  const write = async (what: string, atOnce: string) => {
    round.set(what, await measure([FLOOR, 'write', db, before, atOnce]));
    rmSync(before);
  };
  try {
    round.set('bare script', await measure([BARE, sandbox.url, pages, join(directory, 'bare.db')]));
    await sync('load, fresh', '--full');
    await write('its rows', '64000');
    round.set('its pages', await measure([FLOOR, 'read', sandbox.url, pages]));
    round.set('two threads with the mirror open', await measure([FLOOR, 'threads', db]));
    await sync('load, unchanged', '--full');
    await sync('delta of nothing');
    copy(db, before);
    await mutate(1_000);
    await sync('delta of 1,000');
    await write('its rows, at once', ALL_AT_ONCE);
    copy(db, before);
    await mutate(products / 100);
    await sync('load, 1% changed', '--full');
    await write('its rows in 64 pages at a time', '64000');
  } finally {
    await sandbox.stop();
  }
  return round;
}

const rounds: Round[] = [];
for (let round = 0; round < Number(flags.runs); round++) rounds.push(await inDirectory(measureRound));
const rows = [...(rounds[0]?.keys() ?? [])].map((what) => {
  const of = (pick: (measured: Measured, round: Round) => number): number =>
    median(rounds.map((round) => pick(round.get(what) as Measured, round)));
  return [
    what,
    of(({ wallMs }) => wallMs / 1e3).toFixed(2),
    of(({ wallMs }, round) => wallMs / (round.get('bare script')?.wallMs ?? Number.NaN)).toFixed(2),
    of(({ peakBytes }) => peakBytes / 1e6).toFixed(0),
  ];
});
print(`${products} lean products, medians of ${flags.runs} rounds, whole processes`);
print(table(['', 'seconds', 'to bare', 'peak MB'], rows));
