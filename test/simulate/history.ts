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
import { createSimulatedSource, type SimulatedRequest, type SimulatedSource, type SourceBehaviour } from './source.ts';
import { createWorld, type Owner, type World } from './world.ts';

export interface HistoryResult {
  readonly scenario: Scenario;
  readonly violation: string | null;
  readonly trace: string;
  readonly fullRuns: readonly Run[];
  readonly falseRemovals: number;
}

export interface HistoryOptions {
  /** Where files are made; default: in memory where there is such a place. */
  readonly directory?: string;
  /** Instead of the scenario's draw. */
  readonly scenario?: Partial<Scenario>;
}

let template: string | undefined;

/** An empty mirror; making one takes longer than most histories. */
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
  /** When runs began, by the world's clock. */
  readonly started: ReadonlyMap<number, number>;
  /** The process that runs runs. */
  current?: SimulatedProcess | undefined;
}

/** Something changes: mostly an update. */
function change(world: World, catalog: SimulatedCatalog, scenario: Scenario): void {
  const kind = world.random();
  const lagMs = scenario.lagMs > 0 && world.random() < 0.3 ? world.random() * scenario.lagMs : 0;
  if (kind < 0.6) catalog.update(lagMs);
  else if (kind < 0.75) catalog.create(lagMs);
  else if (kind < 0.8) catalog.restore();
  else catalog.remove(scenario.withdrawn === 'both' ? world.random() < 0.5 : scenario.withdrawn === 'tombstone');
}

/** With each page that is read, so many changes, some time soon. */
function churnWith(world: World, catalog: SimulatedCatalog, scenario: Scenario): () => void {
  const soonMs = scenario.behaviour.latencyMs * (1 + scenario.behaviour.jitter);
  return () => {
    const count = Math.floor(scenario.churn + world.random());
    for (let n = 0; n < count; n++) {
      world.at(world.now() + world.random() * soonMs, () => change(world, catalog, scenario));
    }
  };
}

/** Time between runs, in which things change as well. */
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

/** The operator knows an outage when there is one. */
function decide({ world, observer, behaviour }: Setting, { store, owner }: SimulatedProcess, run: Run): void {
  const leased = store.keeperLease.acquire(world.clockOf(owner).now());
  if (behaviour.outage) rejectRun(leased, run.id);
  else approveRun(leased, run.id, world.now());
  leased.release();
  world.trace(`run ${run.id} ${behaviour.outage ? 'rejected' : 'approved'}`);
  observer.step();
}

/** Without a `Date`, runs read so much more of what changed. */
const NO_DATE_MARGIN_MS = 300_000;

/** A run that takes longer waits for something that does not come. */
const PATIENCE_MS = 1.5 * HOUR_MS;

/** Makes a run happen, whatever it takes: a killed process is started again, a run that failed begun anew. */
async function see(setting: Setting, kind: RunKind, tries = 12): Promise<Run | null> {
  const { world, observer, start, fullRuns, source, scenario } = setting;
  for (let attempt = 0; attempt < tries; attempt++) {
    // Some processes live for one run, some for many.
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
      world.trace(
        `run ${run.id} ${run.kind} ${run.state} ${run.proof} ${JSON.stringify(run.evidence)} ${run.reasons.join('; ')}`,
      );
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

/** When the run began, by the world's clock. */
function startOf({ started }: Setting, run: Run): number {
  const at = started.get(run.id);
  if (at === undefined) throw new Violation(`run ${run.id} has no beginning`);
  return at;
}

/** A process stands still for longer than its lease; another takes over; the first one wakes up and must not write. */
async function standStill(setting: Setting): Promise<void> {
  const { world, start, observer } = setting;
  const first = await start();
  let settled = false;
  const done = first.run('full').then(
    () => true,
    () => false,
  );
  void done.then(() => {
    settled = true;
  });
  await world.advance(500 + world.random() * 5_000);
  first.owner.pausedUntil = world.now() + 45_000 + world.random() * 60_000;
  await world.advance(31_000);
  const early = settled;
  await see(setting, 'delta');
  await world.advance(120_000);
  const finished = await world.until(done);
  if (!early && finished) throw new Violation('a process that had lost its lease went on as if nothing had happened');
  await first.close();
  observer.step();
}

async function outage(setting: Setting): Promise<void> {
  setting.behaviour.outage = true;
  await see(setting, 'full');
  setting.behaviour.outage = false;
}

async function live(setting: Setting, calm: () => void): Promise<void> {
  const { world, catalog, observer, scenario } = setting;
  for (const [at, kind] of scenario.runs.entries()) {
    for (let n = 0; n < scenario.bulk * scenario.size; n++) catalog.update();
    if (scenario.bulk > 0) await world.advance(scenario.overlapMs / 2);
    await see(setting, kind);
    await pause(setting);
    if (at === 0 && scenario.twoKeepers) await standStill(setting);
    if (at === 0 && scenario.outage) await outage(setting);
  }
  calm();
  const { order, behaviour } = scenario;
  // What became visible late has settled, a clock that was put back has caught up, and so has one that is not told.
  const calmMs = scenario.overlapMs + Math.max(scenario.overlapMs, behaviour.dated ? 0 : NO_DATE_MARGIN_MS);
  await world.advance(calmMs + scenario.clockJumpMs);
  const calmAt = world.now();
  const plain = behaviour.answeredSize !== null;
  if (
    (order === 'unstable' || order === 'ties') &&
    catalog.size >= Math.min(scenario.perPage, behaviour.answeredSize ?? 1000)
  )
    return;
  let last: Run | null = null;
  for (let night = 0; night < (plain ? 3 : 1); night++) last = await see(setting, 'full');
  // A run that was left unfinished may have been answered by a cache before all was calm, and is open then.
  const cached = scenario.behaviour.cacheMs > 0;
  if (cached && last !== null && startOf(setting, last) < calmAt) last = await see(setting, 'full');
  if (last === null) throw new Violation('in the end no full run was possible');
  if (!plain && last.proof !== 'sealed') throw new Violation(`in the end the run is open: ${last.reasons.join('; ')}`);
  observer.expectEqual();
}

/** Lives through one history. The same seed and code give the same trace, byte for byte. */
export async function simulate(seed: number, options: HistoryOptions = {}): Promise<HistoryResult> {
  const scenario: Scenario = { ...drawScenario(seed), ...options.scenario };
  const directory = mkdtempSync(join(options.directory ?? FAST_DIRECTORY, 'catchword-sim-'));
  const db = emptyMirror(directory);
  const world = createWorld(seed, () => {});
  let jumpMs = 0;
  const sourceNow = (): number => world.now() + scenario.sourceSkewMs - jumpMs;
  const catalog = createSimulatedCatalog(scenario.size, {
    ...scenario,
    random: world.random,
    now: () => world.now(),
    sourceNow,
  });
  const behaviour = { ...scenario.behaviour };
  const source = createSimulatedSource(world, catalog, behaviour, sourceNow, () => onRequest());
  const observer = createObserver({
    db,
    catalog,
    now: () => world.now(),
    withdrawnAs: scenario.withdrawnAs,
    latenessMs: latenessOf(behaviour),
    flickers: latenessOf(behaviour) + behaviour.cacheMs > 0,
    // What a cache answers, and says how old it is, is from before the run.
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
    await live(setting, () => {
      onRequest = () => {};
      crashes.clear();
      settlingDeaths = 0;
      const calm = {
        unavailable: 0,
        rateLimited: 0,
        cutShort: 0,
        shortPage: 0,
        wrongPage: 0,
        repeatedPage: 0,
        lyingTotals: 0,
        cacheMs: 0,
      };
      Object.assign(behaviour, calm);
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
