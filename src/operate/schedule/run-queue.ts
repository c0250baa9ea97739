import type { Clock } from '../../base/clock.ts';
import { CatchwordError, isMirrorLost, messageOf } from '../../base/errors.ts';
import { iso } from '../../base/iso-time.ts';
import { failureOf } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import { covers, type Run, type RunKind, type RunRequest } from '../../catalog/run-types.ts';
import { tickTime } from '../../catalog/tick.ts';
import { needsFullRun } from '../../store/rows/source-state.ts';
import type { Store } from '../../store/store.ts';
import type { Keeper } from '../../sync/keeper.ts';
import type { AskedDecisions } from '../decisions/decision-queue.ts';
import { createRetryPause } from './retry-pause.ts';
import { forgetFutureTicks } from './scheduler.ts';

interface RunQueueOptions {
  readonly keeper: Keeper;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Decisions of operators, which are carried out between runs. */
  readonly decisions?: Pick<AskedDecisions, 'next'>;
}

/** A run to make, and why: it is scheduled, the mirror was never filled, or the mirror notes that a run failed. */
interface WantedRun {
  readonly request: RunRequest;
  readonly because: 'schedule' | 'empty' | 'retry';
}

/** How often to look for an unfinished run whose process is gone. A restarted process finds its own run at once. */
const CHECK_MS = 15_000;
/** The same while another process makes a run. */
const STANDBY_CHECK_MS = 3_000;

/** Why a tick needs no run of its own; null if it needs one. The reasons still hold after a crash of this process. */
function coveredBy(store: Store, current: RunKind | null, wanted: RunKind, nowMs: number): string | null {
  if (current !== null && covers(current, wanted)) return 'the current run covers it';
  const unfinished = store.runs.unfinished();
  const isElsewhere = current === null && store.keeperLease.holder(nowMs) !== null;
  if (unfinished !== undefined && isElsewhere && covers(unfinished.kind, wanted)) {
    return 'the current run of another process covers it';
  }
  const retry = store.schedule.retry();
  return retry !== null && covers(retry.kind, wanted) ? 'the retry of a failed run covers it' : null;
}

function report({ id, kind, evidence: _evidence, ...run }: Run, log: Logger): void {
  const [from, sourceTime, startedAt, finishedAt] = [run.from, run.sourceTime, run.startedAt, run.finishedAt].map(iso);
  const fields = { run: id, kind, result: { ...run, from, sourceTime, startedAt, finishedAt } };
  if (run.state !== 'held') log.info(fields, 'run complete');
  else log.warn({ ...fields, hint: `npx catchword run ${id}` }, 'removals are held: approve or reject the run');
}

/** Marks the ticks that a run covers as served. @returns the runs that are still wanted */
function serveCovered(store: Store, waiting: readonly WantedRun[], run: Run): WantedRun[] {
  return waiting.filter(({ request, because }) => {
    if (because !== 'schedule' || !covers(run.kind, request.kind)) return true;
    const at = tickTime(request.tick ?? '');
    if (at !== null) store.schedule.serve(request.kind, at);
    return false;
  });
}

/** Resumes a run. If the run is abandoned, it is retried like one that failed, because its tick counts as served. */
async function resume({ keeper, store, clock }: RunQueueOptions, { id, kind }: Run, signal: AbortSignal) {
  const run = await keeper.resume(signal);
  if (run === null && store.runs.state(id) === 'failed') {
    const reason = `run ${id} was left unfinished and could not be resumed`;
    store.schedule.setRetry({ kind, at: clock.now(), reason });
  }
  return run;
}

/** Accepts requests for runs and makes the runs one at a time. */
export function startRunQueue(options: RunQueueOptions) {
  const { keeper, store, clock, log, decisions } = options;
  const stopping = new AbortController();
  const pause = createRetryPause(store.schedule, clock);
  let waiting: WantedRun[] = [];
  let current: RunKind | null = null;
  let loggedBusy = false;
  /** Ends the pause of the current turn. */
  let turn = new AbortController();

  function submit(request: RunRequest): void {
    const { kind, tick } = request;
    const at = tick === undefined ? null : tickTime(tick);
    if (at !== null) {
      forgetFutureTicks(store.schedule, kind, clock.now(), log);
      if ((store.schedule.served(kind) ?? 0) >= at) return;
    }
    const reason = coveredBy(store, current, kind, clock.now());
    if (reason !== null) {
      if (at === null) return;
      store.schedule.serve(kind, at);
      log.info({ kind, tick, reason, ...pause.fields() }, 'skipped');
      return;
    }
    // A newer tick replaces a waiting one. A waiting tick is not served yet, so the scheduler submits it again.
    waiting = waiting.filter((wanted) => !(covers(kind, wanted.request.kind) && wanted.because === 'schedule'));
    waiting.push({ request, because: at === null ? 'empty' : 'schedule' });
    turn.abort();
  }

  /** @returns false if another process works on the mirror, so that nothing was attempted */
  async function attempt(kind: RunKind, work: () => Promise<Run | null>): Promise<boolean> {
    current = kind;
    try {
      const run = await work();
      pause.end();
      loggedBusy = false;
      if (run !== null) {
        waiting = serveCovered(store, waiting, run);
        report(run, log);
      }
    } catch (error) {
      if (stopping.signal.aborted) return true;
      const code = error instanceof CatchwordError ? error.code : undefined;
      // After LEASE_LOST, too: the other process goes on with the run, and this one notes nothing about it.
      if (code === 'MIRROR_BUSY' || code === 'LEASE_LOST') {
        if (!loggedBusy) log.info({ kind, reason: messageOf(error) }, 'waiting: another process works on this mirror');
        loggedBusy = true;
        return false;
      }
      if (isMirrorLost(error) || code === 'MIRROR_OTHER_SOURCE') throw error;
      if (code === 'RUN_CANCELLED') log.warn({ kind, code, reason: messageOf(error) }, 'run was cancelled');
      else log.error({ run: store.runs.unfinished()?.id, kind, ...pause.begin(kind, error) }, 'run stopped');
    } finally {
      current = null;
    }
    return true;
  }

  async function step(): Promise<void> {
    for (;;) {
      if (stopping.signal.aborted) return;
      const decision = decisions?.next() ?? null;
      if (decision !== null) {
        const { starts, work } = decision;
        const isMade = starts === null ? work(stopping.signal) : attempt(starts, () => work(stopping.signal));
        if (await isMade) continue;
        return;
      }
      // A pause does not delay what an operator asks for.
      if (pause.leftMs() > 0) return;
      const left = store.runs.unfinished();
      if (left !== undefined && store.keeperLease.holder(clock.now()) === null) {
        pause.endNoted();
        if (await attempt(left.kind, () => resume(options, left, stopping.signal))) continue;
        return;
      }
      // The first retry of a process does not wait, because the cause may have been fixed before the restart.
      const retry = store.schedule.retry();
      const wanted: WantedRun | undefined =
        retry === null ? waiting.shift() : { request: { kind: retry.kind }, because: 'retry' };
      if (wanted === undefined) return;
      const { request, because } = wanted;
      // Another process may have filled the mirror meanwhile.
      if (because === 'empty' && !needsFullRun(store)) continue;
      if (because === 'retry') pause.endNoted();
      if (await attempt(request.kind, () => keeper.run(request, stopping.signal))) continue;
      if (because !== 'retry') waiting.unshift(wanted);
      return;
    }
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      turn = new AbortController();
      await step();
      if (stopping.signal.aborted) return;
      const isElsewhere = store.keeperLease.holder(clock.now()) !== null;
      const checkMs = isElsewhere ? STANDBY_CHECK_MS : CHECK_MS;
      await clock.sleep(Math.min(checkMs, pause.leftMs() || checkMs), turn.signal).catch(() => {});
    }
  }

  const running = loop();
  return {
    name: 'run queue',
    failed: failureOf(running),
    /** Returns at once; the result is in the log and in the mirror. */
    submit,
    /** Looks at once for a decision to carry out. */
    wake: (): void => turn.abort(),
    stop: async (): Promise<void> => {
      stopping.abort();
      turn.abort();
      await running.catch(() => {});
    },
  };
}
