import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import type { Run, RunKind } from '@catchword/catalog/run-types';
import { sourceIdentity } from '@catchword/catalog/source-identity';
import { pageOf } from '@catchword/catalog/validate-page';
import type { Pace } from '@catchword/pace/pace';
import { createPacer, type Pacer } from '@catchword/pace/pacer';
import { createEmbeddedQueue } from '@catchword/queue/embedded-queue';
import type { PageQueue } from '@catchword/queue/queue-port';
import pino from 'pino';
import type { Leased } from '../../src/store/schema/lease.ts';
import type { KeeperWriter } from '../../src/store/schema/writers.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createPageComparer } from '../../src/sync/fast/page-comparer.ts';
import { createPageFetcher } from '../../src/sync/fetch-page.ts';
import { createKeeper } from '../../src/sync/keeper.ts';
import type { RunSettings } from '../../src/sync/run-settings.ts';
import type { SimulatedRequest, SimulatedSource } from './source.ts';
import type { Owner, World } from './world.ts';

/** Thrown in a process that was killed, so that it does nothing more. */
export class Killed extends Error {}

function sourceOf(currency: string) {
  const baseUrl = 'https://simulated.example';
  return sourceIdentity({ baseUrl, includeDetails: [], currency: currency === '' ? [] : [currency] });
}

export interface ProcessOptions {
  readonly name: string;
  readonly world: World;
  readonly source: SimulatedSource;
  readonly db: string;
  readonly settings: Omit<RunSettings, 'source'>;
  readonly pace: Pace | null;
  readonly concurrency: number;
  readonly skewMs: number;
  /** The currency that its settings select; default: none. */
  readonly currency?: string;
  /** Called at each point where the process may die; true if it dies here. */
  readonly dies: (point: string) => boolean;
  /** Called after each transaction. */
  readonly onWrite: () => void;
  /** Called when a run begins. */
  readonly onRun: (id: number) => void;
  /** Called when a window was applied. */
  readonly onApplied: (window: SimulatedRequest) => void;
  /** Called when the process begins to wait for a run to settle. */
  readonly onSettle: (self: SimulatedProcess) => void;
  /** Share of outcomes that the queue delivers twice or loses. */
  readonly duplicated: number;
}

export interface SimulatedProcess {
  readonly owner: Owner;
  readonly store: Store;
  /** @throws Killed, CatchwordError */
  run(kind: RunKind): Promise<Run | null>;
  /** Ends the process at once, as SIGKILL does. */
  kill(why: string): void;
  /** Tells the process to end, as SIGTERM does. */
  stop(): void;
  close(): Promise<void>;
}

const log = pino({ level: 'silent' });

/** Delivers some outcomes twice, as a queue may: the second delivery must change nothing. */
function duplicating(queue: PageQueue, twice: () => boolean): PageQueue {
  return {
    ...queue,
    consume: (handle) =>
      queue.consume(async (outcome) => {
        await handle(outcome);
        if (twice()) await handle(outcome);
      }),
  };
}

function pacerOf({ source }: Store, pace: Pace | null, clock: Clock): Pacer {
  return createPacer({
    pace,
    clock,
    pauses: { current: (nowMs) => source.keepPause(nowMs), note: (pause) => void source.notePause(pause) },
    reserve: (nowMs, request) => source.reserve(nowMs, request),
  });
}

export async function startProcess(options: ProcessOptions): Promise<SimulatedProcess> {
  const { world, source, db, dies, onWrite, onRun, onApplied, onSettle } = options;
  const owner: Owner = { name: options.name, skewMs: options.skewMs, pausedUntil: 0, dead: false };
  let end = (): void => {};
  const killed = new Promise<never>((_, reject) => {
    end = () => reject(new Killed('killed'));
  });
  killed.catch(() => {});

  function kill(why: string): void {
    if (owner.dead) return;
    world.trace(`${owner.name} killed ${why}`);
    owner.dead = true;
    end();
  }

  function point(name: string): void {
    if (owner.dead) throw new Killed('dead');
    if (!dies(name)) return;
    kill(`at ${name}`);
    throw new Killed(name);
  }

  let settles = false;

  const opened = openStore(db, { self: { pid: 1, host: owner.name, boot: null, pidNamespace: null } });
  function observed(writer: KeeperWriter): KeeperWriter {
    const { runs } = writer;
    return {
      ...writer,
      runs: {
        ...runs,
        create: (run) => {
          const id = runs.create(run);
          onRun(id);
          return id;
        },
        settle: (id, wait, missing) => {
          runs.settle(id, wait, missing);
          const begins = wait !== null && !settles;
          settles = wait !== null;
          if (begins) onSettle(self);
        },
        addCheckpoint: (checkpoint) => {
          point('inside a transaction');
          runs.addCheckpoint(checkpoint);
          onApplied({ owner, runId: checkpoint.runId, pass: checkpoint.pass, at: world.now() });
        },
      },
    };
  }

  function acquire(nowMs: number): Leased<KeeperWriter> {
    const leased = opened.keeperLease.acquire(nowMs);
    return {
      ...leased,
      write: (work) => {
        point('before a transaction');
        const result = leased.write((writer) => work(observed(writer)));
        world.trace(`${owner.name} write ${opened.changes.lastSeq()}`);
        onWrite();
        point('after a transaction');
        return result;
      },
    };
  }

  const store: Store = { ...opened, keeperLease: { ...opened.keeperLease, acquire } };
  const base = world.clockOf(owner);
  const clock = {
    ...base,
    sleep: async (ms: number, signal?: AbortSignal): Promise<void> => {
      await base.sleep(ms, signal);
      point('after a wait');
    },
  };
  const comparer = createPageComparer(db);
  const queue = duplicating(
    createEmbeddedQueue({
      read: createPageFetcher(
        source.clientFor(owner, point),
        options.settings.overlapMs,
        (bytes, task) => comparer.compare(bytes, task) ?? pageOf(bytes, task),
      ),
      concurrency: options.concurrency,
      pacer: pacerOf(store, options.pace, clock),
      clock,
      log,
    }),
    () => options.duplicated > 0 && world.random() < options.duplicated,
  );
  const keeper = createKeeper({
    store,
    queue,
    clock,
    log,
    settings: { ...options.settings, source: sourceOf(options.currency ?? '') },
  });

  const stopping = new AbortController();
  const self: SimulatedProcess = {
    owner,
    store,
    kill,
    stop: () => {
      if (!owner.dead) stopping.abort();
    },
    run: async (kind) => {
      const done = keeper.run({ kind }, stopping.signal);
      done.catch(() => {});
      return await Promise.race([done, killed]);
    },
    close: async () => {
      const alive = !owner.dead;
      owner.dead = true;
      if (alive) await queue.close();
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      comparer.close();
      opened.close();
    },
  };
  return self;
}

/** Whether a run can be resumed or restarted after the error; any other error is a defect. */
export function isExpected(error: unknown): boolean {
  return error instanceof Killed || (error instanceof CatchwordError && error.code !== 'NOT_FOUND');
}
