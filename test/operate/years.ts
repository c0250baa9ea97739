import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Clock } from '@catchword/base/clock';
import type { Service } from '@catchword/base/lifecycle';
import type { Logger } from '@catchword/base/log';
import type { RunKind } from '@catchword/catalog/run-types';
import { sourceIdentity } from '@catchword/catalog/source-identity';
import { paceOf } from '@catchword/pace/pace';
import { createPacer } from '@catchword/pace/pacer';
import { createEmbeddedQueue } from '@catchword/queue/embedded-queue';
import { createRandom } from '@catchword/sandbox/catalog/random';
import { FAST_DIRECTORY } from '@catchword/testing/fast-directory';
import { execute, query } from '@catchword/testing/sqlite';
import type { CatalogClient } from 'catchword-client/catalog-client';
import { startNotifier } from '../../src/operate/incidents/notifier.ts';
import { startRunQueue } from '../../src/operate/schedule/run-queue.ts';
import { startScheduler } from '../../src/operate/schedule/scheduler.ts';
import { startStandby } from '../../src/operate/schedule/standby.ts';
import { watchMirror } from '../../src/store/file/watch-file.ts';
import type { LeasedDaemon } from '../../src/store/schema/writers.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createPageFetcher } from '../../src/sync/fetch-page.ts';
import { createKeeper, type Keeper } from '../../src/sync/keeper.ts';
import type { RunSettings } from '../../src/sync/run-settings.ts';
import { createRecord } from './years-record.ts';
import {
  createKiller,
  createSource,
  createTime,
  DAY,
  drawIncidents,
  HALF_HOUR,
  HOUR,
  type Incident,
  MINUTE,
  SECOND,
  START,
} from './years-world.ts';

/*
 * A daemon lives through months of virtual time on a real mirror: the production code of the standby, the scheduler, the
 * run queue, the keeper and the notifier, with a source of a few products. HTTP, sinks and decisions are left out.
 *
 * Between runs only every half hour is visited: everything that sleeps then wakes late, as on a machine that was asleep.
 * While a run is under way, every sleeper wakes at its time.
 */

const OVERLAP_MS = 5 * MINUTE;
const FULL_HOUR = 2;

const collectGarbage = (() => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

interface Schedule {
  readonly fullCron: string;
  readonly deltaCron: string;
  readonly timezone: string;
}

/** Settings of a small mirror; runs are kept for less than three months, so that their number settles soon. */
function settingsFor(runRetentionMs: number): RunSettings {
  const baseUrl = 'https://source.example';
  return {
    source: sourceIdentity({ baseUrl, includeDetails: [], currency: [] }),
    perPage: 1000,
    seam: 10,
    overlapMs: OVERLAP_MS,
    lookahead: 8,
    maxAttempts: 8,
    firstAttempts: 3,
    maxPasses: 2,
    lookups: false,
    ignoreFields: [],
    volatileFields: [],
    untoldFields: [],
    withdrawnAs: 'updated',
    removalLimit: { percent: 1 },
    lossLimit: { percent: 5 },
    confirmations: 2,
    runMaxAgeMs: DAY,
    minFreeBytes: 1e6,
    runRetentionMs,
    logRetentionMs: runRetentionMs,
    logCap: 10_000_000,
  };
}

interface Parts {
  readonly db: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly client: CatalogClient;
  readonly schedule: Schedule;
  readonly settings: RunSettings;
  readonly guard: (store: Store) => Store;
  readonly watched: (keeper: Keeper) => Keeper;
}

/** The daemon as src/cli/roles puts it together. */
function startDaemon({ db, clock, log, client, schedule, settings, guard, watched }: Parts): Promise<Service> {
  async function start(active: Service[], _tookOver: boolean, leased: LeasedDaemon): Promise<void> {
    const opened = openStore(db);
    active.push({ name: 'mirror', stop: async () => opened.close() });
    const store = guard(opened);
    store.source.keepPause(clock.now());
    const pacer = createPacer({
      pace: paceOf({ requests: 50, windowMs: MINUTE }),
      clock,
      pauses: {
        current: (nowMs) => store.source.keepPause(nowMs),
        note: (pause) => void store.source.notePause(pause),
      },
      reserve: (nowMs, request) => store.source.reserve(nowMs, request),
    });
    const queue = createEmbeddedQueue({
      read: createPageFetcher(client, settings.overlapMs),
      concurrency: 4,
      pacer,
      clock,
      log,
    });
    active.push({ name: 'queue', stop: () => queue.close() });
    const keeper = createKeeper({ store, queue, clock, log, settings });
    active.push(watchMirror(store, clock));
    const runQueue = startRunQueue({ keeper: watched(keeper), store, clock, log });
    active.push(runQueue);
    if (store.watermark() === null) runQueue.submit({ kind: 'full' });
    const onDue = async (kind: RunKind, tick: string): Promise<void> => runQueue.submit({ kind, tick });
    active.push(startScheduler({ ...schedule, ticks: store.schedule, clock, log, onDue }));
    const sender = { name: undefined, host: 'a test' };
    active.push(
      startNotifier({
        store,
        leased,
        clock,
        log,
        channels: [],
        readyMaxAgeMs: 26 * HOUR,
        minFreeBytes: null,
        behindLimitMs: 1_800_000,
        sender,
      }),
    );
  }
  return startStandby({ role: 'daemon', db, mode: undefined, clock, log, start });
}

function rowsIn(db: string): Record<string, number> {
  const tables = query<{ name: string }>(
    db,
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE '\\_\\_%' ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%'",
  );
  const counts = tables.map(({ name }) => [
    name,
    query<{ rows: number }>(db, `SELECT count(*) AS rows FROM "${name}"`)[0]?.rows ?? 0,
  ]);
  return Object.fromEntries(counts) as Record<string, number>;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Figures of the process and of the mirror. */
function figuresOf(db: string) {
  collectGarbage();
  const { heapUsed: heapBytes, rss: rssBytes } = process.memoryUsage();
  const descriptors = readdirSync('/proc/self/fd').length;
  return { heapBytes, rssBytes, descriptors, fileBytes: sizeOf(db), walBytes: sizeOf(`${db}-wal`), rows: rowsIn(db) };
}

/** Figures at the end of a month. */
export type Figures = ReturnType<typeof figuresOf> & { readonly month: number; readonly runs: number };

interface YearsOptions {
  readonly timezone: string;
  readonly months: number;
  readonly seed: number;
  readonly runRetentionMs: number;
}

/** Lets a daemon live for some months. @returns what it did, what went wrong around it, and its figures by month */
export async function live({ timezone, months, seed, runRetentionMs }: YearsOptions) {
  const random = createRandom(seed);
  const time = createTime(random);
  const endMs = START + months * 30.5 * DAY;
  const directory = mkdtempSync(join(FAST_DIRECTORY, 'catchword-years-'));
  const db = join(directory, 'catalog.db');
  const source = createSource(random, time.now, time.clock);
  const killer = createKiller(random);
  const record = createRecord(time.now, (endMs - START) / HALF_HOUR);
  const incidents = drawIncidents(random, endMs);
  const figures: Figures[] = [];
  const schedule = { fullCron: `0 ${FULL_HOUR} * * *`, deltaCron: '0 * * * *', timezone };
  let daemon: Service | null = null;

  // Everything that a run may need, so that the observer's connection exists from the beginning.
  const observer = openStore(db);
  let working = 0;
  async function counted<T>(work: Promise<T>): Promise<T> {
    working++;
    return await work.finally(() => working--);
  }
  const watched = (keeper: Keeper): Keeper => ({
    ...keeper,
    run: (request, signal) => counted(keeper.run(request, signal)),
    resume: (signal) => counted(keeper.resume(signal)),
  });

  const parts = {
    db,
    clock: time.clock,
    log: record.log,
    client: source.client,
    schedule,
    guard: killer.guard,
    watched,
  };

  async function up(): Promise<void> {
    daemon = await startDaemon({ ...parts, settings: settingsFor(runRetentionMs) });
  }

  async function down(): Promise<void> {
    const stopping = daemon?.stop().catch(() => {});
    daemon = null;
    let isStopped = false;
    void stopping?.then(() => {
      isStopped = true;
    });
    for (await turn(); !isStopped; await turn()) await time.step();
  }

  /** Lets runs go on to their end; they may take hours. @returns false if the keeper was killed */
  async function settle(untilMs: number): Promise<boolean> {
    while (working > 0 && time.now() < untilMs) {
      if (killer.hasStruck()) return false;
      if (!(await time.step())) throw new Error('nothing will ever happen again');
    }
    return !killer.hasStruck();
  }

  async function passUntil(ms: number): Promise<boolean> {
    while (time.now() < ms) {
      const half = (Math.floor(time.now() / HALF_HOUR) + 1) * HALF_HOUR + Math.floor(20 * SECOND * random());
      const retryAt = observer.schedule.retry()?.at ?? Number.POSITIVE_INFINITY;
      const retryIn = Math.max(SECOND, retryAt - time.clock.now());
      await time.jumpTo(Math.min(ms, half, time.now() + (daemon === null ? Number.POSITIVE_INFINITY : retryIn)));
      source.churn();
      if (daemon !== null && !(await settle(ms))) return false;
    }
    return true;
  }

  async function suffer({ kind, lengthMs, shiftMs, at }: Incident): Promise<void> {
    if (kind === 'crash') {
      killer.arm();
      // An hour always has a run.
      await passUntil(time.now() + 2 * HOUR);
      killer.disarm();
      await down();
      record.killed(observer.runs.list(1)[0]);
      await passUntil(at + lengthMs);
      await up();
    } else if (kind === 'stop') {
      await down();
      await passUntil(at + lengthMs);
      await up();
    } else if (kind === 'suspended') {
      await time.jumpTo(at + lengthMs);
    } else if (kind === 'outage' || kind === 'slow') {
      if (kind === 'outage') source.setDown(true);
      else source.setLatency(50 * MINUTE);
      await passUntil(at + lengthMs);
      source.setDown(false);
      source.setLatency(200);
    } else {
      time.shift(shiftMs);
      await passUntil(at + lengthMs);
      time.shift(-shiftMs);
    }
  }

  await up();
  let next = 0;
  for (let month = 1; month <= months; month++) {
    const monthEnds = START + month * 30.5 * DAY;
    while (time.now() < monthEnds) {
      const incident = incidents[next];
      if (incident !== undefined && incident.at <= time.now()) {
        next++;
        await suffer(incident);
        continue;
      }
      await passUntil(Math.min(incident?.at ?? endMs, monthEnds, time.now() + DAY));
    }
    figures.push({ month, runs: record.runs(), ...figuresOf(db) });
  }
  // The last runs read what has changed before.
  source.calm();
  await passUntil(time.now() + 1.5 * DAY);
  await down();
  const living = query<{ body: string }>(db, 'SELECT body FROM catalog').map(({ body }) => body);
  const isSound = observer.checkFile().length === 0;
  observer.close();
  execute(db, 'PRAGMA wal_checkpoint(TRUNCATE)');
  rmSync(directory, { recursive: true, force: true });
  return {
    record,
    incidents,
    figures,
    endMs,
    isSound,
    living: living.sort(),
    truth: source.bodies(),
  };
}
