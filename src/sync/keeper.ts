import { withAbort } from '@catchword/base/abort';
import { CatchwordError, hasCode } from '@catchword/base/errors';
import { iso } from '@catchword/base/iso-time';
import type { Tell } from '@catchword/base/log';
import type { Run, RunRequest } from '@catchword/catalog/run-types';
import { tickTime } from '@catchword/catalog/tick';
import { deltaFrom } from '../proof/watermark.ts';
import { needsFullRun } from '../store/rows/source-state.ts';
import { holdLease } from '../store/schema/lease.ts';
import type { KeeperWriter, LeasedKeeper } from '../store/schema/writers.ts';
import type { Store } from '../store/store.ts';
import { createRunExecutor, type ExecutorOptions } from './execute-run.ts';
import { failRun, requireRun } from './finish-run.ts';
import { firstSize } from './page-size.ts';
import type { RunSettings } from './run-settings.ts';
import { noteRunStart, requireSameSource, rereadNotice } from './source-binding.ts';

/**
 * Called when a run begins, in the transaction that plans it, or when an unfinished one that covers the request is
 * resumed. If it throws, nothing begins.
 */
export type OnStart = (writer: KeeperWriter, run: Run, resumed: boolean) => void;

/**
 * Plans a run: one row, one pass. Instead of a delta it plans a full run if the mirror has no watermark yet, or if the
 * settings select other products than those read so far.
 * @param nowMs local clock
 * @returns the run, or null if the run of its tick was already started
 * @throws CatchwordError LEASE_LOST, MIRROR_OTHER_SOURCE
 */
export function startRun(
  leased: LeasedKeeper,
  request: RunRequest,
  settings: Pick<RunSettings, 'perPage' | 'seam' | 'overlapMs' | 'source'>,
  nowMs: number,
  onStart?: OnStart,
): Run | null {
  return leased.write((writer) => {
    const { tick = null } = request;
    const { source, overlapMs, seam } = settings;
    const moment = tick === null ? null : tickTime(tick);
    if (moment !== null) writer.schedule.serve(request.kind, moment);
    if (tick !== null && writer.runs.hasTick(tick)) return null;
    requireSameSource(writer, source);
    const rereads = noteRunStart(writer, source);
    const readUpTo = writer.readUpTo();
    const since = request.from ?? (readUpTo === null ? null : deltaFrom(readUpTo, overlapMs));
    const from = request.kind === 'delta' && !rereads ? since : null;
    const isFull = from === null;
    if (writer.products.lastId() === 0) writer.products.dropLookups();
    const run = { kind: isFull ? 'full' : 'delta', from, startedAt: nowMs, tick, selection: source.selection } as const;
    const runId = writer.runs.create(run);
    const unread = { sourceTime: null, numItems: null, sizeIgnored: false, reversed: false };
    const kind = isFull ? 'list' : 'delta';
    const perPage = firstSize(settings.perPage, kind, writer.source, nowMs);
    writer.runs.addPass({ runId, pass: 0, kind, root: 0, from, perPage, seam, ...unread });
    const planned = requireRun(writer, runId);
    onStart?.(writer, planned, false);
    return planned;
  });
}

export interface KeeperOptions extends ExecutorOptions {
  readonly store: Store;
  /** Gets notices that people should see before the first request of a run. */
  readonly tell?: Tell;
  /** Called when a run starts or resumes, when it has ended, and when it fails: not when it is stopped or cancelled. */
  readonly onRun?: (what: 'start' | 'complete' | 'fail') => void;
}

const OTHER_ADDRESS = 'it has read from another address';

/** Holds the lease for work that ends when another process takes it over, even if it only waits for pages. */
function whileLeased<T>(
  { store, clock, log }: KeeperOptions,
  signal: AbortSignal,
  work: (leased: LeasedKeeper, over: AbortSignal) => Promise<T>,
): Promise<T> {
  return holdLease(store.keeperLease, clock, log, (leased, lost) =>
    withAbort([signal, lost], (over) => work(leased, over)),
  );
}

/** Why an unfinished run cannot be resumed: it is too old, or has read from another source or selection. */
function whyOutdated(store: Store, run: Run, settings: RunSettings, nowMs: number): CatchwordError | null {
  const { runMaxAgeMs, source } = settings;
  const ageMs = nowMs - run.startedAt;
  const hours = Math.round(Math.abs(ageMs) / 3_600_000);
  if (ageMs > runMaxAgeMs) return new CatchwordError('RUN_TOO_OLD', `unfinished for ${hours} hours`);
  // The clock was put back: without this bound the run would never be too old.
  if (-ageMs > runMaxAgeMs) return new CatchwordError('RUN_TOO_OLD', `started ${hours} hours ahead of this clock`);
  const noted = store.source.noted();
  // Before its first page a run does not bind the mirror to an address, but it must not continue with another one.
  if (noted !== null && noted.address !== source.address) return new CatchwordError('RUN_OUTDATED', OTHER_ADDRESS);
  const selection = store.runs.selectionOf(run.id);
  if (selection === source.selection) return null;
  return new CatchwordError('RUN_OUTDATED', 'the settings select other products since it started');
}

/**
 * Makes runs: the only writer of products and changes.
 *
 * ```
 * lease ─► unfinished run? ─► resume ─┐
 *               └─ no ──────► plan ───┴─► read passes ─► finish ─► release the lease
 * ```
 * Pass 0 is the list (in a delta run, the delta); next-step.ts decides what follows.
 */
export function createKeeper(options: KeeperOptions) {
  const { store, clock, log, settings, onRun } = options;
  const executeRun = createRunExecutor(options);

  async function execute(run: Run, leased: LeasedKeeper, signal: AbortSignal): Promise<Run> {
    onRun?.('start');
    try {
      const ended = await executeRun(run, leased, signal);
      onRun?.('complete');
      return ended;
    } catch (error) {
      if (!signal.aborted && !hasCode(error, 'RUN_CANCELLED', 'LEASE_LOST')) onRun?.('fail');
      throw error;
    }
  }

  function giveUp(leased: LeasedKeeper, run: Run, error: CatchwordError): void {
    failRun(leased, run.id, error, clock.now());
    log.warn({ run: run.id, reason: error.message }, 'an unfinished run was given up');
  }

  function announce(): void {
    const notice = rereadNotice(store, settings.source);
    if (notice !== null) options.tell?.(notice);
  }

  async function resumeUnder(
    leased: LeasedKeeper,
    signal: AbortSignal,
    onResume: (run: Run) => void = () => {},
  ): Promise<Run | null> {
    requireSameSource(store, settings.source);
    const run = store.runs.unfinished();
    if (run === undefined) return null;
    const outdated = whyOutdated(store, run, settings, clock.now());
    if (outdated !== null) {
      giveUp(leased, run, outdated);
      return null;
    }
    onResume(run);
    if (run.kind === 'full') announce();
    log.info({ run: run.id, kind: run.kind, pages: run.pages }, 'run resumed');
    return await execute(run, leased, signal);
  }

  async function begin(
    request: RunRequest,
    leased: LeasedKeeper,
    signal: AbortSignal,
    onStart?: OnStart,
  ): Promise<Run | null> {
    const run = startRun(leased, request, settings, clock.now(), onStart);
    if (run !== null) log.info({ run: run.id, kind: run.kind, from: iso(run.from) }, 'run started');
    return run && (await execute(run, leased, signal));
  }

  return {
    /** As `run`, but only resumes; returns null if no run is unfinished. */
    resume: (signal: AbortSignal): Promise<Run | null> => whileLeased(options, signal, resumeUnder),
    /**
     * Resumes the run that an earlier process left unfinished, or starts a new one, and reads it to its end.
     * @returns the run; null if another scheduler started the run of this tick
     * @throws CatchwordError MIRROR_BUSY, MIRROR_OTHER_SOURCE; INTERRUPTED when `signal` aborts (resumable); any error
     *   of the source or the file
     */
    run: (request: RunRequest, signal: AbortSignal, onStart?: OnStart): Promise<Run | null> =>
      whileLeased(options, signal, async (leased, over) => {
        // A full run covers a delta, but not vice versa.
        const isEnough = ({ kind }: Run): boolean =>
          kind === 'full' || (kind === request.kind && request.from === undefined && !needsFullRun(store));
        const resumed = await resumeUnder(leased, over, (run) => {
          if (onStart !== undefined && isEnough(run)) leased.write((writer) => onStart(writer, run, true));
        });
        if (resumed !== null && isEnough(resumed)) return resumed;
        announce();
        return await begin(request, leased, over, onStart);
      }),
    /** Makes the configured address the mirror's new source, and reads everything from there. Throws as `run`. */
    adopt: (signal: AbortSignal): Promise<Run> =>
      whileLeased(options, signal, async (leased, over) => {
        const left = store.runs.unfinished();
        if (left !== undefined) giveUp(leased, left, new CatchwordError('RUN_OUTDATED', OTHER_ADDRESS));
        const { address, selection } = settings.source;
        leased.write(({ source }) => {
          const before = source.noted()?.selection ?? selection;
          source.note({ address, selection: before, unfinished: true });
          // The pause was that of the old address.
          source.forgetPause();
        });
        const run = await begin({ kind: 'full' }, leased, over);
        if (run === null) throw new CatchwordError('RUN_NOT_ACTIVE', 'no run was started');
        return run;
      }),
  };
}

export type Keeper = ReturnType<typeof createKeeper>;
