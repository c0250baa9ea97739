import { createRandom } from '@catchword/sandbox/catalog/random';
import { expect, it } from 'vitest';
import { mutated } from './mutate.ts';
import { TARGETS } from './targets.ts';

/* A short part of `npm run fuzz`, without coverage, and with the same inputs each time. */

const INPUTS = 300;

it.each(Object.entries(TARGETS))(
  'fuzzing finds no defect in what reads a %s',
  { tags: ['slow'] },
  async (_name, { seeds, make }) => {
    const random = createRandom(1);
    const run = make();
    const corpus = seeds.map((seed) => Buffer.from(seed));
    for (const seed of corpus) await run(seed);
    for (let at = 0; at < INPUTS; at++) {
      const [one = Buffer.alloc(0), other = one] = [corpus[at % corpus.length], corpus[(at * 7) % corpus.length]];
      const input = mutated(one, other, random);
      await expect(
        Promise.resolve().then(() => run(input)),
        input.toString('base64'),
      ).resolves.toBeUndefined();
    }
  },
);
