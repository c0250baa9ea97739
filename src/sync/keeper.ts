import type { Pointer } from '../catalog/content.ts';
import type { Run, RunRequest } from '../catalog/run.ts';
import type { SourceIdentity } from '../catalog/source.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import { iso } from '../iso-time.ts';
import type { Logger, Tell } from '../log.ts';
import type { PageQueue } from '../queue/queue.ts';
import { holdLease } from '../store/hold-lease.ts';
import type { Leased } from '../store/lease.ts';
import type { Pass } from '../store/runs.ts';
import type { Store } from '../store/store.ts';
import type { KeeperWriter } from '../store/writers.ts';
import { type Applier, createApplier } from './apply-page.ts';
import { ageClock, type FinishSettings, failRun, finishRun, requireRun } from './finish-run.ts';
import { nextStep, type StepSettings } from './next-step.ts';
import { type PruneSettings, pruneLog } from './prune-log.ts';
import { interruption, type PassReader, type PassSettings, readPass } from './read-pass.ts';
import { requireSameSource, rereadNotice } from './source.ts';
import { type StartSettings, startRun } from './start-run.ts';

/**
 * Makes runs: the only writer of products and changes.
 *
 * ```
 * lease ─► unfinished run? ─► resume ─┐
 *               └─ no ──────► plan ───┴─► read passes ─► finish ─► release the lease
 * ```
 * Pass 0 is the list (in a delta run, the delta); next-step.ts decides what follows.
 */
export interface Keeper {
  /**
   * Resumes the run that an earlier process left unfinished, or starts a new one, and reads it to its end.
   * @returns the run; null if another scheduler started the run of this tick
   * @throws CatchwordError MIRROR_BUSY, MIRROR_OTHER_SOURCE; INTERRUPTED when `signal` aborts (resumable); any error of the
   *   source or the file
   */
  run(request: RunRequest, signal: AbortSignal): Promise<Run | null>;
  /**
   * Makes the configured address the mirror's new source, and reads everything from there. Gives up an unfinished run,
   * because it has read from the old address.
   * @throws CatchwordError as `run`
   */
  adopt(signal: AbortSignal): Promise<Run>;
  /** As `run`, but only resumes; returns null if no run is unfinished. */
  resume(signal: AbortSignal): Promise<Run | null>;
}

/** The state of a run in progress, for display. */
export interface Progress {
  readonly runId: number;
  readonly kind: Run['kind'];
  readonly pass: number;
  /** Windows read so far, and windows known so far, over all passes. */
  readonly pages: number;
  readonly pagesKnown: number;
  readonly items: number;
  readonly requests: number;
  /** Set while the run waits before it reads its last delta. */
  readonly settling: Pick<Run, 'settlesAt' | 'missing'> | null;
}

export interface KeeperSettings extends PassSettings, StartSettings, StepSettings, FinishSettings, PruneSettings {
  /** Give up an unfinished run that is older; milliseconds. */
  readonly runMaxAgeMs: number;
  readonly ignoreFields: readonly Pointer[];
  readonly withdrawnAs: 'updated' | 'removed';
  readonly source: SourceIdentity;
}

export interface KeeperOptions {
  readonly store: Store;
  readonly queue: PageQueue;
  readonly clock: Clock;
  readonly log: Logger;
  readonly settings: KeeperSettings;
  readonly onProgress?: (progress: Progress) => void;
  /** Gets notices that people should see before the first request of a run. */
  readonly tell?: Tell;
}

/** How often a settling run checks whether it was cancelled. */
const SETTLE_STEP_MS = 5_000;
/** If the clock jumps by more, the displayed end of the wait moves. */
const SHOWN_STEP_MS = 10_000;

/** `Date` counts whole seconds: a second delta within the same second would hold the same changes again. */
const DATE_STEP_MS = 1_000;

/** After these errors the run can be resumed; any other error fails it. */
const RESUMABLE = new Set([
  'INTERRUPTED',
  'LEASE_LOST',
  'MIRROR_BUSY',
  'MIRROR_REPLACED',
  'MIRROR_WRITE_FAILED',
  'QUEUE_UNAVAILABLE',
  'SOURCE_RATE_LIMITED',
  'SOURCE_TIMEOUT',
  'SOURCE_UNAVAILABLE',
]);
/** The same for a run that has not read a page yet: only if it was stopped from outside. */
const ALWAYS_RESUMABLE = new Set(['INTERRUPTED', 'LEASE_LOST']);

type KeeperLease = Leased<KeeperWriter>;

export async function createKeeper(options: KeeperOptions): Promise<Keeper> {
  const { store, queue, clock, log, settings } = options;
  let reader: PassReader | undefined;
  await queue.consume(async (outcome) => reader?.handle(outcome));

  async function readOne(run: Run, pass: Pass, applier: Applier, signal: AbortSignal): Promise<number | null> {
    const { pages, items, requests } = store.runs.counts(run.id);
    const seen = { pages, items, requests };
    const earlier = pages - store.runs.checkpoints(run.id, pass.pass).length;
    reader = readPass(pass, {
      ...{ store, queue, clock, applier, log, settings, signal },
      onRead: ({ page, requests: tries }, windows) => {
        seen.pages++;
        seen.items += page.products.length;
        seen.requests += tries;
        options.onProgress?.({
          runId: run.id,
          kind: run.kind,
          pass: pass.pass,
          pagesKnown: earlier + windows,
          settling: null,
          ...seen,
        });
      },
    });
    try {
      return (await reader.done).answeredSize;
    } finally {
      reader = undefined;
    }
  }

  /** Errors are only logged: pruning is retried after the next run. */
  function prune(leased: KeeperLease, run: Run): void {
    try {
      const now = clock.now();
      const dropped = pruneLog(store, leased, settings, now, log, ageClock(run, now));
      if (dropped > 0) log.info({ dropped, upTo: store.changes.prunedTo() }, 'change log pruned');
    } catch (error) {
      log.warn({ reason: messageOf(error) }, 'the change log could not be pruned');
    }
  }

  function lastPass(run: Run): Pass {
    const pass = store.runs.passes(run.id).at(-1);
    if (pass === undefined) throw new CatchwordError('NOT_FOUND', `run ${run.id} has no pass`);
    return pass;
  }

  /** Reads the last pass to its end; in plain pages if the source ignores the requested page size. */
  async function readLast(run: Run, leased: KeeperLease, applier: Applier, signal: AbortSignal): Promise<void> {
    for (;;) {
      const pass = lastPass(run);
      const answeredSize = await readOne(run, pass, applier, signal);
      if (answeredSize === null) return;
      log.warn(
        { run: run.id, asked: pass.perPage, answered: answeredSize },
        'the source ignores the requested page size',
      );
      await queue.drop(run.id);
      leased.write(({ runs }) => runs.ignoreSize(run.id, pass.pass, answeredSize));
    }
  }

  async function readAll(run: Run, leased: KeeperLease, applier: Applier, signal: AbortSignal): Promise<Run> {
    for (;;) {
      await readLast(run, leased, applier, signal);
      const step = nextStep(store, requireRun(store, run.id), settings);
      if (step.kind === 'finish') return finishRun(leased, run.id, step.assessment, settings, clock.now());
      const { pass } = step;
      if (step.kind === 'settle') await settle(pass, leased, step.missing, signal);
      // The first delta does not wait: the delta after it is usually empty.
      const deltas = store.runs.passes(run.id).filter(({ kind }) => kind === 'delta').length;
      if (pass.kind === 'delta' && deltas > 1) await clock.sleep(DATE_STEP_MS, signal);
      leased.write(({ runs }) => {
        runs.addPass(pass);
        if (step.kind === 'settle') runs.settle(run.id, null, step.missing);
      });
    }
  }

  /**
   * Waits for the overlap, or for the rest of a wait that an earlier process started. Timers count the wait, and the rest is
   * noted regularly, because the clock may jump, even while no process runs.
   * @throws CatchwordError RUN_CANCELLED, LEASE_LOST; the reason with which `signal` aborts
   */
  async function settle(
    { runId, pass }: Pass,
    leased: KeeperLease,
    missing: number,
    signal: AbortSignal,
  ): Promise<void> {
    const run = requireRun(store, runId);
    const noted = store.runs.settleWait(runId);
    let leftMs = Math.min(settings.overlapMs, noted?.leftMs ?? settings.overlapMs);
    let shown = noted?.until ?? 0;
    if (leftMs > 0) {
      const until = new Date(clock.now() + leftMs).toISOString();
      log.info({ run: runId, until, missing }, 'settling: waiting before the last delta, because deltas may be late');
    }
    while (leftMs > 0) {
      const until = clock.now() + leftMs;
      if (Math.abs(until - shown) > SHOWN_STEP_MS) shown = until;
      const wait = { until: shown, leftMs };
      leased.write(({ runs }) => runs.settle(runId, wait, missing));
      const { pages, items, requests } = store.runs.counts(runId);
      const settling = { settlesAt: shown, missing };
      options.onProgress?.({ runId, kind: run.kind, pass, pages, pagesKnown: pages, items, requests, settling });
      const pauseMs = Math.min(leftMs, SETTLE_STEP_MS);
      await clock.sleep(pauseMs, signal);
      leftMs -= pauseMs;
      if (store.runs.state(runId) === 'cancelled') {
        throw new CatchwordError('RUN_CANCELLED', `run ${runId} was cancelled`);
      }
    }
  }

  /** Notes that the run has failed, unless it can be resumed. */
  function close(leased: KeeperLease, run: Run, error: CatchwordError): void {
    const resumable = requireRun(store, run.id).pages > 0 ? RESUMABLE : ALWAYS_RESUMABLE;
    if (resumable.has(error.code)) return;
    try {
      failRun(leased, run.id, error, clock.now());
    } catch (secondary) {
      log.warn({ run: run.id, reason: messageOf(secondary) }, 'the failure of the run could not be noted');
    }
  }

  async function execute(run: Run, leased: KeeperLease, signal: AbortSignal): Promise<Run> {
    const { ignoreFields, withdrawnAs, overlapMs } = settings;
    const applier = createApplier({ store, leased, clock, runId: run.id, ignoreFields, withdrawnAs, overlapMs });
    try {
      const finished = await readAll(run, leased, applier, signal);
      prune(leased, finished);
      return finished;
    } catch (thrown) {
      const error = signal.aborted && !(thrown instanceof CatchwordError) ? interruption() : thrown;
      try {
        applier.flush();
      } catch (secondary) {
        // The error that stopped the run may also stop this. The pages of the batch are read again.
        log.debug({ run: run.id, reason: messageOf(secondary) }, 'the last batch was not applied');
      }
      if (error instanceof CatchwordError) close(leased, run, error);
      throw error;
    } finally {
      await queue.drop(run.id);
    }
  }

  function giveUp(leased: KeeperLease, run: Run, error: CatchwordError): undefined {
    failRun(leased, run.id, error, clock.now());
    log.warn({ run: run.id, reason: error.message }, 'an unfinished run was given up');
  }

  /** The unfinished run. Gives it up if it is too old, or has read from another source or selection. */
  function leftOver(leased: KeeperLease): Run | undefined {
    requireSameSource(store, settings.source);
    const run = store.runs.unfinished();
    if (run === undefined) return undefined;
    const ageMs = clock.now() - run.startedAt;
    const hours = Math.round(Math.abs(ageMs) / 3_600_000);
    if (ageMs > settings.runMaxAgeMs) {
      return giveUp(leased, run, new CatchwordError('RUN_TOO_OLD', `unfinished for ${hours} hours`));
    }
    // The clock was put back: without this bound the run would never be too old.
    if (-ageMs > settings.runMaxAgeMs) {
      return giveUp(leased, run, new CatchwordError('RUN_TOO_OLD', `started ${hours} hours ahead of this clock`));
    }
    const noted = store.source.noted();
    // Before its first page a run does not bind the mirror to an address, but it must not continue with another one.
    if (noted !== null && noted.address !== settings.source.address) {
      return giveUp(leased, run, new CatchwordError('RUN_OUTDATED', 'it has read from another address'));
    }
    const selection = store.runs.selectionOf(run.id) ?? noted?.selection ?? settings.source.selection;
    if (selection === settings.source.selection) return run;
    return giveUp(
      leased,
      run,
      new CatchwordError('RUN_OUTDATED', 'the settings select other products since it started'),
    );
  }

  function announce(): void {
    const notice = rereadNotice(store, settings.source);
    if (notice !== null) options.tell?.(notice);
  }

  async function resumeUnder(leased: KeeperLease, signal: AbortSignal): Promise<Run | null> {
    const run = leftOver(leased);
    if (run === undefined) return null;
    if (run.kind === 'full') announce();
    log.info({ run: run.id, kind: run.kind, pages: run.pages }, 'run resumed');
    return await execute(run, leased, signal);
  }

  async function begin(request: RunRequest, leased: KeeperLease, signal: AbortSignal): Promise<Run | null> {
    const run = startRun(leased, request, settings, clock.now());
    if (run === null) return null;
    log.info({ run: run.id, kind: run.kind, from: iso(run.from) }, 'run started');
    return await execute(run, leased, signal);
  }

  return {
    resume: async (signal) => {
      if (store.runs.unfinished() === undefined) return null;
      return await holdLease(store.keeperLease, clock, log, (leased) => resumeUnder(leased, signal));
    },
    run: (request, signal) =>
      holdLease(store.keeperLease, clock, log, async (leased) => {
        const resumed = await resumeUnder(leased, signal);
        // A full run covers a delta, but not vice versa.
        const covers = resumed?.kind === 'full' || (request.kind === resumed?.kind && request.from === undefined);
        if (resumed !== null && covers) return resumed;
        announce();
        return await begin(request, leased, signal);
      }),
    adopt: (signal) =>
      holdLease(store.keeperLease, clock, log, async (leased) => {
        const left = store.runs.unfinished();
        if (left !== undefined)
          giveUp(leased, left, new CatchwordError('RUN_OUTDATED', 'it has read from another address'));
        const { address, selection } = settings.source;
        leased.write(({ source }) => {
          const before = source.noted()?.selection ?? selection;
          source.note({ address, selection: before, unfinished: true });
          // The pause was that of the old address.
          source.forgetPause();
        });
        const run = await begin({ kind: 'full' }, leased, signal);
        if (run === null) throw new CatchwordError('RUN_NOT_ACTIVE', 'no run was started');
        return run;
      }),
  };
}
