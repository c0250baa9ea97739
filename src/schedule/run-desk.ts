import type { Run } from '../catalog/run.ts';
import type { Clock } from '../clock.ts';
import { CatchwordError, isMirrorLost, messageOf } from '../errors.ts';
import type { Logger } from '../log.ts';
import { failureOf, type Service } from '../service.ts';
import type { Store } from '../store/store.ts';
import type { Keeper } from '../sync/keeper.ts';
import type { RunRequest } from '../sync/start-run.ts';

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

/** How often an unfinished run without a living holder is looked for. Comfort: a restart finds its own at once. */
const LOOK_MS = 15_000;
/** Pauses after a run that the source, the network or Redis stopped, in milliseconds. */
const RETRY_MIN_MS = 15_000;
const RETRY_MAX_MS = 15 * 60_000;

export function startRunDesk({ keeper, store, clock, log }: RunDeskOptions): RunDesk {
  const stopping = new AbortController();
  const waiting: RunRequest[] = [];
  let current: RunRequest | 'resumed' | undefined;
  let failures = 0;
  let notBefore = 0;
  let wake = (): void => {};

  /** A full run covers a delta; a delta that has begun does not cover a full run. */
  function submit(request: RunRequest): void {
    const kinds = [current, ...waiting].map((run) => (typeof run === 'object' ? run.kind : undefined));
    const unfinished = current === 'resumed' ? store.runs.unfinished()?.kind : undefined;
    const busyWith = [...kinds, unfinished];
    if (busyWith.includes('full') || (request.kind === 'delta' && busyWith.includes('delta'))) {
      log.info({ kind: request.kind, tick: request.tick }, 'skipped: the run that is under way covers it');
      return;
    }
    waiting.push(request);
    wake();
  }

  function report({ evidence: _evidence, ...run }: Run): void {
    if (run.state !== 'held') log.info({ run }, 'run complete');
    else log.warn({ run, hint: `npx catchword run ${run.id}` }, 'removals are held and wait for a decision');
  }

  async function attempt(work: () => Promise<Run | null>): Promise<void> {
    try {
      const run = await work();
      failures = 0;
      if (run !== null) report(run);
    } catch (error) {
      if (stopping.signal.aborted) return;
      const known = error instanceof CatchwordError ? error : undefined;
      if (known?.code === 'MIRROR_BUSY') {
        log.info({ reason: known.message }, 'skipped: another process runs on this mirror');
        return;
      }
      if (isMirrorLost(error)) throw error;
      failures++;
      const backoffMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** (failures - 1));
      const pauseMs = Math.max(known?.retryAfterMs ?? 0, backoffMs * (0.5 + clock.random() / 2));
      notBefore = clock.now() + pauseMs;
      log.error({ code: known?.code, reason: messageOf(error), hint: known?.hint, pauseMs }, 'run stopped');
    }
  }

  async function step(): Promise<void> {
    if (clock.now() < notBefore) return;
    const left = store.runs.unfinished();
    if (left !== undefined && store.lease.holder(clock.now()) === null) {
      current = 'resumed';
      await attempt(() => keeper.resume(stopping.signal));
    } else {
      const request = waiting.shift();
      if (request === undefined) return;
      current = request;
      await attempt(() => keeper.run(request, stopping.signal));
    }
    current = undefined;
    if (waiting.length > 0) await step();
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      await step();
      if (stopping.signal.aborted) return;
      const pauseMs = Math.max(0, Math.min(LOOK_MS, notBefore > clock.now() ? notBefore - clock.now() : LOOK_MS));
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
