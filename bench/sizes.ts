/**
 * Measures first and repeated loads of catalogs of 10,000 to 10,000,000 lean products, as whole processes, and the bare
 * script, and draws docs/time.svg and docs/memory.svg. `npx tsx bench/sizes.ts [largest]`; takes 10 minutes.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { table } from '../src/report/text.ts';
import { chart } from './chart.ts';
import { environment, inDirectory, type Measured, measure, measureSync, print, serveSandbox } from './process.ts';

const BARE = new URL('./bare.mjs', import.meta.url).pathname;
const LARGEST = Number(process.argv[2] ?? 10_000_000);
const SIZES = [10_000, 100_000, 1_000_000, 10_000_000].filter((size) => size <= LARGEST);
const NAMES = ['bare script', 'first load', 'nothing changed', '1% changed'];

async function measureSize(items: number): Promise<Measured[]> {
  const sandbox = await serveSandbox('--items', String(items), '--no-details');
  try {
    return await inDirectory(async (directory) => {
      const db = environment(sandbox.url, join(directory, 'catalog.db'));
      const bare = await measure([BARE, sandbox.url, String(items / 1000), join(directory, 'bare.db')]);
      const full = async () => (await measureSync(db, '--full')).measured;
      const [first, unchanged] = [await full(), await full()];
      await fetch(`${sandbox.url}/_sandbox/mutate`, {
        method: 'POST',
        body: JSON.stringify({ update: items / 100, seed: 1 }),
      });
      return [bare, first, unchanged, await full()];
    });
  } finally {
    await sandbox.stop();
  }
}

const found: { readonly items: number; readonly measured: readonly Measured[] }[] = [];
for (const items of SIZES) {
  const measured = await measureSize(items);
  found.push({ items, measured });
  for (const [at, { wallMs, peakBytes, writtenBytes }] of measured.entries()) {
    const figures = [wallMs / 1e3, (wallMs * 1e3) / items, peakBytes / 1e6, writtenBytes / 1e6].map((value) =>
      value.toFixed(2),
    );
    print(
      table(
        ['', 'products', 'seconds', 'µs a product', 'peak MB', 'MB written'],
        [[NAMES[at] ?? '', items, ...figures]],
      ),
    );
  }
}

function series(pick: (measured: Measured) => number) {
  return NAMES.map((name, at) => ({
    name,
    points: found.flatMap(({ items, measured }) => {
      const one = measured[at];
      return one === undefined ? [] : [[items, pick(one)] as const];
    }),
  }));
}

const x = [10_000, 10_000_000] as const;
const seconds = series(({ wallMs }) => wallMs / 1e3);
const megabytes = series(({ peakBytes }) => peakBytes / 1e6);
writeFileSync(
  'docs/time.svg',
  chart({ title: 'Time of a load, by products', x, y: [0.1, 1000], unit: 's', series: seconds }),
);
writeFileSync(
  'docs/memory.svg',
  chart({ title: 'Peak memory, by products', x, y: [10, 1000], unit: 'MB', series: megabytes }),
);
