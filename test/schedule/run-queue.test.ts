import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { Run, RunKind } from '../../src/catalog/run.ts';
import { selectionText } from '../../src/catalog/source.ts';
import { tickName } from '../../src/catalog/tick.ts';
import { CatchwordError } from '../../src/errors.ts';
import type { Notice } from '../../src/log.ts';
import { createAskedDecisions } from '../../src/operator/asked.ts';
import { startRunQueue } from '../../src/schedule/run-queue.ts';
import { writeUnder } from '../../src/store/hold-lease.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { requireRun } from '../../src/sync/finish-run.ts';
import type { Keeper } from '../../src/sync/keeper.ts';
import { forgetPause } from '../../src/sync/shared-pace.ts';
import { startRun } from '../../src/sync/start-run.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { createHandClock, type HandClock } from '../support/test-clocks.ts';

const START = Date.parse('2026-11-20T10:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const COUNTS = {
  pages: 1,
  items: 1,
  created: 0,
  updated: 0,
  removed: 0,
  restored: 0,
  missing: 0,
  rejected: 0,
  requests: 1,
};

interface Line {
  readonly msg: string;
  readonly [key: string]: unknown;
}

/** How the next runs end: `hang` waits until `release`, `give up` fails a resumed run, an error is thrown. */
type Script = (CatchwordError | 'hang' | 'give up')[];

/** A run queue on a real mirror, with a keeper that writes the rows of a real one and ends runs as scripted. */
function runQueueOn(db: string, clock: HandClock, script: Script = []) {
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

  const source = { address: 'http://127.0.0.1:1', selection: selectionText({ includeDetails: [], currency: [] }) };
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
        const run = startRun(leased, request, { perPage: 10, seam: 0, overlapMs: 0, source }, clock.now());
        if (run === null) return null;
        leased.write((writer) => onStart?.(writer, run, false));
        made.push(request.tick ?? request.kind);
        return await finish(run);
      } finally {
        leased.release();
      }
    },
  };
  const decisions = createAskedDecisions({ store, keeper, clock, log, existing: async () => [] });
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
  const rest = { counts: COUNTS, proof: null, reasons: [], error: null };
  store.request(({ runs }) => runs.end(run.id, { state, finishedAt: at, ...rest }));
}

function filledMirror(clock: HandClock): string {
  const db = join(temporaryDirectory(), 'catalog.db');
  const store = openStore(db);
  writeUnder(store.keeperLease, clock.now(), (writer) => writer.advanceWatermark(clock.now(), clock.now()));
  store.close();
  return db;
}

function tick(kind: RunKind, at: number) {
  return { kind, tick: tickName(kind, at) };
}

const down = (): CatchwordError => new CatchwordError('SOURCE_UNAVAILABLE', 'the service answered 503');

it('retries a failed full run, and shows when and why until it succeeds', async () => {
  const clock = createHandClock(START);
  const { queue, store, made, lines } = runQueueOn(filledMirror(clock), clock, [down(), down()]);
  queue.submit(tick('full', START));
  await clock.pass(1000);
  expect(store.schedule.retry()).toMatchObject({ kind: 'full', reason: 'the service answered 503' });
  const { at } = store.schedule.retry() ?? { at: 0 };
  expect(at).toBeGreaterThan(START);
  expect(lines.find(({ msg }) => msg === 'run stopped')).toMatchObject({
    nextTryAt: new Date(at).toISOString(),
    pauseMs: at - START,
  });
  await clock.pass(2 * MINUTE);
  expect(made).toEqual([tickName('full', START), 'full', 'full']);
  expect(store.schedule.retry()).toBeNull();
  expect(store.runs.list(1)).toMatchObject([{ kind: 'full', state: 'complete' }]);
});

it('starts what an operator asks for during the pause after a failed run', async () => {
  const clock = createHandClock(START);
  const { queue, store, made, ask } = runQueueOn(filledMirror(clock), clock, [down(), down()]);
  queue.submit(tick('delta', START));
  await clock.pass(1000);
  expect(store.schedule.retry()?.at).toBeGreaterThan(clock.now() + 1000);
  ask('start', 'full');
  await clock.pass(10);
  expect(made).toEqual([tickName('delta', START), 'full']);
  expect(store.actions.get(1)).toMatchObject({ state: 'done', outcome: 'run 2 started' });
  // It fails, too, and is retried as any other run.
  expect(store.schedule.retry()).toMatchObject({ kind: 'full' });
  await clock.pass(2 * MINUTE);
  expect(made.slice(2)).toEqual(['full']);
});

it('carries decisions out when the run under way has ended', async () => {
  const clock = createHandClock(START);
  const { queue, store, made, ask, release } = runQueueOn(filledMirror(clock), clock, ['hang']);
  queue.submit(tick('delta', START));
  await clock.pass(10);
  ask('undo', '1');
  ask('start', 'full');
  await clock.pass(MINUTE);
  expect(store.actions.asked(0)).toHaveLength(2);
  release();
  await clock.pass(10);
  expect(store.actions.asked(0)).toEqual([]);
  expect(store.actions.get(1)).toMatchObject({ outcome: 'run 1 removed nothing that could be restored' });
  expect(made).toEqual([tickName('delta', START), 'full']);
});

it('retries at once after a restart', async () => {
  const clock = createHandClock(START);
  const db = filledMirror(clock);
  const refused = new CatchwordError('SOURCE_AUTH', 'the key was refused');
  const first = runQueueOn(db, clock, [refused]);
  first.queue.submit(tick('full', START));
  await clock.pass(1000);
  await first.stop();
  const second = runQueueOn(db, clock);
  await clock.pass(10);
  expect(second.made).toEqual(['full']);
  expect(second.store.schedule.retry()).toBeNull();
});

it('stops waiting for a pause of the source if sync --now ends it or another process makes the run', async () => {
  const clock = createHandClock(START);
  const asked = () => new CatchwordError('SOURCE_RATE_LIMITED', '429', { retryAfterMs: 5 * HOUR });
  const db = filledMirror(clock);
  const { queue, store, made } = runQueueOn(db, clock, [asked(), asked()]);
  const other = openStore(db);
  onTestFinished(() => other.close());
  queue.submit(tick('full', START));
  await clock.pass(1000);
  other.source.notePause({ since: clock.now(), until: clock.now() + 5 * HOUR });
  await clock.pass(HOUR);
  expect(made).toHaveLength(1);
  expect(store.schedule.retry()?.at).toBeGreaterThan(clock.now() + 3 * HOUR);

  const notices: Notice[] = [];
  forgetPause(other, clock.now(), (notice) => notices.push(notice));
  expect(notices).toMatchObject([{ fields: { until: expect.stringMatching(/^2026-11-20T15:00:\d\d/) as string } }]);
  await clock.pass(20_000);
  expect(made).toEqual([tickName('full', START), 'full']);

  await clock.pass(HOUR);
  expect(made).toHaveLength(2);
  other.schedule.clearRetry('full');
  queue.submit(tick('delta', START + 2 * HOUR));
  await clock.pass(20_000);
  expect(made).toEqual([tickName('full', START), 'full', tickName('delta', START + 2 * HOUR)]);
});

it('does not wait longer because the clock was ahead', async () => {
  const clock = createHandClock(START);
  const { queue, made } = runQueueOn(filledMirror(clock), clock, [down()]);
  clock.set(5 * HOUR);
  queue.submit(tick('delta', START + 5 * HOUR));
  await clock.pass(1000);
  expect(made).toHaveLength(1);
  clock.set(-5 * HOUR);
  await clock.pass(20_000);
  expect(made).toEqual([tickName('delta', START + 5 * HOUR), 'delta']);
});

it('serves a tick again that was served while the clock was ahead', async () => {
  const clock = createHandClock(START);
  const { queue, made, lines } = runQueueOn(filledMirror(clock), clock);
  const later = START + 3 * HOUR;
  clock.set(3 * HOUR);
  queue.submit(tick('delta', later));
  await clock.pass(1000);
  clock.set(-3 * HOUR);
  queue.submit(tick('delta', START + HOUR));
  await clock.pass(3 * HOUR);
  queue.submit(tick('delta', later));
  await clock.pass(1000);
  expect(made).toEqual([tickName('delta', later), tickName('delta', START + HOUR), tickName('delta', later)]);
  expect(lines.filter(({ msg }) => msg.startsWith('the clock was put back'))).toHaveLength(1);
});

it('serves a tick only once', async () => {
  const clock = createHandClock(START);
  const { queue, made } = runQueueOn(filledMirror(clock), clock);
  for (const at of [START, START - HOUR, START]) {
    queue.submit(tick('delta', at));
    await clock.pass(1000);
  }
  expect(made).toEqual([tickName('delta', START)]);
});

it('keeps one sleep at a time, however often it is woken', async () => {
  const clock = createHandClock(START);
  let sleeping = 0;
  let most = 0;
  const counting: HandClock = {
    ...clock,
    sleep: (ms, signal) => {
      most = Math.max(most, ++sleeping);
      return clock.sleep(ms, signal).finally(() => sleeping--);
    },
  };
  const { queue, made } = runQueueOn(filledMirror(clock), counting);
  for (let second = 0; second < 20; second++) {
    queue.submit(tick('delta', START + second * 1000));
    await clock.pass(1000);
  }
  expect(made).toHaveLength(20);
  expect(most).toBe(1);
});

it('logs which run covers a skipped tick', async () => {
  const clock = createHandClock(START);
  const { queue, store, made, lines, release } = runQueueOn(filledMirror(clock), clock, ['hang', down()]);
  const reasons = (): unknown[] => lines.filter(({ msg }) => msg === 'skipped').map(({ reason }) => reason);

  queue.submit(tick('full', START));
  await clock.pass(10);
  queue.submit(tick('delta', START));
  expect(reasons()).toEqual(['the current run covers it']);
  release();
  await clock.pass(10);

  queue.submit(tick('full', START + 1));
  await clock.pass(10);
  queue.submit(tick('delta', START + 1));
  expect(reasons().slice(1)).toEqual(['the retry of a failed run covers it']);
  expect(lines.at(-1)).toMatchObject({ nextTryAt: new Date(store.schedule.retry()?.at ?? 0).toISOString() });
  await clock.pass(HOUR);
  expect(made).toEqual([tickName('full', START), tickName('full', START + 1), 'full']);
  expect(store.schedule.served('delta')).toBe(START + 1);
});

it('waits for another process that works on the mirror, and logs it once', async () => {
  const clock = createHandClock(START);
  const db = filledMirror(clock);
  const { queue, made, lines } = runQueueOn(db, clock);
  const self = { pid: 1, host: 'elsewhere', boot: null, pidNamespace: null };
  const other = openStore(db, { self });
  onTestFinished(() => other.close());
  const held = other.keeperLease.acquire(clock.now());
  const renew = async (): Promise<void> => {
    held.renew(clock.now());
    await clock.pass(15_000);
  };
  queue.submit(tick('full', START));
  for (let times = 0; times < 5; times++) await renew();
  expect(made).toEqual([]);
  expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
    ['waiting: another process works on this mirror', 'process 1 on elsewhere is running a run on this mirror'],
  ]);
  held.release();
  await clock.pass(MINUTE);
  expect(made).toEqual([tickName('full', START)]);
});

it('takes over within 30 seconds from a process that says nothing any more', async () => {
  const clock = createHandClock(START);
  const db = filledMirror(clock);
  const { queue, made } = runQueueOn(db, clock);
  const other = openStore(db, { self: { pid: 1, host: 'elsewhere', boot: null, pidNamespace: null } });
  onTestFinished(() => other.close());
  queue.submit(tick('full', START));
  other.keeperLease.acquire(clock.now());
  await clock.pass(20_000);
  expect(made).toEqual([]);
  await clock.pass(10_000);
  expect(made).toEqual([tickName('full', START)]);
});

it('does not retry a cancelled run', async () => {
  const clock = createHandClock(START);
  const { queue, store, made } = runQueueOn(filledMirror(clock), clock, [
    new CatchwordError('RUN_CANCELLED', 'cancelled'),
  ]);
  queue.submit(tick('full', START));
  await clock.pass(2 * HOUR);
  expect(made).toEqual([tickName('full', START)]);
  expect(store.schedule.retry()).toBeNull();
});

/** Leaves an unfinished run of a process that is gone. */
function leaveUnfinished(store: Store, kind: RunKind, nowMs: number): void {
  const source = { address: 'http://127.0.0.1:1', selection: selectionText({ includeDetails: [], currency: [] }) };
  const leased = store.keeperLease.acquire(nowMs);
  startRun(leased, { kind, tick: tickName(kind, nowMs) }, { perPage: 10, seam: 0, overlapMs: 0, source }, nowMs);
  leased.release();
}

it('retries the failed run of a process that died', async () => {
  const clock = createHandClock(START);
  const { queue, store, made, lines } = runQueueOn(filledMirror(clock), clock);
  await clock.pass(1000);
  store.schedule.setRetry({ kind: 'full', at: START + 5 * MINUTE, reason: 'the service answered 503' });
  queue.submit(tick('full', START));
  queue.submit(tick('delta', START));
  expect(lines.filter(({ msg }) => msg === 'skipped')).toHaveLength(2);
  await clock.pass(MINUTE);
  expect(made).toEqual(['full']);
  expect(store.schedule.retry()).toBeNull();
});

it('retries a full run that failed while the retry of a delta was waiting', async () => {
  const clock = createHandClock(START);
  const { queue, store, made } = runQueueOn(filledMirror(clock), clock, [down(), down()]);
  queue.submit(tick('delta', START));
  await clock.pass(1000);
  leaveUnfinished(store, 'full', clock.now());
  await clock.pass(HOUR);
  expect(made).toEqual([tickName('delta', START), 'resume full', 'full']);
  expect(store.schedule.retry()).toBeNull();
});

it('retries a run that was abandoned because it was unfinished for too long', async () => {
  const clock = createHandClock(START);
  const db = filledMirror(clock);
  const store = openStore(db);
  leaveUnfinished(store, 'full', clock.now());
  store.close();
  await clock.pass(30 * HOUR);
  const { made, store: later } = runQueueOn(db, clock, ['give up']);
  await clock.pass(MINUTE);
  expect(made).toEqual(['resume full', 'full']);
  expect(later.schedule.retry()).toBeNull();
});

it('does not fill an empty mirror that another process filled meanwhile', async () => {
  const clock = createHandClock(START);
  const db = join(temporaryDirectory(), 'catalog.db');
  const { queue, made } = runQueueOn(db, clock);
  const other = openStore(db, { self: { pid: 1, host: 'elsewhere', boot: null, pidNamespace: null } });
  onTestFinished(() => other.close());
  const held = other.keeperLease.acquire(clock.now());
  queue.submit({ kind: 'full' });
  await clock.pass(1000);
  held.write((writer) => writer.advanceWatermark(clock.now(), clock.now()));
  held.release();
  await clock.pass(MINUTE);
  expect(made).toEqual([]);
});

it('notes nothing about a run that another process has taken over', async () => {
  const clock = createHandClock(START);
  const lost = new CatchwordError('LEASE_LOST', 'another process has taken over this mirror');
  const { queue, store, made, lines } = runQueueOn(filledMirror(clock), clock, [lost]);
  queue.submit(tick('full', START));
  await clock.pass(1000);
  expect(made).toHaveLength(1);
  expect(store.schedule.retry()).toBeNull();
  expect(lines.map(({ level }) => level)).not.toContain(pino.levels.values.error);
});

it('does not wait for the pause of an earlier failure when the process that retries dies', async () => {
  const clock = createHandClock(START);
  const db = filledMirror(clock);
  const refused = new CatchwordError('SOURCE_AUTH', 'the key was refused', { retryAfterMs: HOUR });
  const standby = runQueueOn(db, clock, [refused]);
  standby.queue.submit(tick('full', START));
  await clock.pass(1000);
  expect(standby.made).toHaveLength(1);
  // It retries at once, and says nothing any more.
  const other = runQueueOn(db, clock, ['hang']);
  await clock.pass(1000);
  expect(other.made).toEqual(['full']);
  await clock.pass(40_000);
  expect(standby.made.slice(1)).toEqual(['resume full']);
});
