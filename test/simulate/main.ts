import { type ChildProcess, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type HistoryResult, simulate } from './history.ts';
import { drawScenario } from './scenario.ts';

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
/** Histories of one process: the store keeps its statements for as long as the process lives. */
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

function simulateInWorkers(count: number): Promise<void> {
  const arrived = new Map<number, Outcome>();
  const workers = new Set<ChildProcess>();
  const waiting = [...seeds];
  let taken = 0;
  return new Promise((resolve, reject) => {
    const at = (): number => seeds[taken] ?? -1;

    function end(): void {
      for (const worker of workers) worker.kill();
      resolve();
    }

    function begin(): void {
      if (waiting.length === 0) return;
      const options = values.trace ? ['--trace'] : [];
      const worker = fork(fileURLToPath(import.meta.url), options, { execArgv: ['--import', 'tsx'] });
      let left = HISTORIES_EACH;
      const give = (): void => {
        const seed = left > 0 ? waiting.shift() : undefined;
        left--;
        if (seed !== undefined) worker.send(seed);
        else {
          workers.delete(worker);
          worker.disconnect();
          begin();
        }
      };
      worker.on('error', reject);
      worker.on('exit', (code) => {
        if (workers.has(worker) && taken < seeds.length) reject(new Error(`a process ended with ${code}`));
      });
      worker.on('message', (outcome: Outcome) => {
        arrived.set(outcome.seed, outcome);
        for (let ready = arrived.get(at()); ready !== undefined; ready = arrived.get(at())) {
          arrived.delete(at());
          taken++;
          if (!take(ready)) {
            workers.delete(worker);
            worker.kill();
            end();
            return;
          }
        }
        give();
        if (taken === seeds.length) resolve();
      });
      workers.add(worker);
      give();
    }
    for (let n = 0; n < count; n++) begin();
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
