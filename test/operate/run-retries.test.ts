import { CatchwordError } from '@catchword/base/errors';
import type { Notice } from '@catchword/base/log';
import { tickName } from '@catchword/catalog/tick';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { forgetPause } from '../../src/sync/shared-pace.ts';
import {
  down,
  filledMirror,
  HOUR,
  leaveUnfinished,
  MINUTE,
  runQueueOn,
  START,
  scriptedQueue,
  tick,
} from './scripted-runs.ts';

it('retries a failed full run, and shows when and why until it succeeds', async () => {
  const { clock, queue, store, made, lines } = scriptedQueue([down(), down()]);
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
  const { clock, queue, store, made, ask } = scriptedQueue([down(), down()]);
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

it('stops waiting for a pause of the source if sync --now ends it or another process makes the run', async () => {
  const asked = () => new CatchwordError('SOURCE_RATE_LIMITED', '429', { retryAfterMs: 5 * HOUR });
  const { clock, db, queue, store, made } = scriptedQueue([asked(), asked()]);
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

it('a clock that was ahead makes no pause longer', async () => {
  const { clock, queue, made } = scriptedQueue([down()]);
  clock.set(5 * HOUR);
  queue.submit(tick('delta', START + 5 * HOUR));
  await clock.pass(1000);
  expect(made).toHaveLength(1);
  clock.set(-5 * HOUR);
  await clock.pass(20_000);
  expect(made).toEqual([tickName('delta', START + 5 * HOUR), 'delta']);
});

it('a cancelled run is not retried', async () => {
  const { clock, queue, store, made } = scriptedQueue([new CatchwordError('RUN_CANCELLED', 'cancelled')]);
  queue.submit(tick('full', START));
  await clock.pass(2 * HOUR);
  expect(made).toEqual([tickName('full', START)]);
  expect(store.schedule.retry()).toBeNull();
});

it('retries the failed run of a process that died', async () => {
  const { clock, queue, store, made, lines } = scriptedQueue();
  await clock.pass(1000);
  store.schedule.setRetry({ kind: 'full', at: START + 5 * MINUTE, reason: 'the service answered 503' });
  queue.submit(tick('full', START));
  queue.submit(tick('delta', START));
  expect(lines.filter(({ msg }) => msg === 'skipped')).toHaveLength(2);
  await clock.pass(4 * MINUTE);
  expect(made).toEqual([]);
  await clock.pass(MINUTE);
  expect(made).toEqual(['full']);
  expect(store.schedule.retry()).toBeNull();
});

it('retries a full run that failed while the retry of a delta was waiting', async () => {
  const { clock, queue, store, made } = scriptedQueue([down(), down()]);
  queue.submit(tick('delta', START));
  await clock.pass(1000);
  leaveUnfinished(store, 'full', clock.now());
  await clock.pass(HOUR);
  expect(made).toEqual([tickName('delta', START), 'resume full', 'full']);
  expect(store.schedule.retry()).toBeNull();
});

it('retries a run that was abandoned because it was unfinished for too long', async () => {
  const { clock, db } = filledMirror();
  const store = openStore(db);
  leaveUnfinished(store, 'full', clock.now());
  store.close();
  await clock.pass(30 * HOUR);
  const { made, store: later } = runQueueOn(db, clock, ['give up']);
  await clock.pass(MINUTE);
  expect(made).toEqual(['resume full', 'full']);
  expect(later.schedule.retry()).toBeNull();
});

it('the pause of an earlier failure is not waited for when the process that retries dies', async () => {
  const { clock, db } = filledMirror();
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

it('keeps the pause that another process notes while this one stands by', async () => {
  const { clock, db } = filledMirror();
  const first = runQueueOn(db, clock, [down()]);
  const standby = runQueueOn(db, clock);
  const refused = new CatchwordError('SOURCE_RATE_LIMITED', '429', { retryAfterMs: 2 * HOUR });
  const other = runQueueOn(db, clock, [refused]);
  other.queue.submit(tick('full', START));
  await clock.pass(2 * HOUR - MINUTE);
  expect([...first.made, ...standby.made]).toEqual([]);
  await clock.pass(2 * MINUTE);
  expect([...first.made, ...standby.made, ...other.made.slice(1)]).toContain('full');
});
