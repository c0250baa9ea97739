import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type HistoryResult, simulate } from './history.ts';
import { drawScenario } from './scenario.ts';
import { playInWorkers } from './seed-workers.ts';

/**
 * Simulates the histories of a range of seeds, in several processes if told so. The digest of all traces does not depend
 * on the number of processes.
 */

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1..100' },
    workers: { type: 'string', default: '1' },
    /** Only histories in this world; its name, or a part of it. */
    world: { type: 'string', default: '' },
    trace: { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    'until-found': { type: 'boolean', default: false },
  },
});

const [, first = '1', last = first] = /^(\d+)(?:\.\.(\d+))?$/.exec(values.seeds) ?? [];
const seeds = Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => Number(first) + at).filter(
  (seed) => values.world === '' || drawScenario(seed).world?.includes(values.world),
);
const HISTORIES_EACH = 500;

/** What the summary needs of a history; plain, because another process may have simulated it. */
interface Outcome {
  readonly seed: number;
  readonly violation: string | null;
  readonly digest: string;
  readonly full: number;
  readonly sealed: number;
  readonly falseRemovals: number;
  readonly trace?: string;
}

function outcomeOf(seed: number, result: HistoryResult): Outcome {
  const { violation, trace, fullRuns, falseRemovals } = result;
  return {
    seed,
    violation,
    digest: createHash('sha256').update(trace).digest('hex'),
    full: fullRuns.length,
    sealed: fullRuns.filter(({ proof }) => proof === 'sealed').length,
    falseRemovals,
    ...(values.trace ? { trace } : {}),
  };
}

/** Simulates the seeds that the parent process sends. */
function serve(send: (outcome: Outcome) => void): void {
  process.on('message', (seed: number) => void simulate(seed).then((result) => send(outcomeOf(seed, result))));
}

const counts = { histories: 0, full: 0, sealed: 0, falseRemovals: 0 };
const failed: number[] = [];
const digest = createHash('sha256');

/** Takes the outcomes in the order of the seeds. @returns whether to go on */
function take({ seed, violation, full, sealed, falseRemovals, ...outcome }: Outcome): boolean {
  counts.histories++;
  counts.full += full;
  counts.sealed += sealed;
  counts.falseRemovals += falseRemovals;
  digest.update(outcome.digest);
  if (outcome.trace !== undefined) process.stdout.write(`${outcome.trace}\n`);
  if (falseRemovals > 0 && values.verbose) {
    process.stdout.write(`seed ${seed}: ${falseRemovals} removed by open runs\n`);
  }
  if (violation === null) return true;
  failed.push(seed);
  process.stdout.write(`seed ${seed}: ${violation}\n  reproduce: npm run simulate -- --seeds ${seed} --trace\n`);
  return !values['until-found'];
}

async function simulateHere(): Promise<void> {
  for (const seed of seeds) if (!take(outcomeOf(seed, await simulate(seed)))) return;
}

async function simulateInWorkers(count: number): Promise<void> {
  const arrived = new Map<number, Outcome>();
  const [waiting, untaken] = [[...seeds], [...seeds]];
  await playInWorkers<Outcome>({
    program: fileURLToPath(import.meta.url),
    args: values.trace ? ['--trace'] : [],
    count,
    seedsEach: HISTORIES_EACH,
    nextSeed: () => waiting.shift(),
    take: (outcome) => {
      arrived.set(outcome.seed, outcome);
      for (let ready = arrived.get(untaken[0] ?? -1); ready !== undefined; ready = arrived.get(untaken[0] ?? -1)) {
        untaken.shift();
        if (!take(ready)) return false;
      }
      return true;
    },
  });
}

async function main(): Promise<void> {
  const startedAt = Date.now();
  const workers = Number(values.workers);
  await (workers > 1 ? simulateInWorkers(workers) : simulateHere());
  const seconds = (Date.now() - startedAt) / 1000;
  const { histories, full, sealed, falseRemovals } = counts;
  process.stdout.write(
    `${histories} histories in ${seconds.toFixed(1)} s (${(histories / seconds).toFixed(1)}/s): ${failed.length} violations\n` +
      `${full} full runs, ${sealed} sealed, ${falseRemovals} living products removed by open runs\n` +
      `trace ${digest.digest('hex').slice(0, 16)}\n`,
  );
  process.exitCode = failed.length > 0 ? 1 : 0;
}

const send = process.send?.bind(process);
if (send === undefined) await main();
else serve(send);
