import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Run, RunKind } from '../../src/catalog/run.ts';
import { paceOf } from '../../src/pacer.ts';
import { openStore } from '../../src/store/store.ts';
import { approveRun, rejectRun } from '../../src/sync/review-run.ts';
import { FAST_DIRECTORY } from '../support/fast-directory.ts';
import { createSimulatedCatalog, type SimulatedCatalog } from './catalog.ts';
import { checkPace, checkSettled, createObserver, type Observer, Violation } from './invariants.ts';
import { isExpected, Killed, type ProcessOptions, type SimulatedProcess, startProcess } from './process.ts';
import { DAY_MS, drawScenario, HOUR_MS, latenessOf, type Scenario } from './scenario.ts';
import {
  createSimulatedSource,
  FAULTLESS,
  type SimulatedRequest,
  type SimulatedSource,
  type SourceBehaviour,
} from './source.ts';
import { createWorld, type Owner, type World } from './world.ts';

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

let template: string | undefined;

/** Copies an empty mirror, because creating one takes longer than most histories. */
function emptyMirror(directory: string): string {
  if (template === undefined) {
    const home = mkdtempSync(join(FAST_DIRECTORY, 'catchword-template-'));
    process.on('exit', () => rmSync(home, { recursive: true, force: true }));
    template = join(home, 'catalog.db');
    const store = openStore(template);
    store.walCheckpoint();
    store.close();
  }
  const file = join(directory, 'catalog.db');
  copyFileSync(template, file);
  return file;
}

export function settingsOf(scenario: Scenario): ProcessOptions['settings'] {
  return {
    perPage: scenario.perPage,
    seam: scenario.seam,
    overlapMs: scenario.overlapMs,
    maxPasses: 2,
    lookups: scenario.behaviour.lookup,
    removalLimit: { percent: 1 },
    confirmations: 2,
    withdrawnAs: scenario.withdrawnAs,
    runMaxAgeMs: DAY_MS,
    logRetentionMs: Number.MAX_SAFE_INTEGER,
    logCap: Number.MAX_SAFE_INTEGER,
    ignoreFields: [],
    lookahead: 2 * scenario.concurrency,
    maxAttempts: 8,
    firstAttempts: 6,
  };
}

interface Setting {
  readonly world: World;
  readonly catalog: SimulatedCatalog;
  readonly source: SimulatedSource;
  readonly observer: Observer;
  readonly scenario: Scenario;
  readonly start: () => Promise<SimulatedProcess>;
  readonly behaviour: SourceBehaviour;
  readonly fullRuns: Run[];
  readonly applied: readonly SimulatedRequest[];
  /** Start of each run, by the world's clock. */
  readonly started: ReadonlyMap<number, number>;
  /** The process that makes runs. */
  current?: SimulatedProcess | undefined;
}

/** Makes one change, mostly an update. */
function change(world: World, catalog: SimulatedCatalog, scenario: Scenario): void {
  const kind = world.random();
  const lagMs = scenario.lagMs > 0 && world.random() < 0.3 ? world.random() * scenario.lagMs : 0;
  if (kind < 0.6) catalog.update(lagMs);
  else if (kind < 0.75) catalog.create(lagMs);
  else if (kind < 0.8) catalog.restore();
  else catalog.remove(scenario.withdrawn === 'both' ? world.random() < 0.5 : scenario.withdrawn === 'tombstone');
}

/** Makes some changes soon after each page that is read. */
function churnWith(world: World, catalog: SimulatedCatalog, scenario: Scenario): () => void {
  const soonMs = scenario.behaviour.latencyMs * (1 + scenario.behaviour.jitter);
  return () => {
    const count = Math.floor(scenario.churn + world.random());
    for (let n = 0; n < count; n++) {
      world.at(world.now() + world.random() * soonMs, () => change(world, catalog, scenario));
    }
  };
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

/** Decides about a held run as an operator would, who recognizes an outage. */
function decide({ world, observer, behaviour }: Setting, { store, owner }: SimulatedProcess, run: Run): void {
  const leased = store.keeperLease.acquire(world.clockOf(owner).now());
  if (behaviour.outage) rejectRun(leased, run.id);
  else approveRun(leased, run.id, world.now());
  leased.release();
  world.trace(`run ${run.id} ${behaviour.outage ? 'rejected' : 'approved'}`);
  observer.step();
}

/** Without a `Date`, deltas start this much earlier. */
const NO_DATE_MARGIN_MS = 300_000;

/** A run that takes longer waits forever. */
const PATIENCE_MS = 1.5 * HOUR_MS;

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
      if (world.now() - begun > PATIENCE_MS) {
        throw new Violation(`run ${run.id} took ${Math.round((world.now() - begun) / 60_000)} minutes`);
      }
      const outcome = `${run.state} ${run.proof} ${JSON.stringify(run.evidence)} ${run.reasons.join('; ')}`;
      world.trace(`run ${run.id} ${run.kind} ${outcome}`);
      observer.runEnded(run, startOf(setting, run), setting.behaviour.outage);
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
function startOf({ started }: Setting, run: Run): number {
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
}

async function simulateLife(setting: Setting, calm: () => void): Promise<void> {
  const { world, catalog, observer, scenario } = setting;
  for (const [at, kind] of scenario.runs.entries()) {
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
  await world.advance(calmMs + scenario.clockJumpMs);
  const calmAt = world.now();
  const plain = behaviour.maxPageSize !== null;
  const isOrdered = order !== 'unstable' && order !== 'ties';
  if (!isOrdered && catalog.living.size >= Math.min(scenario.perPage, behaviour.maxPageSize ?? 1000)) return;
  let last: Run | null = null;
  for (let night = 0; night < (plain ? 3 : 1); night++) last = await completeRun(setting, 'full');
  // A resumed run may contain cached responses from before, and is open then.
  const cached = scenario.behaviour.cacheMs > 0;
  if (cached && last !== null && startOf(setting, last) < calmAt) last = await completeRun(setting, 'full');
  if (last === null) throw new Violation('no full run was possible at the end');
  if (!plain && last.proof !== 'sealed') throw new Violation(`the last run is open: ${last.reasons.join('; ')}`);
  observer.expectEqual();
}

/** Simulates one history. The same seed and code give the same trace, byte for byte. */
export async function simulate(seed: number, options: HistoryOptions = {}): Promise<HistoryResult> {
  const scenario: Scenario = { ...drawScenario(seed), ...options.scenario };
  const directory = mkdtempSync(join(options.directory ?? FAST_DIRECTORY, 'catchword-sim-'));
  const db = emptyMirror(directory);
  const world = createWorld(seed);
  let jumpMs = 0;
  const sourceNow = (): number => world.now() + scenario.sourceSkewMs - jumpMs;
  const { random, now } = world;
  const catalog = createSimulatedCatalog(scenario.size, { ...scenario, random, now, sourceNow });
  const behaviour = { ...scenario.behaviour };
  const source = createSimulatedSource(world, catalog, behaviour, sourceNow, () => onRequest());
  const observer = createObserver({
    db,
    catalog,
    now,
    withdrawnAs: scenario.withdrawnAs,
    latenessMs: latenessOf(behaviour),
    flickers: latenessOf(behaviour) + behaviour.cacheMs > 0,
    // A cache that sends Age may return responses from before the run.
    momentOf: behaviour.cacheTellsAge ? (sourceTime) => sourceTime - scenario.sourceSkewMs : null,
  });
  const started = new Map<number, number>();
  const applied: SimulatedRequest[] = [];
  const owners: Owner[] = [];
  let localSkewMs = scenario.localSkewMs;
  let points = 0;
  let processes = 0;
  const crashes = new Set(scenario.crashes);
  function jump(byMs: number): void {
    localSkewMs += byMs;
    for (const owner of owners) owner.skewMs += byMs;
    world.trace(`this machine's clock jumps by ${byMs} ms`);
  }
  let settlingDeaths = scenario.settlingDeaths;
  function dieSettling(process: SimulatedProcess): void {
    if (settlingDeaths === 0 || world.random() < 0.3) return;
    settlingDeaths--;
    const aheadMs = HOUR_MS * (1 + world.random());
    world.at(world.now() + world.random() * scenario.overlapMs, () => {
      process.kill('while it waits');
      jump(aheadMs);
      world.at(world.now() + 3 * scenario.overlapMs, () => jump(-aheadMs));
    });
  }
  const start = async (): Promise<SimulatedProcess> => {
    const process = await startProcess({
      name: `p${++processes}`,
      world,
      source,
      db,
      settings: settingsOf(scenario),
      pace: paceOf(scenario.rate === null ? null : { requests: scenario.rate, windowMs: 60_000 }),
      concurrency: scenario.concurrency,
      skewMs: localSkewMs,
      dies: () => crashes.has(++points),
      onWrite: () => observer.step(),
      onRun: (id) => started.set(id, world.now()),
      onApplied: (window) => applied.push(window),
      onSettle: dieSettling,
      duplicated: scenario.duplicated,
    } satisfies ProcessOptions);
    owners.push(process.owner);
    return process;
  };
  let onRequest = churnWith(world, catalog, scenario);
  if (scenario.clockJumpMs > 0) {
    world.at(world.now() + 30_000 + world.random() * 900_000, () => {
      jumpMs = scenario.clockJumpMs;
      world.trace(`the source's clock is put back by ${jumpMs} ms`);
    });
  }
  for (const { atMs, byMs } of scenario.localJumps) {
    world.at(world.now() + atMs, () => jump(byMs));
  }
  const fullRuns: Run[] = [];
  const setting: Setting = { world, catalog, source, observer, scenario, start, behaviour, fullRuns, applied, started };
  let violation: string | null = null;
  try {
    await simulateLife(setting, () => {
      onRequest = () => {};
      crashes.clear();
      settlingDeaths = 0;
      Object.assign(behaviour, FAULTLESS, { cacheMs: 0 });
    });
    checkPace(scenario.rate, source.requests);
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
