import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { createSimulatedCatalog } from './catalog.ts';
import { type SimulatedProcess, startProcess } from './process.ts';
import { drawScenario } from './scenario.ts';
import { settingsOf } from './set-up.ts';
import { createSimulatedSource, FAULTLESS, IN_TIME } from './source.ts';
import { createWorld, type World } from './world.ts';

const OVERLAP_MS = 300_000;
/** How often the remaining wait is noted. */
const STEP_MS = 5_000;
const SETTLES = 'settles';
/** The lease of a killed process has expired after this time. */
const EXPIRED_MS = 31_000;

/** Sets up a mirror of 200 products, five of which the source no longer has. */
async function setUp() {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-settling-'));
  const world = createWorld(1);
  const { now, random } = world;
  const listed = { order: 'id', inclusiveFrom: true, wholeSeconds: false } as const;
  const catalog = createSimulatedCatalog(200, { ...listed, random, now, sourceNow: now });
  const layout = { perPage: 50, seam: 5, overlapMs: OVERLAP_MS, concurrency: 1 };
  const scenario = { ...drawScenario(1), ...layout, withdrawnAs: 'updated' as const };
  const plain = { latencyMs: 20, jitter: 0, maxPageSize: null, outage: false, dated: true, lookup: false };
  const behaviour = { ...FAULTLESS, ...IN_TIME, ...plain };
  const source = createSimulatedSource(world, catalog, behaviour, now, () => {});
  const processes: SimulatedProcess[] = [];
  onTestFinished(async () => {
    for (const one of processes) await one.close();
    rmSync(directory, { recursive: true, force: true });
  });
  /** @param skewMs how far this machine's clock is ahead */
  async function begin(skewMs = 0): Promise<SimulatedProcess> {
    const started = await startProcess({
      name: `p${processes.length}`,
      world,
      source,
      db: join(directory, 'catalog.db'),
      settings: settingsOf(scenario),
      pace: null,
      concurrency: 1,
      skewMs,
      duplicated: 0,
      dies: () => false,
      onWrite: () => {},
      onRun: () => {},
      onApplied: () => {},
      onSettle: () => world.trace(SETTLES),
    });
    processes.push(started);
    return started;
  }
  const first = await begin();
  await world.until(first.run('full'));
  for (let n = 0; n < 5; n++) catalog.remove(false);
  await world.advance(OVERLAP_MS);
  return { world, begin, first, source, catalog, behaviour };
}

/** Starts a run, and lets time pass until it begins to wait. @returns when that was */
async function runUntilSettling(process: SimulatedProcess, world: World): Promise<number> {
  void process.run('full').catch(() => {});
  while (!world.lines.some((line) => line.endsWith(SETTLES))) await world.advance(100);
  return world.now();
}

it('a run waits for the overlap after its last response, then reads its last delta', async () => {
  const { world, first, source } = await setUp();
  const begun = world.now();
  const run = await world.until(first.run('full'));
  expect(run).toMatchObject({ proof: 'sealed', removed: 5 });
  const [last = 0, before = 0] = source.requests.map(({ at }) => at).reverse();
  expect(last - before).toBeGreaterThanOrEqual(OVERLAP_MS);
  expect(world.now() - begun).toBeLessThan(OVERLAP_MS + 10_000);
});

it('a run waits for the remaining time after a crash, not counting the time without a process', async () => {
  const { world, first, begin, source } = await setUp();
  const begun = await runUntilSettling(first, world);
  await world.advance(100_000);
  first.kill('by the test');
  await world.advance(60_000);
  const second = await begin();
  expect(second.store.runs.unfinished()).toMatchObject({ missing: 5, state: 'reading' });
  expect(await world.until(second.run('full'))).toMatchObject({ id: 2, proof: 'sealed', removed: 5, settlesAt: null });
  expect(source.requests.at(-1)?.at ?? 0).toBeGreaterThanOrEqual(begun + OVERLAP_MS + 60_000);
  expect(world.now()).toBeLessThan(begun + OVERLAP_MS + 60_000 + 2 * STEP_MS);
});

it('a run waits for the remaining time after each of many crashes, and finishes', async () => {
  const { world, first, begin } = await setUp();
  await runUntilSettling(first, world);
  let process = first;
  for (let crash = 0; crash < 12; crash++) {
    process.kill('by the test');
    await world.advance(EXPIRED_MS);
    process = await begin();
    void process.run('full').catch(() => {});
    await world.advance(30_000);
  }
  expect(process.store.runs.get(2)).toMatchObject({ state: 'complete', proof: 'sealed', removed: 5 });
});

it('a run does not count a long pass before its wait as part of the wait when the clock jumps ahead during a crash', async () => {
  const { world, first, begin, source, catalog, behaviour } = await setUp();
  for (let n = 0; n < 60; n++) catalog.update();
  behaviour.latencyMs = 280_000;
  const begun = await runUntilSettling(first, world);
  await world.advance(1_000);
  first.kill('by the test');
  const second = await begin(7_200_000);
  // The clocks disagree since the crash, so each delta starts before the updates, and no single response holds it.
  expect(await world.until(second.run('full'))).toMatchObject({ id: 2, proof: 'open', removed: 0 });
  const asked = source.requests.map(({ at }) => at).filter((at) => at > begun);
  expect(asked[0]).toBeGreaterThanOrEqual(begun + OVERLAP_MS);
  const delta = source.requests.filter(({ runId, pass }) => runId === 2 && pass === 1).map(({ at }) => at);
  expect(Math.max(...delta) - Math.min(...delta)).toBeGreaterThan(0.9 * OVERLAP_MS);
});

it('a run waits again after the resuming process read another window', async () => {
  const { world, first, begin, source } = await setUp();
  await runUntilSettling(first, world);
  await world.advance(OVERLAP_MS - STEP_MS);
  first.kill('by the test');
  await world.advance(EXPIRED_MS);
  const second = await begin();
  const [window] = second.store.runs.checkpoints(2, 1);
  if (window === undefined) throw new Error('the delta has no window');
  writeUnder(second.store.keeperLease, world.now(), ({ runs }) => runs.addCheckpoint({ ...window, page: 99, ids: [] }));
  const begun = world.now();
  expect(await world.until(second.run('full'))).toMatchObject({ id: 2, removed: 5 });
  expect(source.requests.at(-1)?.at ?? 0).toBeGreaterThanOrEqual(begun + OVERLAP_MS);
});

it.each([7_200_000, -7_200_000])('a run waits as long if the clock jumped by %i ms during a crash', async (skewMs) => {
  const { world, first, begin, source } = await setUp();
  void first.run('full').catch(() => {});
  await world.advance(20_000);
  const begun = source.requests.at(-1)?.at ?? 0;
  first.owner.dead = true;
  await world.advance(40_000);
  const second = await begin(skewMs);
  expect(await world.until(second.run('full'))).toMatchObject({ proof: 'sealed', removed: 5 });
  expect(source.requests.at(-1)?.at ?? 0).toBeGreaterThanOrEqual(begun + OVERLAP_MS);
  expect(world.now()).toBeLessThan(begun + 3 * OVERLAP_MS);
});
