import type { Run, RunKind, RunRequest } from '../catalog/run.ts';
import { tickTime } from '../catalog/tick.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, isMirrorLost, messageOf } from '../errors.ts';
import { iso } from '../iso-time.ts';
import { failureOf, type Service } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import type { Store } from '../store/store.ts';
import type { Keeper } from '../sync/keeper.ts';
import { createPause, type Pause } from './pause.ts';
import { judgeTicks } from './scheduler.ts';

/** Takes requests for runs and carries them out one at a time. */
export interface RunDesk extends Service {
  /** Returns at once; what comes of it is in the log and in the mirror. */
  submit(request: RunRequest): void;
}

export interface RunDeskOptions {
  readonly keeper: Keeper;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * A run that is to be made, and why: it is due, the mirror was never filled, or a run failed. A retry never waits in memory:
 * the mirror alone says whether one is owed, whichever process noted it.
 */
interface Wanted {
  readonly request: RunRequest;
  readonly because: 'schedule' | 'empty' | 'retry';
}

/** How often an unfinished run without a living holder is looked for. Comfort: a restart finds its own at once. */
const LOOK_MS = 15_000;

/** A full run covers a delta; a delta does not cover a full run. */
function covers(made: RunKind, wanted: RunKind): boolean {
  return made === 'full' || made === wanted;
}

/** What a run did, for the log: `run` there is always its number. */
function resultOf({ id: _id, kind: _kind, evidence: _evidence, ...run }: Run): Record<string, unknown> {
  const { from, sourceTime, startedAt, finishedAt, ...rest } = run;
  return {
    ...rest,
    from: iso(from),
    sourceTime: iso(sourceTime),
    startedAt: iso(startedAt),
    finishedAt: iso(finishedAt),
  };
}

/** The run that failed and is owed; null if none is. */
function owedRun(store: Store): Wanted | null {
  const owed = store.schedule.retry();
  return owed === null ? null : { request: { kind: owed.kind }, because: 'retry' };
}

/** Why no run need be made for a moment; null where one must. What covers it outlives a crash of this process. */
function coverOf(store: Store, current: RunKind | null, wanted: RunKind, nowMs: number): string | null {
  if (current !== null && covers(current, wanted)) return 'the run that is under way covers it';
  const unfinished = store.runs.unfinished();
  const isElsewhere = current === null && store.keeperLease.holder(nowMs) !== null;
  if (unfinished !== undefined && isElsewhere && covers(unfinished.kind, wanted)) {
    return 'the run that another process is making covers it';
  }
  const owed = store.schedule.retry();
  return owed !== null && covers(owed.kind, wanted) ? 'the retry of the run that failed covers it' : null;
}

function report(run: Run, log: Logger): void {
  const fields = { run: run.id, kind: run.kind, result: resultOf(run) };
  if (run.state !== 'held') log.info(fields, 'run complete');
  else log.warn({ ...fields, hint: `npx catchword run ${run.id}` }, 'removals are held and wait for a decision');
}

/**
 * What came due while the run was made, or before it was resumed, is covered by it.
 * @returns what still waits
 */
function serveCovered(store: Store, waiting: readonly Wanted[], run: Run): Wanted[] {
  return waiting.filter(({ request, because }) => {
    if (because !== 'schedule' || !covers(run.kind, request.kind)) return true;
    const at = tickTime(request.tick ?? '');
    if (at !== null) store.schedule.serve(request.kind, at);
    return false;
  });
}

/** Whether a run is still to be made: another process may have made it meanwhile. */
function isStillWanted(store: Store, { because }: Wanted): boolean {
  return because !== 'empty' || store.watermark() === null;
}

export function startRunDesk({ keeper, store, clock, log }: RunDeskOptions): RunDesk {
  const stopping = new AbortController();
  const pause: Pause = createPause(clock, () => store.schedule.retry()?.at ?? null);
  let waiting: Wanted[] = [];
  let current: RunKind | null = null;
  let saidBusy = false;
  let wake = (): void => {};

  function submit(request: RunRequest): void {
    const { kind, tick } = request;
    const at = tick === undefined ? null : tickTime(tick);
    if (at !== null) {
      judgeTicks(store.schedule, kind, clock.now(), log);
      if ((store.schedule.served(kind) ?? 0) >= at) return;
    }
    const cover = coverOf(store, current, kind, clock.now());
    if (cover !== null) {
      if (at === null) return;
      store.schedule.serve(kind, at);
      log.info({ kind, tick, reason: cover, ...pause.fields() }, 'skipped');
      return;
    }
    // What waits is not noted yet: a moment is asked for again until it is, and takes the place of the one before.
    waiting = waiting.filter((wanted) => !(covers(kind, wanted.request.kind) && wanted.because === 'schedule'));
    waiting.push({ request, because: at === null ? 'empty' : 'schedule' });
    wake();
  }

  function noteFailure(kind: RunKind, error: unknown): void {
    const known = error instanceof CatchwordError ? error : undefined;
    const pauseMs = pause.begin(known);
    const reason = messageOf(error);
    const at = clock.now() + pauseMs;
    store.schedule.setRetry({ kind, at, reason });
    const run = store.runs.unfinished()?.id;
    const fields = { run, kind, code: known?.code, reason, hint: known?.hint, pauseMs, nextTryAt: iso(at) };
    log.error(fields, 'run stopped');
  }

  /** @returns false where another process works on the mirror: then nothing was tried */
  async function attempt(kind: RunKind, work: () => Promise<Run | null>): Promise<boolean> {
    current = kind;
    try {
      const run = await work();
      pause.end();
      saidBusy = false;
      if (run !== null) {
        waiting = serveCovered(store, waiting, run);
        report(run, log);
      }
    } catch (error) {
      if (stopping.signal.aborted) return true;
      const code = error instanceof CatchwordError ? error.code : undefined;
      if (code === 'MIRROR_BUSY') {
        if (!saidBusy) log.info({ kind, reason: messageOf(error) }, 'waiting: another process works on this mirror');
        saidBusy = true;
        return false;
      }
      if (isMirrorLost(error) || code === 'MIRROR_OTHER_SOURCE') throw error;
      if (code === 'RUN_CANCELLED') log.warn({ kind, code, reason: messageOf(error) }, 'run was cancelled');
      else noteFailure(kind, error);
    } finally {
      current = null;
    }
    return true;
  }

  /** A run that is given up has served its moment of the schedule already: it is owed like one that failed. */
  async function resume({ id, kind }: Run): Promise<Run | null> {
    const run = await keeper.resume(stopping.signal);
    if (run === null && store.runs.state(id) === 'failed') {
      store.schedule.setRetry({
        kind,
        at: clock.now(),
        reason: `run ${id} was left unfinished and could not be resumed`,
      });
    }
    return run;
  }

  async function step(): Promise<void> {
    for (;;) {
      if (stopping.signal.aborted || pause.leftMs() > 0) return;
      const left = store.runs.unfinished();
      if (left !== undefined && store.keeperLease.holder(clock.now()) === null) {
        if (await attempt(left.kind, () => resume(left))) continue;
        return;
      }
      // What stopped it may have been put right: the first try of a process does not wait.
      const wanted = owedRun(store) ?? waiting.shift();
      if (wanted === undefined) return;
      if (!isStillWanted(store, wanted)) continue;
      const { request, because } = wanted;
      if (await attempt(request.kind, () => keeper.run(request, stopping.signal))) continue;
      if (because !== 'retry') waiting.unshift(wanted);
      return;
    }
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await step();
      if (stopping.signal.aborted) return;
      const leftMs = pause.leftMs();
      const pauseMs = leftMs > 0 ? Math.min(LOOK_MS, leftMs) : LOOK_MS;
      await Promise.race([woken, clock.sleep(pauseMs, stopping.signal).catch(() => {})]);
    }
  }

  const running = loop();
  return {
    name: 'run desk',
    failed: failureOf(running),
    submit,
    stop: async () => {
      stopping.abort();
      wake();
      await running.catch(() => {});
    },
  };
}
