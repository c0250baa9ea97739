import pino from 'pino';
import type { Run, RunKind } from '../../src/catalog/run.ts';
import { sourceIdentity } from '../../src/catalog/source.ts';
import { CatchwordError } from '../../src/errors.ts';
import { createPacer, type Pace } from '../../src/pacer.ts';
import { createEmbeddedQueue } from '../../src/queue/embedded.ts';
import type { PageQueue } from '../../src/queue/queue.ts';
import type { Leased } from '../../src/store/lease.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import type { KeeperWriter } from '../../src/store/writers.ts';
import { createReadWindow } from '../../src/sync/fetch-page.ts';
import { createKeeper, type KeeperSettings } from '../../src/sync/keeper.ts';
import type { SimulatedRequest, SimulatedSource } from './source.ts';
import type { Owner, World } from './world.ts';

/** What a process that was killed does: nothing. */
export class Killed extends Error {}

const SOURCE = sourceIdentity({ baseUrl: 'https://simulated.example', includeDetails: [], currency: [] });

export interface ProcessOptions {
  readonly name: string;
  readonly world: World;
  readonly source: SimulatedSource;
  readonly db: string;
  readonly settings: Omit<KeeperSettings, 'source'>;
  readonly pace: Pace | null;
  readonly concurrency: number;
  readonly skewMs: number;
  /** Counts the points at which the process could die; true: it does, at this one. */
  readonly dies: (point: string) => boolean;
  /** After each transaction. */
  readonly onWrite: () => void;
  /** When a run begins. */
  readonly onRun: (id: number) => void;
  /** When a window was applied. */
  readonly onApplied: (window: SimulatedRequest) => void;
  /** When the process begins to wait because a run settles. */
  readonly onSettle: (self: SimulatedProcess) => void;
  /** Shares of outcomes that are handed over twice, or lost, by the queue. */
  readonly duplicated: number;
}

export interface SimulatedProcess {
  readonly owner: Owner;
  readonly store: Store;
  /** @throws Killed, CatchwordError */
  run(kind: RunKind): Promise<Run | null>;
  /** Ends it at this moment, as SIGKILL does. */
  kill(why: string): void;
  close(): Promise<void>;
}

const log = pino({ level: 'silent' });

/** A queue may hand over an outcome twice: the second time must change nothing. */
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
  const queue = duplicating(
    createEmbeddedQueue({
      read: createReadWindow(source.clientFor(owner, point), options.settings.overlapMs),
      concurrency: options.concurrency,
      pacer: createPacer({
        pace: options.pace,
        clock,
        pauses: {
          current: (nowMs) => store.source.keepPause(nowMs),
          note: (pause) => void store.source.notePause(pause),
        },
        reserve: (nowMs, request) => store.source.reserve(nowMs, request),
      }),
      clock,
      log,
    }),
    () => options.duplicated > 0 && world.random() < options.duplicated,
  );
  const keeper = await createKeeper({ store, queue, clock, log, settings: { ...options.settings, source: SOURCE } });

  const self: SimulatedProcess = {
    owner,
    store,
    kill,
    run: async (kind) => {
      const done = keeper.run({ kind }, new AbortController().signal);
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
      opened.close();
    },
  };
  return self;
}

/** Errors after which a run can be taken up again, or a new one begun; any other is a defect. */
export function isExpected(error: unknown): boolean {
  return error instanceof Killed || (error instanceof CatchwordError && error.code !== 'NOT_FOUND');
}
