/**
 * Measures first and repeated loads of catalogs of 10,000 to 10,000,000 lean products, as whole processes, and the bare
 * script, and draws docs/time.svg and docs/dev/memory.svg from the medians. `npx tsx bench/sizes.ts [largest] [--runs N]`,
 * default 5 runs, each of 4 minutes.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { table } from '../src/report/text.ts';
import { chart } from './chart.ts';
import {
  environment,
  inDirectory,
  type Measured,
  measure,
  measureNight,
  measureSync,
  median,
  mutate,
  outlast,
  print,
  SHORT_OVERLAP,
  serveSandbox,
} from './process.ts';

const BARE = new URL('./bare.mjs', import.meta.url).pathname;
const { values: flags, positionals } = parseArgs({
  options: { runs: { type: 'string', default: '5' } },
  allowPositionals: true,
});
const LARGEST = Number(positionals[0] ?? 10_000_000);
const SIZES = [10_000, 100_000, 1_000_000, 10_000_000].filter((size) => size <= LARGEST);
const NAMES = ['bare script', 'first load', 'nothing changed', '1% changed'];
const DELTAS = 5;
const DELTA_CHANGES = 1_000;

/** @returns the median of some deltas, each of new changes; milliseconds of the whole process */
async function measureDeltas(url: string, env: Record<string, string>): Promise<number> {
  const times: number[] = [];
  for (let delta = 0; delta < DELTAS; delta++) {
    await outlast();
    await mutate(url, DELTA_CHANGES, delta);
    times.push((await measureSync(env)).measured.wallMs);
  }
  return median(times);
}

/** One run with a catalog: what `NAMES` lists, and a delta. */
async function measureSize(items: number): Promise<Measured[]> {
  const sandbox = await serveSandbox('--items', String(items), '--no-details');
  try {
    return await inDirectory(async (directory) => {
      const file = join(directory, 'catalog.db');
      const db = environment(sandbox.url, file, SHORT_OVERLAP);
      const bare = await measure([BARE, sandbox.url, String(items / 1000), join(directory, 'bare.db')]);
      const full = async () => (await measureSync(db, '--full')).measured;
      const [first, unchanged] = [await full(), await full()];
      const deltaMs = await measureDeltas(sandbox.url, db);
      print(`${items} products: a delta of ${DELTA_CHANGES} changes takes ${(deltaMs / 1e3).toFixed(2)} s`);
      const night = await measureNight(sandbox.url, file, items / 100, DELTAS);
      return [bare, first, unchanged, night.measured];
    });
  } finally {
    await sandbox.stop();
  }
}

/** The medians of some runs. */
interface Figures {
  readonly seconds: number;
  readonly toBare: number;
  readonly peakMb: number;
  readonly writtenMb: number;
}

const found: { readonly items: number; readonly figures: readonly Figures[] }[] = [];
for (const items of SIZES) {
  const runs: Measured[][] = [];
  for (let run = 0; run < Number(flags.runs); run++) runs.push(await measureSize(items));
  const figures = NAMES.map((_, at): Figures => {
    const of = (pick: (measured: Measured, bare: Measured) => number): number =>
      median(runs.map((run) => pick(run[at] as Measured, run[0] as Measured)));
    return {
      seconds: of(({ wallMs }) => wallMs / 1e3),
      toBare: of(({ wallMs }, bare) => wallMs / bare.wallMs),
      peakMb: of(({ peakBytes }) => peakBytes / 1e6),
      writtenMb: of(({ writtenBytes }) => writtenBytes / 1e6),
    };
  });
  found.push({ items, figures });
  const rows = figures.map(({ seconds, toBare, peakMb, writtenMb }, at) => {
    const shown = [seconds, (seconds * 1e6) / items, toBare, peakMb, writtenMb];
    return [NAMES[at] ?? '', items, ...shown.map((value) => value.toFixed(2))];
  });
  print(table(['', 'products', 'seconds', 'µs a product', 'to bare', 'peak MB', 'MB written'], rows));
}

function series(pick: (figures: Figures) => number) {
  return NAMES.map((name, at) => ({
    name,
    points: found.flatMap(({ items, figures }) => {
      const one = figures[at];
      return one === undefined ? [] : [[items, pick(one)] as const];
    }),
  }));
}

const x = [10_000, 10_000_000] as const;
const times = series(({ seconds }) => seconds);
const megabytes = series(({ peakMb }) => peakMb);
writeFileSync(
  'docs/time.svg',
  chart({ title: 'Time of a load, by products', x, y: [0.1, 1000], unit: 's', series: times }),
);
writeFileSync(
  'docs/dev/memory.svg',
  chart({ title: 'Peak memory, by products', x, y: [10, 1000], unit: 'MB', series: megabytes }),
);
