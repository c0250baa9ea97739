import type { Pointer } from '../catalog/content.ts';
import type { Run } from '../catalog/run.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { PageQueue } from '../queue/queue.ts';
import type { Pass } from '../store/runs.ts';
import type { Store } from '../store/store.ts';
import { type Applier, createApplier } from './apply-page.ts';
import { failRun, finishRun, requireRun } from './finish-run.ts';
import { type PassReader, type PassSettings, readPass } from './read-pass.ts';
import { type RunRequest, type StartSettings, startRun } from './start-run.ts';

/**
 * The one place that writes the mirror.
 *
 * ```
 * lease ─► unfinished run? ─► resume ─┐
 *               └─ no ──────► plan ───┴─► read passes ─► finish ─► lease given back
 * ```
 * Pass 0 is the list (or, of a delta run, the delta). A list that took more than one response is followed by the delta
 * since it began, and a delta of more than one response by the delta since that one began, until one fits in a response.
 */
export interface Keeper {
  /**
   * Finishes the run that an earlier process left, or starts a new one, and reads it to its end.
   * @returns the run; null when its tick was started by another scheduler
   * @throws CatchwordError MIRROR_BUSY; INTERRUPTED when `signal` aborts (resumable); what the source or file refused
   */
  run(request: RunRequest, signal: AbortSignal): Promise<Run | null>;
  /** As `run`, for an unfinished run only; null when there is none. */
  resume(signal: AbortSignal): Promise<Run | null>;
}

/** What one sees while a run goes on. */
export interface Progress {
  readonly runId: number;
  readonly kind: Run['kind'];
  readonly pass: number;
  /** Windows applied and known so far, over all passes. */
  readonly pages: number;
  readonly pagesKnown: number;
  readonly items: number;
  readonly changed: number;
  readonly rejected: number;
  readonly requests: number;
}

export interface KeeperSettings extends PassSettings, StartSettings {
  readonly runMaxAgeMs: number;
  readonly ignoreFields: readonly Pointer[];
}

export interface KeeperOptions {
  readonly store: Store;
  readonly queue: PageQueue;
  readonly clock: Clock;
  readonly log: Logger;
  readonly settings: KeeperSettings;
  readonly onProgress?: (progress: Progress) => void;
}

const RENEW_MS = 10_000;
/** Deltas of one run. A source that still outruns them is reported, not followed for ever. */
const MAX_DELTAS = 10;

/** `Date` counts whole seconds: a delta asked for within the same one would hold the same changes again. */
const DATE_STEP_MS = 1_000;

/** Errors after which the pages that are missing can be read later; after others the run has failed. */
function isResumable(error: unknown): boolean {
  if (!(error instanceof CatchwordError)) return true;
  const source = ['SOURCE_UNAVAILABLE', 'SOURCE_TIMEOUT', 'SOURCE_RATE_LIMITED', 'QUEUE_UNAVAILABLE'];
  const own = ['INTERRUPTED', 'LEASE_LOST', 'MIRROR_WRITE_FAILED', 'MIRROR_BUSY', 'RUN_CANCELLED'];
  return source.includes(error.code) || own.includes(error.code);
}

export async function createKeeper(options: KeeperOptions): Promise<Keeper> {
  const { store, queue, clock, log, settings } = options;
  let reader: PassReader | undefined;
  await queue.consume(async (outcome) => reader?.handle(outcome));

  async function readOne(run: Run, pass: Pass, applier: Applier, signal: AbortSignal): Promise<void> {
    const before = store.runs.counts(run.id);
    const seen = { ...before, changed: before.created + before.updated + before.restored };
    const known = before.pages - store.runs.checkpoints(run.id, pass.pass).length;
    reader = readPass(pass, {
      ...{ store, queue, clock, applier, settings, signal },
      onApplied: (c, windows) => {
        seen.pages++;
        seen.items += c.items;
        seen.changed += c.created + c.updated + c.restored;
        seen.rejected += c.rejected;
        seen.requests += c.requests;
        options.onProgress?.({ runId: run.id, kind: run.kind, pass: pass.pass, pagesKnown: known + windows, ...seen });
      },
    });
    try {
      await reader.done;
    } finally {
      reader = undefined;
    }
  }

  function addDelta(epoch: number, run: Run, after: Pass): Pass {
    // Of the list, what became visible late counts too; a delta of a delta asks for what happened while it was read.
    const since = after.sourceTime ?? run.startedAt;
    const from = after.from === null ? Math.max(0, since - settings.overlapMs) : since;
    const pass = {
      ...{ runId: run.id, pass: after.pass + 1, from, sourceTime: null, numItems: null },
      perPage: settings.perPage,
    };
    store.write(() => {
      store.lease.check(epoch);
      store.runs.addPass(pass);
    });
    return pass;
  }

  async function read(run: Run, epoch: number, signal: AbortSignal): Promise<Run> {
    const applier = createApplier({ store, clock, runId: run.id, epoch, ignoreFields: settings.ignoreFields });
    try {
      for (;;) {
        const last = store.runs.passes(run.id).at(-1);
        if (last === undefined) throw new CatchwordError('NOT_FOUND', `run ${run.id} has no pass`);
        await readOne(run, last, applier, signal);
        const windows = store.runs.checkpoints(run.id, last.pass).length;
        const exact = windows === 1 && last.from !== null;
        const pinned = store.runs.passes(run.id).at(-1) ?? last;
        if (!exact && last.pass < MAX_DELTAS) {
          if (last.from !== null) await clock.sleep(DATE_STEP_MS, signal);
          addDelta(epoch, run, pinned);
          continue;
        }
        return finishRun(
          store,
          epoch,
          run.id,
          { closed: exact, windows: store.runs.counts(run.id).pages },
          clock.now(),
        );
      }
    } catch (error) {
      try {
        applier.flush();
      } catch {
        // What stopped the run may be what stops this, too; the windows that waited are read again.
      }
      throw error;
    }
  }

  function giveUp(epoch: number, run: Run, error: CatchwordError): void {
    failRun(store, epoch, run.id, error, clock.now());
    log.error({ run: run.id, code: error.code, reason: error.message }, 'run failed');
  }

  /** The run that was left unfinished, unless it is too old to go on with. */
  function leftOver(epoch: number): Run | undefined {
    const run = store.runs.unfinished();
    if (run === undefined) return undefined;
    const ageMs = clock.now() - run.startedAt;
    if (ageMs <= settings.runMaxAgeMs) return run;
    giveUp(epoch, run, new CatchwordError('RUN_TOO_OLD', `unfinished for ${Math.round(ageMs / 3_600_000)} hours`));
    return undefined;
  }

  async function execute(run: Run, epoch: number, signal: AbortSignal): Promise<Run> {
    try {
      return await read(run, epoch, signal);
    } catch (error) {
      const nothingRead = requireRun(store, run.id).pages === 0;
      const interrupted = error instanceof CatchwordError && ['INTERRUPTED', 'LEASE_LOST'].includes(error.code);
      if (error instanceof CatchwordError && !interrupted && (nothingRead || !isResumable(error))) {
        giveUpUnlessLost(epoch, run, error);
      }
      throw error;
    } finally {
      await queue.drop(run.id).catch(() => {
        // The queue holds hints only: what it keeps is ignored when it arrives.
      });
    }
  }

  function giveUpUnlessLost(epoch: number, run: Run, error: CatchwordError): void {
    try {
      giveUp(epoch, run, error);
    } catch (secondary) {
      log.warn({ run: run.id, reason: String(secondary) }, 'the failure could not be noted');
    }
  }

  async function underLease<T>(
    signal: AbortSignal,
    work: (epoch: number, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const epoch = store.lease.acquire(clock.now());
    const over = new AbortController();
    const renewing = (async () => {
      for (;;) {
        await clock.sleep(RENEW_MS, over.signal);
        if (!store.lease.renew(epoch, clock.now())) return;
      }
    })().catch(() => {
      // Ended by `over`; a renewal that fails otherwise shows at the next page, which checks the epoch.
    });
    try {
      return await work(epoch, signal);
    } finally {
      over.abort();
      await renewing;
      try {
        store.lease.release(epoch);
      } catch (error) {
        log.warn({ reason: String(error) }, 'the lease was not given back; it expires by itself');
      }
    }
  }

  async function resumeUnder(epoch: number, signal: AbortSignal): Promise<Run | null> {
    const run = leftOver(epoch);
    if (run === undefined) return null;
    log.info({ run: run.id, kind: run.kind, pages: run.pages }, 'run resumed');
    return await execute(run, epoch, signal);
  }

  return {
    resume: async (signal) => {
      if (store.runs.unfinished() === undefined) return null;
      return await underLease(signal, resumeUnder);
    },
    run: (request, signal) =>
      underLease(signal, async (epoch) => {
        const resumed = await resumeUnder(epoch, signal);
        // A full run covers what a delta would; a delta that was left does not cover a full one.
        if (resumed !== null && (resumed.kind === 'full' || request.kind === resumed.kind)) return resumed;
        const run = startRun(store, epoch, request, settings, clock.now());
        if (run === null) return null;
        log.info({ run: run.id, kind: run.kind, from: run.from }, 'run started');
        return await execute(run, epoch, signal);
      }),
  };
}
