import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CatchwordError } from '@catchword/base/errors';
import type { FetchTask, PageResponse } from '@catchword/catalog/page-types';
import type { RunKind } from '@catchword/catalog/run-types';
import { FAST_DIRECTORY } from '@catchword/testing/fast-directory';
import type { CatalogClient } from 'catchword-client/catalog-client';
import {
  type Arena,
  disturbSource,
  drawArena,
  ENDLESS,
  type Ended,
  flipSometimes,
  newOutcome,
  noteRun,
  type Outcome,
  PASSES,
  pauseMs,
  setLocalClock,
  whole,
  whyWrong,
} from './adversary-runs.ts';
import { emptyMirror } from './empty-mirror.ts';
import { isExpected, Killed, type SimulatedProcess, startProcess } from './process.ts';
import type { SimulatedSource } from './source.ts';
import { createWorld, type Owner, type World } from './world.ts';

/*
 * The adversary against the real keeper, with its queue, timers, lease and mirror, on a virtual clock. It also ends the
 * process at any point, or tells it to end, and sets the clocks meanwhile.
 */

const HOUR = 3_600_000;
/** The lease of a process that was killed has expired after this time. */
const EXPIRED_MS = 31_000;
/** How often a run is resumed at most. */
const RESUMES = 60;
/** How often one run's process ends at most. */
const DEATHS = 4;

/** What the adversary does to processes, and whether it does anything. */
interface Fate {
  isCalm: boolean;
  deaths: number;
  /** Whether the next process begins at once. */
  isHasty: boolean;
  isEndless: boolean;
}

function createDisturbedSource(world: World, arena: Arena, fate: Fate): SimulatedSource {
  const { list, adversary, random, clock, losses } = arena;

  function clientFor(owner: Owner, onStep: (point: string) => void): CatalogClient {
    const local = world.clockOf(owner);

    async function read(task: FetchTask, signal: AbortSignal): Promise<PageResponse> {
      onStep('request');
      fate.isEndless ||= task.pass > PASSES;
      if (fate.isEndless) throw new CatchwordError('SOURCE_REFUSED', ENDLESS);
      const isBlank = !fate.isCalm && disturbSource(arena, task);
      const { body, ids } = list.answer(task, isBlank);
      const requestedAt = local.now();
      const isLost = !fate.isCalm && random() < losses;
      if (!isLost) adversary.answered(task, ids);
      await local.sleep(random() < 0.2 ? whole(random, 1_000, 20_000) : whole(random, 1, 2_000), signal);
      if (isLost) throw new CatchwordError('SOURCE_TIMEOUT', 'simulated loss of an answer');
      onStep('response');
      const sourceTime = Math.floor((world.now() + clock.sourceMs) / 1000) * 1000;
      return { body, sourceTime, requestedAt, receivedAt: local.now() };
    }

    return { read, close: async () => {} };
  }

  return { requests: [], pages: [], clientFor };
}

/** Starts processes, and ends them while they read or wait. */
function createProcesses(world: World, arena: Arena, fate: Fate, db: string) {
  const { settings, random, clock, adversary } = arena;
  const source = createDisturbedSource(world, arena, fate);
  let begun = 0;
  let count = 0;

  /** Ends a process while its run settles, and sets the source's clock, which is to show that the run waited. */
  function endSettling(self: SimulatedProcess): void {
    const isHiding = adversary.isHiding();
    if (fate.isCalm || fate.deaths === 0 || random() > (isHiding ? 0.9 : 0.3)) return;
    fate.deaths--;
    // Early, and told to end, so that the next process begins before the deltas have caught up.
    fate.isHasty = isHiding && random() < 0.7;
    world.at(world.now() + whole(random, 0, fate.isHasty ? 5_000 : settings.overlapMs), () => {
      if (fate.isHasty || random() < 0.5) self.stop();
      else self.kill('while it waits');
      if (fate.isHasty || random() < 0.5) clock.sourceMs += whole(random, settings.overlapMs, HOUR);
      if (!fate.isHasty) adversary.idle();
    });
  }

  function dies(): boolean {
    if (fate.isCalm || fate.deaths === 0 || random() >= arena.crashes / 2) return false;
    fate.deaths--;
    return true;
  }

  return {
    /** When the newest run began, by the world's clock. */
    begun: (): number => begun,
    start: (): Promise<SimulatedProcess> =>
      startProcess({
        name: `p${++count}`,
        world,
        source,
        db,
        settings: { ...settings, lookahead: 2 * arena.concurrency },
        pace: null,
        concurrency: arena.concurrency,
        skewMs: clock.localMs,
        dies,
        onWrite: () => {},
        onRun: () => {
          begun = world.now();
        },
        onApplied: () => {},
        onSettle: endSettling,
        duplicated: 0,
      }),
  };
}

/** The time without a process, in which this machine's clock may jump. */
async function rest(world: World, arena: Arena, fate: Fate, isKilled: boolean): Promise<void> {
  const { random, adversary } = arena;
  if (fate.isHasty) {
    fate.isHasty = false;
    await world.advance(whole(random, 1_000, 3_000));
    return;
  }
  if (random() < 0.5) adversary.idle();
  // A process that was told to end may be started again at once.
  await world.advance(random() < 0.6 ? whole(random, 1_000, isKilled ? EXPIRED_MS : 5_000) : pauseMs(random));
  setLocalClock(arena);
  if (isKilled && random() < 0.5) await world.advance(EXPIRED_MS);
}

/**
 * Lets the adversary disturb full runs of the keeper on one mirror, until one is wrong.
 * @param count how many
 */
export async function disturbKeeper(seed: number, count: number): Promise<Outcome> {
  const world = createWorld(seed);
  const arena = drawArena(seed, world.now, true);
  const outcome = newOutcome(arena);
  const { settings, adversary, random } = arena;
  const fate: Fate = { isCalm: true, deaths: 0, isHasty: false, isEndless: false };
  const directory = mkdtempSync(join(FAST_DIRECTORY, 'catchword-adversary-'));
  const processes = createProcesses(world, arena, fate, emptyMirror(directory));
  let current: SimulatedProcess | undefined;
  /** Whether the first load is disturbed, too. */
  const first = random() < 0.5 ? 0 : 1;

  /** @returns whether the run was resumed, and why it was wrong; null if it was not */
  async function complete(kind: RunKind): Promise<Ended> {
    for (let resumes = 0; resumes < RESUMES; resumes++) {
      current ??= await processes.start();
      try {
        const run = await world.until(current.run(kind));
        if (run === null) throw new Error('no run was started');
        const violation = whyWrong(arena, current.store, run, processes.begun());
        return { isResumed: resumes > 0, isSealed: run.proof === 'sealed', violation };
      } catch (error) {
        if (!isExpected(error)) throw error;
        await current.close();
        current = undefined;
        if (fate.isEndless) break;
        await rest(world, arena, fate, error instanceof Killed);
      }
    }
    return { isResumed: true, isSealed: false, violation: ENDLESS };
  }

  try {
    for (let at = 0; at <= count; at++) {
      const kind = at > 0 && random() < arena.deltas ? 'delta' : 'full';
      if (at > 1 && kind === 'full') adversary.refill();
      await world.advance(3 * settings.overlapMs + whole(random, 0, HOUR));
      if (at >= first) adversary.begin();
      if (at >= first) flipSometimes(arena);
      if (kind === 'delta') {
        adversary.stir();
        // The next delta asks from later than these changes, if this one moves the watermark.
        if (random() < 0.6) await world.advance(whole(random, 1, 3) * settings.overlapMs);
      }
      Object.assign(fate, { isCalm: at < first, deaths: at < first ? 0 : DEATHS, isHasty: false });
      await world.advance(1);
      const ended = await complete(kind);
      if (at >= first && !noteRun(outcome, arena, ended)) break;
    }
    return outcome;
  } finally {
    await current?.close();
    rmSync(directory, { recursive: true, force: true });
  }
}
