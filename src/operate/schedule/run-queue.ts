import type { Clock } from '@catchword/base/clock';
import { CatchwordError, isMirrorLost, messageOf } from '@catchword/base/errors';
import { iso } from '@catchword/base/iso-time';
import { failureOf } from '@catchword/base/lifecycle';
import type { Logger } from '@catchword/base/log';
import type { Run, RunKind, RunRequest } from '@catchword/catalog/run-types';
import type { Store } from '../../store/store.ts';
import type { Keeper } from '../../sync/keeper.ts';
import type { AskedDecisions } from '../decisions/decision-queue.ts';
import { createRetryPause, type RetryPause } from './retry-pause.ts';
import { createWantedRuns, type WantedRuns } from './wanted-runs.ts';

interface RunQueueOptions {
  readonly keeper: Keeper;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Decisions of operators, which are carried out between runs. */
  readonly decisions?: Pick<AskedDecisions, 'next'>;
}

/** How often to look for an unfinished run whose process is gone. A restarted process finds its own run at once. */
const CHECK_MS = 15_000;
/** More often while another process makes a run. */
const STANDBY_CHECK_MS = 3_000;

function report({ id, kind, evidence: _evidence, ...run }: Run, log: Logger): void {
  const [from, sourceTime, startedAt, finishedAt] = [run.from, run.sourceTime, run.startedAt, run.finishedAt].map(iso);
  const fields = { run: id, kind, result: { ...run, from, sourceTime, startedAt, finishedAt } };
  if (run.state !== 'held') log.info(fields, 'run complete');
  else log.warn({ ...fields, hint: `npx catchword run ${id}` }, 'removals are held: approve or reject the run');
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

/** Makes runs, and handles what ends them. */
function createAttempts({ store, log }: RunQueueOptions, pause: RetryPause, waiting: WantedRuns, signal: AbortSignal) {
  let current: RunKind | null = null;
  let loggedBusy = false;

  /** @returns false if another process works on the mirror, so that nothing was attempted */
  function onError(kind: RunKind, error: unknown): boolean {
    if (signal.aborted) return true;
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
    return true;
  }

  return {
    /** The run that this process makes; null between two runs. */
    current: () => current,
    /** Makes a run. @returns as `onError` */
    attempt: async (kind: RunKind, work: () => Promise<Run | null>): Promise<boolean> => {
      current = kind;
      try {
        const run = await work();
        pause.end();
        loggedBusy = false;
        if (run !== null) {
          waiting.serve(run);
          report(run, log);
        }
        return true;
      } catch (error) {
        return onError(kind, error);
      } finally {
        current = null;
      }
    },
  };
}

/** Accepts requests for runs and makes the runs one at a time. */
export function startRunQueue(options: RunQueueOptions) {
  const { keeper, store, clock, log, decisions } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const pause = createRetryPause(store.schedule, clock);
  const waiting = createWantedRuns(store, clock, log, pause.fields);
  const { attempt, current } = createAttempts(options, pause, waiting, signal);
  /** Ends the pause of the current turn. */
  let turn = new AbortController();

  /** Takes the next step. @returns false if there is none, or if it could not be taken now */
  async function step(): Promise<boolean> {
    // A pause does not delay what an operator asks for.
    const decision = decisions?.next() ?? null;
    if (decision?.starts === null) return await decision.work(signal);
    if (decision !== null) return await attempt(decision.starts, () => decision.work(signal));
    if (pause.leftMs() > 0) return false;
    const run = store.runs.unfinished();
    if (run !== undefined && store.keeperLease.holder(clock.now()) === null) {
      pause.endNoted();
      return await attempt(run.kind, () => resume(options, run, signal));
    }
    const retry = store.schedule.retry();
    if (retry !== null) {
      // The first retry of a process does not wait, because the cause may have been fixed before the restart.
      pause.endNoted();
      return await attempt(retry.kind, () => keeper.run({ kind: retry.kind }, signal));
    }
    const wanted = waiting.take();
    if (wanted === undefined) return false;
    const hasBegun = await attempt(wanted.kind, () => keeper.run(wanted, signal));
    if (!hasBegun) waiting.putBack(wanted);
    return hasBegun;
  }

  async function loop(): Promise<void> {
    while (!signal.aborted) {
      turn = new AbortController();
      for (let goesOn = true; goesOn && !signal.aborted; ) goesOn = await step();
      if (signal.aborted) return;
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
    submit: (request: RunRequest): void => {
      if (waiting.add(request, current())) turn.abort();
    },
    /** Looks at once for a decision to carry out. */
    wake: (): void => turn.abort(),
    stop: async (): Promise<void> => {
      stopping.abort();
      turn.abort();
      await running.catch(() => {});
    },
  };
}
