import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import type { Run, RunKind } from '../../src/catalog/run.ts';
import { selectionText } from '../../src/catalog/source.ts';
import { tickName } from '../../src/catalog/tick.ts';
import { CatchwordError } from '../../src/errors.ts';
import type { Notice } from '../../src/log.ts';
import { startRunDesk } from '../../src/schedule/run-queue.ts';
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

/** How the next run ends: `hang` waits until `release`, `give up` is for a run that is resumed, any other is thrown. */
type Script = (CatchwordError | 'hang' | 'give up')[];

/** A desk over a real mirror, whose keeper writes the rows that a real one would and ends runs as the script says. */
function deskOver(db: string, clock: HandClock, script: Script = []) {
  const store = openStore(db);
  const lines: Line[] = [];
  const log = pino({ level: 'trace' }, { write: (text: string) => void lines.push(JSON.parse(text) as Line) });
  const made: string[] = [];
  let release = (): void => {};

  async function finish(run: Run): Promise<Run> {
    const outcome = script.shift();
    if (outcome === 'give up') throw new Error('only a run that is resumed is given up');
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
      throw new Error('nobody asks for it here');
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
    run: async (request) => {
      const leased = store.keeperLease.acquire(clock.now());
      try {
        const run = startRun(leased, request, { perPage: 10, seam: 0, overlapMs: 0, source }, clock.now());
        if (run === null) return null;
        made.push(request.tick ?? request.kind);
        return await finish(run);
      } finally {
        leased.release();
      }
    },
  };
  const desk = startRunDesk({ keeper, store, clock, log });
  const stop = async (): Promise<void> => {
    release();
    await desk.stop();
    store.close();
  };
  onTestFinished(() => stop().catch(() => {}));
  return { desk, store, lines, made, stop, release: () => release() };
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

it('tries a full run that failed again, and says when and why until it succeeds', async () => {
  const clock = createHandClock(START);
  const { desk, store, made, lines } = deskOver(filledMirror(clock), clock, [down(), down()]);
  desk.submit(tick('full', START));
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

it('tries again at once after a restart', async () => {
  const clock = createHandClock(START);
  const db = filledMirror(clock);
  const refused = new CatchwordError('SOURCE_AUTH', 'the key was refused');
  const first = deskOver(db, clock, [refused]);
  first.desk.submit(tick('full', START));
  await clock.pass(1000);
  await first.stop();
  const second = deskOver(db, clock);
  await clock.pass(10);
  expect(second.made).toEqual(['full']);
  expect(second.store.schedule.retry()).toBeNull();
});

it('does not wait for a pause of the source any longer when sync --now ends it, nor when its run was made elsewhere', async () => {
  const clock = createHandClock(START);
  const asked = () => new CatchwordError('SOURCE_RATE_LIMITED', '429', { retryAfterMs: 5 * HOUR });
  const db = filledMirror(clock);
  const { desk, store, made } = deskOver(db, clock, [asked(), asked()]);
  const other = openStore(db);
  onTestFinished(() => other.close());
  desk.submit(tick('full', START));
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
  desk.submit(tick('delta', START + 2 * HOUR));
  await clock.pass(20_000);
  expect(made).toEqual([tickName('full', START), 'full', tickName('delta', START + 2 * HOUR)]);
});

it('does not wait for as long as the clock was ahead', async () => {
  const clock = createHandClock(START);
  const { desk, made } = deskOver(filledMirror(clock), clock, [down()]);
  clock.set(5 * HOUR);
  desk.submit(tick('delta', START + 5 * HOUR));
  await clock.pass(1000);
  expect(made).toHaveLength(1);
  clock.set(-5 * HOUR);
  await clock.pass(20_000);
  expect(made).toEqual([tickName('delta', START + 5 * HOUR), 'delta']);
});

it('serves a moment again that was served while the clock was ahead', async () => {
  const clock = createHandClock(START);
  const { desk, made, lines } = deskOver(filledMirror(clock), clock);
  const later = START + 3 * HOUR;
  clock.set(3 * HOUR);
  desk.submit(tick('delta', later));
  await clock.pass(1000);
  clock.set(-3 * HOUR);
  desk.submit(tick('delta', START + HOUR));
  await clock.pass(3 * HOUR);
  desk.submit(tick('delta', later));
  await clock.pass(1000);
  expect(made).toEqual([tickName('delta', later), tickName('delta', START + HOUR), tickName('delta', later)]);
  expect(lines.filter(({ msg }) => msg.startsWith('the clock was put back'))).toHaveLength(1);
});

it('a moment that was served once is not served again, whoever asks', async () => {
  const clock = createHandClock(START);
  const { desk, made } = deskOver(filledMirror(clock), clock);
  for (const at of [START, START - HOUR, START]) {
    desk.submit(tick('delta', at));
    await clock.pass(1000);
  }
  expect(made).toEqual([tickName('delta', START)]);
});

it('says which run covers a moment that it skips', async () => {
  const clock = createHandClock(START);
  const { desk, store, made, lines, release } = deskOver(filledMirror(clock), clock, ['hang', down()]);
  const reasons = (): unknown[] => lines.filter(({ msg }) => msg === 'skipped').map(({ reason }) => reason);

  desk.submit(tick('full', START));
  await clock.pass(10);
  desk.submit(tick('delta', START));
  expect(reasons()).toEqual(['the run that is under way covers it']);
  release();
  await clock.pass(10);

  desk.submit(tick('full', START + 1));
  await clock.pass(10);
  desk.submit(tick('delta', START + 1));
  expect(reasons().slice(1)).toEqual(['the retry of the run that failed covers it']);
  expect(lines.at(-1)).toMatchObject({ nextTryAt: new Date(store.schedule.retry()?.at ?? 0).toISOString() });
  await clock.pass(HOUR);
  expect(made).toEqual([tickName('full', START), tickName('full', START + 1), 'full']);
  expect(store.schedule.served('delta')).toBe(START + 1);
});

it('waits for a process that works on the mirror, and says so once', async () => {
  const clock = createHandClock(START);
  const db = filledMirror(clock);
  const { desk, made, lines } = deskOver(db, clock);
  const self = { pid: 1, host: 'elsewhere', boot: null, pidNamespace: null };
  const other = openStore(db, { self });
  onTestFinished(() => other.close());
  const held = other.keeperLease.acquire(clock.now());
  const renew = async (): Promise<void> => {
    held.renew(clock.now());
    await clock.pass(15_000);
  };
  desk.submit(tick('full', START));
  for (let times = 0; times < 5; times++) await renew();
  expect(made).toEqual([]);
  expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
    ['waiting: another process works on this mirror', 'process 1 on elsewhere is running a run on this mirror'],
  ]);
  held.release();
  await clock.pass(MINUTE);
  expect(made).toEqual([tickName('full', START)]);
});

it('what an operator cancelled is not tried again', async () => {
  const clock = createHandClock(START);
  const { desk, store, made } = deskOver(filledMirror(clock), clock, [
    new CatchwordError('RUN_CANCELLED', 'cancelled'),
  ]);
  desk.submit(tick('full', START));
  await clock.pass(2 * HOUR);
  expect(made).toEqual([tickName('full', START)]);
  expect(store.schedule.retry()).toBeNull();
});

/** A run that another process has begun, and that nothing works on any more. */
function leaveUnfinished(store: Store, kind: RunKind, nowMs: number): void {
  const source = { address: 'http://127.0.0.1:1', selection: selectionText({ includeDetails: [], currency: [] }) };
  const leased = store.keeperLease.acquire(nowMs);
  startRun(leased, { kind, tick: tickName(kind, nowMs) }, { perPage: 10, seam: 0, overlapMs: 0, source }, nowMs);
  leased.release();
}

it('makes the run that another process owed when it died', async () => {
  const clock = createHandClock(START);
  const { desk, store, made, lines } = deskOver(filledMirror(clock), clock);
  await clock.pass(1000);
  store.schedule.setRetry({ kind: 'full', at: START + 5 * MINUTE, reason: 'the service answered 503' });
  desk.submit(tick('full', START));
  desk.submit(tick('delta', START));
  expect(lines.filter(({ msg }) => msg === 'skipped')).toHaveLength(2);
  await clock.pass(MINUTE);
  expect(made).toEqual(['full']);
  expect(store.schedule.retry()).toBeNull();
});

it('makes a full run that is owed after a delta that was owed before it', async () => {
  const clock = createHandClock(START);
  const { desk, store, made } = deskOver(filledMirror(clock), clock, [down(), down()]);
  desk.submit(tick('delta', START));
  await clock.pass(1000);
  leaveUnfinished(store, 'full', clock.now());
  await clock.pass(HOUR);
  expect(made).toEqual([tickName('delta', START), 'resume full', 'full']);
  expect(store.schedule.retry()).toBeNull();
});

it('makes a run again that was given up because it was left unfinished for too long', async () => {
  const clock = createHandClock(START);
  const db = filledMirror(clock);
  const store = openStore(db);
  leaveUnfinished(store, 'full', clock.now());
  store.close();
  await clock.pass(30 * HOUR);
  const { made, store: later } = deskOver(db, clock, ['give up']);
  await clock.pass(MINUTE);
  expect(made).toEqual(['resume full', 'full']);
  expect(later.schedule.retry()).toBeNull();
});

it('fills a mirror that was never filled, unless another process did so meanwhile', async () => {
  const clock = createHandClock(START);
  const db = join(temporaryDirectory(), 'catalog.db');
  const { desk, made } = deskOver(db, clock);
  const other = openStore(db, { self: { pid: 1, host: 'elsewhere', boot: null, pidNamespace: null } });
  onTestFinished(() => other.close());
  const held = other.keeperLease.acquire(clock.now());
  desk.submit({ kind: 'full' });
  await clock.pass(1000);
  held.write((writer) => writer.advanceWatermark(clock.now(), clock.now()));
  held.release();
  await clock.pass(MINUTE);
  expect(made).toEqual([]);
});
