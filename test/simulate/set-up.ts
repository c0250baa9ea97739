import { paceOf } from '@catchword/pace/pace';
import { createSimulatedCatalog, type SimulatedCatalog } from './catalog.ts';
import { createObserver, type Observer } from './invariants.ts';
import { type ProcessOptions, type SimulatedProcess, startProcess } from './process.ts';
import { DAY_MS, HOUR_MS, latenessOf, type Scenario } from './scenario.ts';
import { createSimulatedSource, type Dress, FAULTLESS, type SimulatedRequest } from './source.ts';
import type { Owner, World } from './world.ts';

/* The parts of a history, made from its scenario: the source, the machine with its processes, and the observer. */

export function settingsOf(scenario: Scenario): ProcessOptions['settings'] {
  return {
    perPage: scenario.perPage,
    seam: scenario.seam,
    overlapMs: scenario.overlapMs,
    maxPasses: 2,
    lookups: scenario.behaviour.lookup,
    removalLimit: { percent: 1 },
    lossLimit: { percent: 5 },
    confirmations: 2,
    withdrawnAs: scenario.withdrawnAs,
    runMaxAgeMs: DAY_MS,
    minFreeBytes: null,
    runRetentionMs: Number.MAX_SAFE_INTEGER,
    logRetentionMs: Number.MAX_SAFE_INTEGER,
    logCap: Number.MAX_SAFE_INTEGER,
    ignoreFields: scenario.noisy ? [['shown']] : [],
    volatileFields: scenario.noisy ? [['shown']] : [],
    untoldFields: [],
    lookahead: 2 * scenario.concurrency,
    maxAttempts: 8,
    firstAttempts: 6,
  };
}

/** Makes one change, mostly an update. */
export function change(world: World, catalog: SimulatedCatalog, scenario: Scenario): void {
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

export type OpenSource = ReturnType<typeof openSource>;

export function openSource(world: World, scenario: Scenario) {
  const { zone, limits } = scenario;
  const { random, now } = world;
  const begin = now();
  let jumpMs = 0;
  let isCalm = false;
  let onRequest = (): void => {};
  const sourceNow = (): number => now() + scenario.sourceSkewMs - jumpMs;
  /** The source's local time. */
  function wallTimeOf(sourceMs: number): number {
    if (zone === null) return sourceMs;
    return sourceMs + (sourceMs - scenario.sourceSkewMs < begin + zone.atMs ? 0 : zone.byMs);
  }
  const mayRepeat = zone !== null && zone.byMs < 0 && limits.unsound !== null;
  const catalog = createSimulatedCatalog(scenario.size, {
    ...scenario,
    random,
    now,
    sourceNow: () => wallTimeOf(sourceNow()),
    isSilent: () => mayRepeat && now() >= begin + zone.atMs && now() < begin + zone.atMs - zone.byMs,
  });
  const behaviour = { ...scenario.behaviour };
  const dress: Dress = { currency: '', noisy: scenario.noisy };
  const source = createSimulatedSource(world, catalog, behaviour, sourceNow, () => onRequest(), { dress, wallTimeOf });
  onRequest = churnWith(world, catalog, scenario);

  if (scenario.clockJumpMs > 0 && !scenario.happenings.some(({ what }) => what.kind === 'clock')) {
    world.at(now() + 30_000 + random() * 900_000, () => {
      jumpMs = scenario.clockJumpMs;
      world.trace(`the source's clock is put back by ${jumpMs} ms`);
    });
  }
  for (const { atMs, what } of scenario.happenings) {
    world.at(begin + atMs, () => {
      if (isCalm) return;
      world.trace(`the source: ${JSON.stringify(what)}`);
      if (what.kind === 'restore') catalog.restoreBackup(what.backMs);
      else if (what.kind === 'bulk') catalog.bulk(what.change, what.share);
      else jumpMs -= what.byMs;
    });
  }

  return {
    catalog,
    source,
    behaviour,
    dress,
    /** Whether a sealed run that began then, and ends now, may be wrong. */
    maybeUnsound: (started: number): boolean => {
      const { unsound } = limits;
      const toMs = (unsound?.to ?? 0) + latenessOf(scenario.behaviour);
      return unsound !== null && !isCalm && now() >= begin + unsound.from && started <= begin + toMs;
    },
    /** From now on, nothing changes, and the source is sound. */
    calm: (): void => {
      onRequest = () => {};
      isCalm = true;
      Object.assign(behaviour, FAULTLESS, { cacheMs: 0 });
    },
  };
}

export function observe(db: string, world: World, scenario: Scenario, opened: OpenSource): Observer {
  const { behaviour, withdrawnAs, happenings, sourceSkewMs } = scenario;
  const latenessMs = latenessOf(behaviour);
  const isRestored = happenings.some(({ what }) => what.kind === 'restore');
  return createObserver({
    ...opened,
    db,
    now: world.now,
    withdrawnAs,
    latenessMs,
    flickers: latenessMs + behaviour.cacheMs > 0 || isRestored,
    pages: opened.source.pages,
    // A cache that sends Age may return responses from before the run.
    momentOf: behaviour.cacheTellsAge ? (sourceTime) => sourceTime - sourceSkewMs : null,
  });
}

export type Machine = ReturnType<typeof createMachine>;

/** The machine that the processes run on, one after another or several at once. */
export function createMachine(
  world: World,
  scenario: Scenario,
  db: string,
  { source, dress }: OpenSource,
  onWrite: () => void,
) {
  const { rate, concurrency, duplicated, overlapMs } = scenario;
  const started = new Map<number, number>();
  const applied: SimulatedRequest[] = [];
  const owners: Owner[] = [];
  const crashes = new Set(scenario.crashes);
  let skewMs = scenario.localSkewMs;
  let points = 0;
  let processes = 0;
  let { settlingDeaths } = scenario;

  function jump(byMs: number): void {
    skewMs += byMs;
    for (const owner of owners) owner.skewMs += byMs;
    world.trace(`this machine's clock jumps by ${byMs} ms`);
  }

  function dieSettling(process: SimulatedProcess): void {
    if (settlingDeaths === 0 || world.random() < 0.3) return;
    settlingDeaths--;
    const aheadMs = HOUR_MS * (1 + world.random());
    world.at(world.now() + world.random() * overlapMs, () => {
      process.kill('while it waits');
      jump(aheadMs);
      world.at(world.now() + 3 * overlapMs, () => jump(-aheadMs));
    });
  }

  for (const { atMs, byMs } of scenario.localJumps) world.at(world.now() + atMs, () => jump(byMs));

  return {
    /** Start of each run, by the world's clock. */
    started: started as ReadonlyMap<number, number>,
    applied: applied as readonly SimulatedRequest[],
    start: async (): Promise<SimulatedProcess> => {
      const process = await startProcess({
        name: `p${++processes}`,
        world,
        source,
        db,
        settings: settingsOf(scenario),
        currency: dress.currency,
        pace: paceOf(rate === null ? null : { requests: rate, windowMs: 60_000 }),
        concurrency,
        skewMs,
        dies: () => crashes.has(++points),
        onWrite,
        onRun: (id) => started.set(id, world.now()),
        onApplied: (window) => applied.push(window),
        onSettle: dieSettling,
        duplicated,
      });
      owners.push(process.owner);
      return process;
    },
    /** From now on, no process dies. */
    calm: (): void => {
      crashes.clear();
      settlingDeaths = 0;
    },
  };
}
