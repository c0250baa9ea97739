import type { Clock } from '@catchword/base/clock';
import type { Logger } from '@catchword/base/log';
import { covers, type Run, type RunKind, type RunRequest } from '@catchword/catalog/run-types';
import { tickTime } from '@catchword/catalog/tick';
import { needsFullRun } from '../../store/rows/source-state.ts';
import type { Store } from '../../store/store.ts';
import { forgetFutureTicks } from './scheduler.ts';

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

/** When a run is scheduled; null if it is wanted because the mirror was never filled. */
function dueAt({ tick = '' }: RunRequest): number | null {
  return tickTime(tick);
}

export type WantedRuns = ReturnType<typeof createWantedRuns>;

/** Keeps the requested runs that wait for their turn. @param pauseFields fields for the log: when the next run may start */
export function createWantedRuns(store: Store, clock: Clock, log: Logger, pauseFields: () => Record<string, unknown>) {
  let waiting: RunRequest[] = [];
  return {
    /**
     * Adds a request, unless another run covers it.
     * @param current the run that this process makes
     * @returns whether it waits now
     */
    add: (request: RunRequest, current: RunKind | null): boolean => {
      const { kind, tick } = request;
      const at = dueAt(request);
      if (at !== null) {
        forgetFutureTicks(store.schedule, kind, clock.now(), log);
        if ((store.schedule.served(kind) ?? 0) >= at) return false;
      }
      const reason = coveredBy(store, current, kind, clock.now());
      if (reason !== null) {
        if (at === null) return false;
        store.schedule.serve(kind, at);
        log.info({ kind, tick, reason, ...pauseFields() }, 'skipped');
        return false;
      }
      // A newer tick replaces a waiting one. A waiting tick is not served yet, so the scheduler wanted it again.
      waiting = waiting.filter((wanted) => !covers(kind, wanted.kind) || dueAt(wanted) === null);
      waiting.push(request);
      return true;
    },
    /** Takes the first request. Another process may have filled the mirror since. */
    take: (): RunRequest | undefined => {
      const [first, ...others] = waiting.filter((wanted) => dueAt(wanted) !== null || needsFullRun(store));
      waiting = others;
      return first;
    },
    /** Puts back a request whose run could not begin. */
    putBack: (wanted: RunRequest): void => {
      waiting.unshift(wanted);
    },
    /** Drops the ticks that a run covers, and marks them as served. */
    serve: (run: Run): void => {
      waiting = waiting.filter((wanted) => {
        const at = dueAt(wanted);
        if (at === null || !covers(run.kind, wanted.kind)) return true;
        store.schedule.serve(wanted.kind, at);
        return false;
      });
    },
  };
}
