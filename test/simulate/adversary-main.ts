import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { disturbKeeper } from './adversary-keeper.ts';
import { disturb, type Outcome } from './adversary-runs.ts';
import { playInWorkers } from './seed-workers.ts';

/**
 * Searches for a sealed run that loses a living product: for a range of seeds, or for some minutes. Each seed is one
 * history of the pure functions and one of the keeper.
 */

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1..200' },
    /** Goes on with further seeds for so long. */
    minutes: { type: 'string' },
    workers: { type: 'string', default: '1' },
  },
});

const PURE_RUNS = 50;
const KEEPER_RUNS = 6;
const SEEDS_EACH = 40;

const LEVELS = ['functions', 'keeper'] as const;
type Level = (typeof LEVELS)[number];

/** What a process sends for a seed. */
interface Report {
  readonly seed: number;
  readonly outcomes: Readonly<Record<Level, Outcome>>;
}

const [, first = '1', last = first] = /^(\d+)(?:\.\.(\d+))?$/.exec(values.seeds) ?? [];
const end = values.minutes === undefined ? Number(last) : Number.POSITIVE_INFINITY;
const until = Date.now() + 60_000 * Number(values.minutes ?? Number.POSITIVE_INFINITY);
let next = Number(first);

type Sums = Pick<Outcome, 'runs' | 'sealed' | 'resumed' | 'sealedAndResumed' | 'hid'> & { histories: number };
const sums = new Map<string, Sums>();
const violations: { readonly seed: number; readonly text: string }[] = [];

function add(key: string, { runs, sealed, resumed, sealedAndResumed, hid }: Outcome): void {
  const sum = sums.get(key) ?? { histories: 0, runs: 0, sealed: 0, resumed: 0, sealedAndResumed: 0, hid: 0 };
  sums.set(key, {
    histories: sum.histories + 1,
    runs: sum.runs + runs,
    sealed: sum.sealed + sealed,
    resumed: sum.resumed + resumed,
    sealedAndResumed: sum.sealedAndResumed + sealedAndResumed,
    hid: sum.hid + hid,
  });
}

/** @returns true: a violation does not end the search */
function take({ seed, outcomes }: Report): boolean {
  for (const level of LEVELS) {
    const outcome = outcomes[level];
    add(`${level}, ${outcome.place}`, outcome);
    add(`${level}, all`, outcome);
    if (outcome.violation === null) continue;
    const text = `seed ${seed}, ${level}, ${outcome.place}: ${outcome.violation}`;
    violations.push({ seed, text });
    process.stdout.write(`${text}\n`);
  }
  return true;
}

/** Plays the seeds that the parent process sends. */
function serve(send: (report: Report) => void): void {
  async function play(seed: number): Promise<void> {
    send({ seed, outcomes: { functions: disturb(seed, PURE_RUNS), keeper: await disturbKeeper(seed, KEEPER_RUNS) } });
  }
  process.on('message', (seed: number) => void play(seed));
}

async function main(): Promise<void> {
  const startedAt = Date.now();
  await playInWorkers<Report>({
    program: fileURLToPath(import.meta.url),
    count: Number(values.workers),
    seedsEach: SEEDS_EACH,
    nextSeed: () => (next > end || Date.now() >= until ? undefined : next++),
    take,
  });
  for (const [key, { histories, runs, sealed, resumed, sealedAndResumed, hid }] of [...sums].sort(([a], [b]) =>
    a < b ? -1 : 1,
  )) {
    const what = `${sealed} sealed, ${resumed} resumed, ${sealedAndResumed} both; ${hid} hid a product`;
    process.stdout.write(`${key.padEnd(24)} ${histories} histories, ${runs} runs: ${what}\n`);
  }
  const [smallest] = violations.sort((a, b) => a.seed - b.seed);
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(0);
  process.stdout.write(`seeds ${first} to ${next - 1} in ${seconds} s: ${violations.length} violations\n`);
  if (smallest === undefined) return;
  process.stdout.write(`${smallest.text}\n  reproduce: npm run adversary -- --seeds ${smallest.seed}\n`);
  process.exitCode = 1;
}

const send = process.send?.bind(process);
if (send === undefined) await main();
else serve(send);
