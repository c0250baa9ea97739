import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isUntold } from '@catchword/catalog/reasons';
import type { Run, RunKind } from '@catchword/catalog/run-types';
import { FAST_DIRECTORY } from '@catchword/testing/fast-directory';
import { reasonText } from '../../src/report/reason-text.ts';
import { approveRun, rejectRun } from '../../src/sync/approve-held-run.ts';
import { emptyMirror } from './empty-mirror.ts';
import { checkPace, checkSettled, type Observer, Violation } from './invariants.ts';
import { isExpected, Killed, type SimulatedProcess } from './process.ts';
import { drawScenario, HOUR_MS, latenessOf, type Scenario } from './scenario.ts';
import { change, createMachine, type Machine, type OpenSource, observe, openSource } from './set-up.ts';
import { createWorld, type World } from './world.ts';

export interface HistoryResult {
  readonly scenario: Scenario;
  readonly violation: string | null;
  readonly trace: string;
  readonly fullRuns: readonly Run[];
  readonly falseRemovals: number;
}

export interface HistoryOptions {
  /** Directory for files; default: in memory if possible. */
  readonly directory?: string;
  /** Overrides of the drawn scenario. */
  readonly scenario?: Partial<Scenario>;
}

interface Setting extends Pick<OpenSource, 'catalog' | 'source' | 'behaviour' | 'dress'>, Omit<Machine, 'calm'> {
  readonly world: World;
  readonly observer: Observer;
  readonly scenario: Scenario;
  readonly fullRuns: Run[];
  /** By the world's clock. */
  outageEndedAt?: number;
  /** The process that makes runs. */
  current?: SimulatedProcess | undefined;
}

/** Lets time pass between runs, with changes. */
async function pause({ world, catalog, scenario }: Setting): Promise<void> {
  const lengthMs = world.random() * 900_000;
  const most = scenario.churn === 0 ? 0 : Math.min(2 * scenario.perPage, scenario.size / 10);
  const steady = scenario.rate === null ? 0 : (scenario.churn * scenario.rate * lengthMs) / 60_000;
  const count = Math.floor(scenario.steady ? steady : world.random() * most);
  for (let n = 0; n < count; n++) {
    world.at(world.now() + world.random() * lengthMs, () => change(world, catalog, scenario));
  }
  await world.advance(lengthMs);
}

/** Whether the source answers as in an outage, or a cache may still show its answers. */
function showsOutage({ world, behaviour, outageEndedAt = Number.NEGATIVE_INFINITY }: Setting): boolean {
  return behaviour.outage || world.now() - outageEndedAt <= latenessOf(behaviour);
}

/** Decides about a held run as an operator would, who recognizes an outage. */
function decide(setting: Setting, { store, owner }: SimulatedProcess, run: Run): void {
  const { world, observer } = setting;
  const leased = store.keeperLease.acquire(world.clockOf(owner).now());
  const isOutage = showsOutage(setting);
  if (isOutage) rejectRun(leased, run.id);
  else approveRun(leased, run.id, world.now());
  leased.release();
  world.trace(`run ${run.id} ${isOutage ? 'rejected' : 'approved'}`);
  observer.step();
}

/** Without a `Date`, deltas start this much earlier. */
const NO_DATE_MARGIN_MS = 300_000;

/** A run that takes longer, and longer than it may settle and look up, waits forever. */
const PATIENCE_MS = 1.2 * HOUR_MS;
const MOST_SETTLES = 4;
/** Of one lookup after another, where requests are slow and few. */
const LOOKUP_MS = 30_000;

/** Completes a run: restarts killed processes and retries failed runs. */
async function completeRun(setting: Setting, kind: RunKind, tries = 12): Promise<Run | null> {
  const { world, observer, start, fullRuns, source, scenario } = setting;
  for (let attempt = 0; attempt < tries; attempt++) {
    // Some processes make one run, some make many.
    if (setting.current !== undefined && (setting.current.owner.dead || world.random() < 0.3)) await stop(setting);
    setting.current ??= await start();
    const process = setting.current;
    const begun = world.now();
    try {
      const run = await world.until(process.run(kind));
      if (run === null) throw new Violation('a run was not started');
      const lookupsMs = (run.evidence?.lookups ?? 0) * LOOKUP_MS;
      if (world.now() - begun > PATIENCE_MS + MOST_SETTLES * scenario.overlapMs + lookupsMs) {
        throw new Violation(`run ${run.id} took ${Math.round((world.now() - begun) / 60_000)} minutes`);
      }
      const outcome = `${run.state} ${run.proof} ${JSON.stringify(run.evidence)} ${run.reasons.map(reasonText).join('; ')}`;
      world.trace(`run ${run.id} ${run.kind} ${outcome}`);
      observer.runEnded(run, startOf(setting, run), showsOutage(setting));
      checkSettled(run, process.store, { asked: source.requests, applied: setting.applied }, scenario.overlapMs);
      if (run.kind === 'full') fullRuns.push(run);
      if (run.state === 'held') decide(setting, process, run);
      return run;
    } catch (error) {
      if (!isExpected(error)) throw error;
      world.trace(`run ended: ${error instanceof Error ? `${error.name} ${error.message}` : ''}`);
      observer.step();
      await world.advance(error instanceof Killed ? world.random() * Math.min(60_000, scenario.overlapMs / 2) : 31_000);
    }
  }
  return null;
}

async function stop(setting: Setting): Promise<void> {
  await setting.current?.close();
  setting.current = undefined;
}

/** The start of a run, by the world's clock. */
function startOf({ started }: Setting, run: Pick<Run, 'id'>): number {
  const at = started.get(run.id);
  if (at === undefined) throw new Violation(`run ${run.id} has no beginning`);
  return at;
}

/** Suspends a process for longer than its lease. Another one takes over, and the first must not write afterwards. */
async function suspendKeeper(setting: Setting): Promise<void> {
  const { world, start, observer } = setting;
  const first = await start();
  let settled = false;
  const succeeded = first.run('full').then(
    () => true,
    () => false,
  );
  void succeeded.then(() => {
    settled = true;
  });
  await world.advance(500 + world.random() * 5_000);
  first.owner.pausedUntil = world.now() + 45_000 + world.random() * 60_000;
  await world.advance(31_000);
  const early = settled;
  await completeRun(setting, 'delta');
  await world.advance(120_000);
  const finished = await world.until(succeeded);
  if (!early && finished) throw new Violation('a process that had lost its lease completed its run');
  await first.close();
  observer.step();
}

async function outage(setting: Setting): Promise<void> {
  setting.behaviour.outage = true;
  await completeRun(setting, 'full');
  setting.behaviour.outage = false;
  setting.outageEndedAt = setting.world.now();
}

/** Stops a process while it reads, and starts the next ones with settings that select another currency. */
async function selectCurrency(setting: Setting): Promise<void> {
  const { world, dress } = setting;
  setting.current ??= await setting.start();
  const reading = setting.current.run('full');
  reading.catch(() => {});
  await world.advance(world.random() * 10_000);
  setting.current.kill('to change its settings');
  await stop(setting);
  await world.advance(31_000);
  dress.currency = 'USD';
  world.trace('the settings select another currency');
  const changedAt = world.now();
  const run = await completeRun(setting, 'delta');
  // A process may be killed when its full run is complete.
  const later = setting.current?.store.runs.list(20).filter(({ id }) => startOf(setting, { id }) >= changedAt) ?? [];
  const isReread = later.some(({ kind, state }) => kind === 'full' && (state === 'complete' || state === 'held'));
  if (run !== null && !isReread) throw new Violation(`run ${run.id} does not read all products again`);
}

async function simulateLife(setting: Setting, calm: () => void): Promise<void> {
  const { world, catalog, observer, scenario } = setting;
  for (const [at, kind] of scenario.runs.entries()) {
    if (at === scenario.newCurrencyAfter) await selectCurrency(setting);
    for (let n = 0; n < scenario.bulk * scenario.size; n++) catalog.update();
    if (scenario.bulk > 0) await world.advance(scenario.overlapMs / 2);
    await completeRun(setting, kind);
    await pause(setting);
    if (at === 0 && scenario.twoKeepers) await suspendKeeper(setting);
    if (at === 0 && scenario.outage) await outage(setting);
  }
  calm();
  const { order, behaviour } = scenario;
  // Late changes are visible now, and a clock that was put back has caught up.
  const calmMs = scenario.overlapMs + Math.max(scenario.overlapMs, behaviour.dated ? 0 : NO_DATE_MARGIN_MS);
  // For an hour after one that came twice, deltas show the changes of both again.
  const zoneMs = scenario.zone === null ? 0 : HOUR_MS;
  await world.advance(calmMs + scenario.clockJumpMs + zoneMs);
  const calmAt = world.now();
  // The last run reads the source as it is: it does not resume one that began before.
  if (scenario.world !== null && setting.current?.store.runs.unfinished()) await completeRun(setting, 'delta');
  const plain = behaviour.maxPageSize !== null;
  const isOrdered = order !== 'unstable' && order !== 'ties';
  if (!isOrdered && catalog.living.size >= Math.min(scenario.perPage, behaviour.maxPageSize ?? 1000)) return;
  let last: Run | null = null;
  for (let night = 0; night < (plain ? 3 : 1); night++) last = await completeRun(setting, 'full');
  // A resumed run may contain cached responses from before, and is open then.
  const cached = scenario.behaviour.cacheMs > 0;
  if (cached && last !== null && startOf(setting, last) < calmAt) last = await completeRun(setting, 'full');
  // Deltas do not tell what happened to the source before it was sound again; the run that finds this is open.
  if (last?.reasons.some(isUntold)) last = await completeRun(setting, 'full');
  // If the clock was put forward since the run before, it asks from before that, which may be the whole list; once.
  if (last?.reasons.some(({ code }) => code === 'whole-delta')) last = await completeRun(setting, 'full');
  if (last === null) throw new Violation('no full run was possible at the end');
  const { neverSealed } = scenario.limits;
  if (!plain && !neverSealed && last.proof !== 'sealed') {
    throw new Violation(`the last run is open: ${last.reasons.map(reasonText).join('; ')}`);
  }
  observer.expectEqual(neverSealed);
}

/** Simulates one history. The same seed and code give the same trace, byte for byte. */
export async function simulate(seed: number, options: HistoryOptions = {}): Promise<HistoryResult> {
  const scenario: Scenario = { ...drawScenario(seed), ...options.scenario };
  const directory = mkdtempSync(join(options.directory ?? FAST_DIRECTORY, 'catchword-sim-'));
  const db = emptyMirror(directory);
  const world = createWorld(seed);
  const opened = openSource(world, scenario);
  const observer = observe(db, world, scenario, opened);
  const machine = createMachine(world, scenario, db, opened, () => observer.step());
  const fullRuns: Run[] = [];
  const setting: Setting = { world, scenario, observer, fullRuns, ...opened, ...machine };
  let violation: string | null = null;
  try {
    await simulateLife(setting, () => {
      opened.calm();
      machine.calm();
    });
    checkPace(scenario.rate, opened.source.requests);
  } catch (error) {
    violation = error instanceof Violation ? error.message : `${error instanceof Error ? error.stack : String(error)}`;
    world.trace(`violation: ${violation}`);
  } finally {
    await stop(setting);
    observer.close();
    rmSync(directory, { recursive: true, force: true });
  }
  return { scenario, violation, trace: world.lines.join('\n'), fullRuns, falseRemovals: observer.falseRemovals };
}
