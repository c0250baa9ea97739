import { join } from 'node:path';
import { CatchwordError } from '@catchword/base/errors';
import type { Run, RunKind } from '@catchword/catalog/run-types';
import { selectionText } from '@catchword/catalog/source-identity';
import { tickName } from '@catchword/catalog/tick';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { createHandClock, type HandClock } from '@catchword/testing/test-clocks';
import { pino } from 'pino';
import { onTestFinished } from 'vitest';
import { createDecisionQueue } from '../../src/operate/decisions/decision-queue.ts';
import { startRunQueue } from '../../src/operate/schedule/run-queue.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { requireRun } from '../../src/sync/finish-run.ts';
import { type Keeper, startRun } from '../../src/sync/keeper.ts';
import { NO_COUNTS } from './scene.ts';

export const START = Date.parse('2026-11-20T10:00:00Z');
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
const SOURCE = { address: 'http://127.0.0.1:1', selection: selectionText({ includeDetails: [], currency: [] }) };
const SETTINGS = { perPage: 10, seam: 0, overlapMs: 0, source: SOURCE };

interface Line {
  readonly msg: string;
  readonly [key: string]: unknown;
}

/** How the next runs end: `hang` waits until `release`, `give up` fails a resumed run, an error is thrown. */
type Script = (CatchwordError | 'hang' | 'give up')[];

/** A run queue on a real mirror, with a keeper that writes the rows of a real one and ends runs as scripted. */
export function runQueueOn(db: string, clock: HandClock, script: Script = []) {
  const store = openStore(db);
  const lines: Line[] = [];
  const log = pino({ level: 'trace' }, { write: (text: string) => void lines.push(JSON.parse(text) as Line) });
  const made: string[] = [];
  let release = (): void => {};

  async function finish(run: Run): Promise<Run> {
    const outcome = script.shift();
    if (outcome === 'give up') throw new Error('only a resumed run can be given up');
    if (outcome === 'hang') {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
    } else if (outcome !== undefined) {
      end(store, run, 'failed', clock.now());
      throw outcome;
    }
    end(store, run, 'complete', clock.now());
    store.schedule.clearRetry(run.kind);
    return requireRun(store, run.id);
  }

  const keeper: Keeper = {
    adopt: async () => {
      throw new Error('not used in these tests');
    },
    resume: async () => {
      const run = store.runs.unfinished();
      if (run === undefined) return null;
      made.push(`resume ${run.kind}`);
      if (script[0] === 'give up') {
        script.shift();
        end(store, run, 'failed', clock.now());
        return null;
      }
      return await finish(run);
    },
    run: async (request, _signal, onStart) => {
      const leased = store.keeperLease.acquire(clock.now());
      try {
        const run = startRun(leased, request, SETTINGS, clock.now());
        if (run === null) return null;
        leased.write((writer) => onStart?.(writer, run, false));
        made.push(request.tick ?? request.kind);
        return await finish(run);
      } finally {
        leased.release();
      }
    },
  };
  const decisions = createDecisionQueue({ store, keeper, clock, log, lookUp: async () => null });
  const queue = startRunQueue({ keeper, store, clock, log, decisions });
  /** Records a decision of an operator, and wakes the queue. */
  function ask(action: string, target: string): void {
    const asked = { who: 'a test', action, target, argument: null, state: 'asked', outcome: null } as const;
    store.request(({ actions }) => actions.add({ ...asked, at: clock.now(), endedAt: null }));
    queue.wake();
  }
  const stop = async (): Promise<void> => {
    release();
    await queue.stop();
    store.close();
  };
  onTestFinished(() => stop().catch(() => {}));
  return { queue, store, lines, made, ask, stop, release: () => release() };
}

function end(store: Store, run: Run, state: 'complete' | 'failed', at: number): void {
  const rest = { counts: { ...NO_COUNTS, pages: 1, items: 1, requests: 1 }, proof: null, reasons: [], error: null };
  store.request(({ runs }) => runs.end(run.id, { state, finishedAt: at, ...rest }));
}

/** A mirror that has been filled, and the clock of its processes. */
export function filledMirror() {
  const clock = createHandClock(START);
  const db = join(temporaryDirectory(), 'catalog.db');
  const store = openStore(db);
  writeUnder(store.keeperLease, clock.now(), (writer) => writer.advanceWatermark(clock.now(), clock.now()));
  store.close();
  return { clock, db };
}

/** A run queue on a filled mirror. */
export function scriptedQueue(script: Script = []) {
  const { clock, db } = filledMirror();
  return { clock, db, ...runQueueOn(db, clock, script) };
}

/** Opens the mirror as a process on another machine. */
export function openElsewhere(db: string): Store {
  const store = openStore(db, { self: { pid: 1, host: 'elsewhere', boot: null, pidNamespace: null } });
  onTestFinished(() => store.close());
  return store;
}

export function tick(kind: RunKind, at: number) {
  return { kind, tick: tickName(kind, at) };
}

export const down = (): CatchwordError => new CatchwordError('SOURCE_UNAVAILABLE', 'the service answered 503');

/** Leaves an unfinished run of a process that is gone. */
export function leaveUnfinished(store: Store, kind: RunKind, nowMs: number): void {
  const leased = store.keeperLease.acquire(nowMs);
  startRun(leased, { kind, tick: tickName(kind, nowMs) }, SETTINGS, nowMs);
  leased.release();
}
