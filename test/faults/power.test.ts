// @module-tag slow
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { truthOf } from '../support/mirror.ts';
import { checkCrashed, finish, note, type Promises, Violation } from './check.ts';
import { createDisk } from './disk.ts';
import { type Call, readLog } from './log.ts';
import { shimAvailable } from './shim.ts';
import { record } from './workload.ts';

/** `CRASHES=1000 CATCHWORD_TEST_SEED=7 npx vitest run test/faults/power.test.ts` takes minutes, and prints figures. */
const CRASHES = Number(process.env.CRASHES ?? 40);
const SEED = Number(process.env.CATCHWORD_TEST_SEED ?? 1);
const OPTIONS = { timeout: 3_600_000, tags: ['stores'] };
const NO_PROMISES: Promises = { known: null, runs: new Set() };

/** After these, somebody relies on what was done before. */
function isPromise({ kind, path }: Call): boolean {
  return kind === 'output' || kind === 'mark' || (kind === 'sync' && path.endsWith('/changes.jsonl'));
}

/** A third of them anywhere, a third right after any promise, a third right after a run was called complete. */
function momentsOf(calls: readonly Call[], count: number, random: () => number): number[] {
  const all = [...calls.keys(), calls.length];
  const promised = all.filter((index) => index > 0 && isPromise(calls[index - 1] as Call));
  const completed = promised.filter((index) => calls[index - 1]?.bytes.includes('"msg":"run complete"'));
  const kinds = [all, promised, completed];
  const moments = Array.from({ length: count }, (_, index) => {
    const kind = kinds[index % kinds.length] ?? all;
    return kind[Math.floor(random() * kind.length)] ?? 0;
  });
  return moments.sort((a, b) => a - b);
}

/** Checks disks after power failures. @returns the violations, by the promise that they break */
async function crashes(synchronous: 'FULL' | 'NORMAL', finishes: boolean): Promise<Record<string, string[]>> {
  const directory = temporaryDirectory();
  const { root, log, sandbox } = await record(directory, synchronous, 200);
  onTestFinished(() => sandbox.stop());
  const truth = await truthOf(sandbox.url);
  const calls = readLog(log);
  const random = createRandom(SEED);
  const disk = createDisk(root);
  const promises: Promises = { known: null, runs: new Set() };
  const broken: Record<string, string[]> = {};
  let reached = 0;
  for (const moment of momentsOf(calls, CRASHES, random)) {
    for (const call of calls.slice(reached, moment)) {
      disk.step(call);
      note(promises, call);
    }
    reached = moment;
    // At the same path: a sink at another path is another store.
    rmSync(root, { recursive: true });
    mkdirSync(root);
    const style = disk.crash(root, random);
    const kept = join(directory, `crash-${moment}`);
    rmSync(kept, { recursive: true, force: true });
    cpSync(root, kept, { recursive: true });
    let isSound = true;
    // A lost promise hides what else is broken.
    for (const expected of finishes ? [promises] : [promises, NO_PROMISES]) {
      try {
        checkCrashed(root, expected);
        if (finishes) await finish(root, sandbox.url, truth);
      } catch (error) {
        if (!(error instanceof Violation)) throw error;
        isSound = false;
        const [promise = ''] = error.message.split(':');
        const call = calls[moment - 1];
        const where = `${style}, after call ${moment} of ${calls.length}: ${call?.kind} ${call?.path}; see ${kept}`;
        broken[promise] = [...(broken[promise] ?? []), `${error.message} (${where})`];
      }
    }
    if (isSound) rmSync(kept, { recursive: true });
  }
  if (process.env.CRASHES !== undefined) {
    const counts = Object.entries(broken).map(([promise, { length }]) => `${length} × ${promise}`);
    process.stderr.write(
      `${synchronous}: ${CRASHES} disks from ${calls.length} calls; ${counts.join(', ') || 'sound'}\n`,
    );
  }
  return broken;
}

it.skipIf(!shimAvailable)('a power failure breaks no promise', OPTIONS, async () => {
  expect(await crashes('FULL', true)).toEqual({});
});

it.skipIf(!shimAvailable)(
  'a power failure puts sinks ahead of a mirror that does not sync each commit',
  OPTIONS,
  async () => {
    const broken = Object.keys(await crashes('NORMAL', false));
    expect(broken).toContain('no sink is ahead');
    expect(broken).toContain('promises are kept');
  },
);
