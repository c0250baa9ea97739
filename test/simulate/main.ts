import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import { simulate } from './history.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1..100' },
    trace: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    'until-found': { type: 'boolean', default: false },
  },
});

const [, first = '1', last = first] = /^(\d+)(?:\.\.(\d+))?$/.exec(values.seeds) ?? [];

async function main(): Promise<void> {
  const startedAt = Date.now();
  const counts = { full: 0, sealed: 0, requests: 0, falseRemovals: 0 };
  const failed: number[] = [];
  const digest = createHash('sha256');
  for (let seed = Number(first); seed <= Number(last); seed++) {
    const result = await simulate(seed);
    digest.update(result.trace);
    if (values.trace) process.stdout.write(`${result.trace}\n`);
    counts.full += result.fullRuns.length;
    counts.sealed += result.fullRuns.filter(({ proof }) => proof === 'sealed').length;
    counts.falseRemovals += result.falseRemovals;
    if (result.falseRemovals > 0 && values.verbose)
      process.stdout.write(`seed ${seed}: ${result.falseRemovals} removed by open runs\n`);
    if (result.violation === null) continue;
    failed.push(seed);
    process.stdout.write(
      `seed ${seed}: ${result.violation}\n  reproduce: npm run simulate -- --seeds ${seed} --trace\n`,
    );
    if (values['until-found']) break;
  }
  const histories = Number(last) - Number(first) + 1;
  const seconds = (Date.now() - startedAt) / 1000;
  process.stdout.write(
    `${histories} histories in ${seconds.toFixed(1)} s (${(histories / seconds).toFixed(0)}/s): ${failed.length} violations\n` +
      `${counts.full} full runs, ${counts.sealed} sealed, ${counts.falseRemovals} living products removed by open runs\n` +
      `trace ${digest.digest('hex').slice(0, 16)}\n`,
  );
  process.exitCode = failed.length > 0 ? 1 : 0;
}

await main();
