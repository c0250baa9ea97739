import { env } from 'node:process';
import fc from 'fast-check';

/**
 * Fixes the seed, so that the same commit gives the same result. `CATCHWORD_TEST_SEED=7 npm test` tries other examples.
 */
fc.configureGlobal({ seed: Number(env.CATCHWORD_TEST_SEED ?? 1) });
