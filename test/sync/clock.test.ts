import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock } from '@catchword/base/clock';
import { createLog } from '@catchword/base/log';
import type { RunKind } from '@catchword/catalog/run-types';
import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { startKeeper } from '../../src/cli/roles/pipeline.ts';
import { start } from '../support/cli.ts';
import { load, type ToldRun } from '../support/load.ts';
import { catalogOf, expectExactLog, mutate, truthOf } from '../support/mirror.ts';
import { filled, place } from '../support/place.ts';

const HOUR = 3_600_000;

/** This machine's clock, ahead by `aheadMs`. */
function clockOff(aheadMs: () => number): Clock {
  return { ...systemClock, now: () => Date.now() + aheadMs() };
}

/** Makes a run as a process does whose clock may be wrong. */
function runUnder(clock: Clock, settings: Record<string, string>, kind: RunKind): Promise<ToldRun> {
  return load(settings, kind, undefined, clock);
}

it('a clock that was two hours ahead and was corrected does not delay runs', async () => {
  const { sandbox, db, settings } = await place({ items: 300, faults: '429@1' }, { CATCHWORD_RATE_LIMIT: '10/s' });
  const ahead = clockOff(() => 2 * HOUR);
  await runUnder(ahead, settings, 'full');
  await mutate(sandbox.url, { update: 5, seed: 1 });
  const delta = await runUnder(systemClock, settings, 'delta');
  expect(delta).toMatchObject({ state: 'complete', updated: 5 });
  expectExactLog(db);
});

it('a clock that is put back and forward while a process runs does not delay runs', async () => {
  const { sandbox, db, settings } = await place({ items: 300 }, { CATCHWORD_RATE_LIMIT: '10/s' });
  let aheadMs = 2 * HOUR;
  const clock = clockOff(() => aheadMs);
  await runUnder(clock, settings, 'full');
  const config = checkedSettings(settings, 'source');
  const service = await startKeeper({ config, clock, log: createLog('fatal'), fetching: true });
  for (const [seed, jump] of [-2, 3, -4].entries()) {
    await mutate(sandbox.url, { update: 5, seed: seed + 1 });
    const running = service.keeper.run({ kind: 'full' }, new AbortController().signal);
    aheadMs += jump * HOUR;
    expect(await running).toMatchObject({ state: 'complete' });
  }
  await service.stop();
  expectExactLog(db);
});

it('a pause that the source asked for 50 minutes ago holds for the rest of its duration, and is announced', {
  tags: ['slow'],
}, async () => {
  const { sandbox, directory, db, settings } = await filled({ items: 30 });
  const asked = sandbox.requests.length;
  const since = Date.now() - 50 * 60_000;
  execute(db, `UPDATE mirror SET blocked_since = ${since}, blocked_until = ${since + HOUR}`);
  const waiting = start(['sync'], settings, directory);
  await waiting.shows('the source asked for a pause\n');
  const { code, stderr } = await waiting.stop();
  expect(code).toBe(143);
  const until = new Date(since + HOUR).toISOString().slice(0, 19).replace('T', ' ');
  expect(stderr.split('\n')[0]).toBe(
    `waiting before the next request until ${until} UTC: the source asked for a pause`,
  );
  expect(sandbox.requests.length).toBe(asked);
  const asking = start(['sync', '--now'], settings, directory);
  expect((await asking.ended).code).toBe(0);
});

it('a source whose clock seems to lag by the fraction of a second that Date omits costs one more delta, and loses nothing', async () => {
  const now = Date.now();
  const clock = { ...systemClock, now: () => now };
  const { sandbox, db, settings } = await place({ items: 10, clock }, { CATCHWORD_DELTA_OVERLAP: '1s' });
  await runUnder(clock, settings, 'full');
  await mutate(sandbox.url, { update: 3, seed: 1 });
  const config = checkedSettings(settings, 'source');
  const ahead = { ...systemClock, now: () => now + 900 };
  const service = await startKeeper({ config, clock: ahead, log: createLog('fatal'), fetching: true });
  const from = now + 30_000;
  const first = await service.keeper.run({ kind: 'delta', from }, new AbortController().signal);
  await service.stop();
  const second = await runUnder(ahead, settings, 'delta');
  expect(first).toMatchObject({ updated: 3, evidence: { deltas: 2 } });
  expect(second).toMatchObject({ updated: 0 });
  expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
});

it('an unfinished run that began a day ahead of the clock is given up', async () => {
  const { db, settings } = await filled({ items: 30 });
  execute(db, `UPDATE runs SET state = 'reading', finished_at = NULL, started_at = ${Date.now() + 25 * HOUR}`);
  const next = await load(settings, 'full');
  expect(next).toMatchObject({ id: 2, state: 'complete' });
});

it('a sink that failed under a clock two hours ahead is retried after its pause', { tags: ['slow'] }, async () => {
  const { sandbox, directory, db, settings } = await place({ items: 5 });
  const file = join(directory, 'out.jsonl');
  const sink = { ...settings, CATCHWORD_SINK_OUT: `jsonl:${file}`, LOG_LEVEL: 'info' };
  await load(settings, 'full');
  const lines = () => readFileSync(file, 'utf8').split('\n').length - 1;
  const first = start(['relay'], sink, directory);
  await first.shows('sink is open');
  await expect.poll(lines).toBe(5);
  await first.stop();
  await mutate(sandbox.url, { update: 3, seed: 1 });
  await runUnder(systemClock, settings, 'delta');
  const ahead = Date.now() + 2 * HOUR;
  execute(db, `UPDATE sinks SET error = 'no answer', error_at = ${ahead}, retry_at = ${ahead + 6_000}`);
  const second = start(['relay'], sink, directory);
  await second.shows('sink is paused after a failure');
  await expect.poll(lines, { timeout: 60_000 }).toBe(8);
  expect((await second.stop()).code).toBe(0);
});
