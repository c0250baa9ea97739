import { parseArgs } from 'node:util';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { startCoverage } from './coverage.ts';
import { startGuard } from './guard.ts';
import { mutated } from './mutate.ts';
import { TARGETS } from './targets.ts';

/*
 * Fuzzing with coverage: `npm run fuzz -- page --seconds 300`. An input that reaches code which no input has reached
 * before is kept, and mutated further. An input for which a target throws is a defect: it is printed, in base64.
 */

/** Inputs between two looks at the coverage: a look takes longer than most inputs. */
const BATCH = 4;
/** Milliseconds. */
const SLOW = 1_000;

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    input: { type: 'string' },
  },
  allowPositionals: true,
});

async function fuzz(name: string): Promise<number> {
  const target = TARGETS[name];
  if (target === undefined) throw new Error(`use one of ${Object.keys(TARGETS).join(', ')}, or all`);
  const random = createRandom(Number(values.seed));
  const run = target.make();
  const guard = startGuard();
  const ranNewCode = startCoverage();
  const corpus: Buffer[] = values.input === undefined ? target.seeds.map((seed) => Buffer.from(seed)) : [];
  const defects = new Set<string>();
  let inputs = 0;
  async function attempt(input: Buffer): Promise<void> {
    inputs++;
    guard(input);
    const startedAt = performance.now();
    try {
      await run(input);
    } catch (error) {
      const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
      const place = stack.replace(/[\s\S]*?\n\s+at /, '').split('\n')[0] ?? '';
      if (defects.has(place)) return;
      defects.add(place);
      process.stdout.write(`${name}: ${stack.slice(0, 2_000)}\n  input: ${input.toString('base64')}\n`);
    }
    const took = performance.now() - startedAt;
    if (took > SLOW) process.stdout.write(`${name}: slow, ${took.toFixed(0)} ms: ${input.toString('base64')}\n`);
  }
  if (values.input !== undefined) await attempt(Buffer.from(values.input, 'base64'));
  for (const seed of corpus) await attempt(seed);
  ranNewCode();
  const endsAt = performance.now() + (values.input === undefined ? Number(values.seconds) * 1_000 : 0);
  const pick = (): Buffer => {
    // Newer inputs reach further.
    const at = Math.floor(Math.sqrt(random()) * corpus.length);
    return corpus[at] ?? Buffer.alloc(0);
  };
  while (performance.now() < endsAt) {
    const batch = Array.from({ length: BATCH }, () => mutated(pick(), pick(), random));
    for (const input of batch) await attempt(input);
    if (ranNewCode()) corpus.push(...batch);
  }
  process.stdout.write(`${name}: ${inputs} inputs, ${corpus.length} kept, ${defects.size} defects\n`);
  return defects.size;
}

let found = 0;
const [asked = 'all'] = positionals;
for (const name of asked === 'all' ? Object.keys(TARGETS) : [asked]) found += await fuzz(name);
process.exitCode = found > 0 ? 1 : 0;
