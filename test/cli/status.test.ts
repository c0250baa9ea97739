import { hostname } from 'node:os';
import { systemClock } from '@catchword/base/clock';
import { createLog } from '@catchword/base/log';
import { execute } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { statusCommand } from '../../src/cli/commands/status-command.ts';
import { openHarness } from '../../src/contract/harness.ts';
import { showPresence } from '../../src/operate/schedule/standby.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { openStore } from '../../src/store/store.ts';
import { books } from '../relay/feeding.ts';
import { start } from '../support/cli.ts';
import { runCommand, shiftedClock } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { SELECTION } from '../support/mirror.ts';
import { filled, place } from '../support/place.ts';

async function statusText(settings: Record<string, string>, aheadMs = 0): Promise<string> {
  return (await runCommand(statusCommand, [], settings, shiftedClock(aheadMs))).stdout;
}

async function statusJson(settings: Record<string, string>, aheadMs = 0): Promise<Record<string, unknown>> {
  const { stdout } = await runCommand(statusCommand, ['--json'], settings, shiftedClock(aheadMs));
  return JSON.parse(stdout) as Record<string, unknown>;
}

it('status explains why the last run failed, and that the first full load has not finished', async () => {
  const { settings, db } = await place({ items: 50 });
  await expect(load({ ...settings, CATCHWORD_BASE_URL: 'http://127.0.0.1:1' }, 'full')).rejects.toThrow();
  const text = await statusText(settings);
  expect(text).toContain('complete   never: the first full load has not finished\n');
  expect(text).toMatch(
    /last run {3}1, full, failed, .* UTC, 0 pages\n {11}it failed: SOURCE_UNAVAILABLE: .*ECONNREFUSED/,
  );
  const lastRun = { state: 'failed', error: expect.stringContaining('ECONNREFUSED') as string };
  const never = { mirror: db, watermark: null, age_seconds: null, last_run: lastRun };
  expect(await statusJson(settings)).toMatchObject(never);
});

it('status shows the next runs and the next try while a daemon is alive', async () => {
  const { settings, db } = await filled({ items: 50 });
  const planned = { ...settings, CATCHWORD_FULL_CRON: '0 2 * * *', CATCHWORD_DELTA_CRON: 'off' };
  expect(await statusText(planned)).not.toContain('\nnext ');
  const store = openStore(db);
  onTestFinished(() => store.close());
  const now = Date.now();
  store.daemonLease.acquire(now);
  store.schedule.setRetry({ kind: 'full', at: now + 60_000, reason: 'the source does not answer' });
  expect(await statusText(planned)).toMatch(/\nnext {7}full load \d{4}-\d\d-\d\d 02:00:00 UTC, another try .* UTC\n/);
  expect(await statusJson(planned)).toMatchObject({
    next_full: expect.stringMatching(/T02:00:00\.000Z$/),
    next_delta: null,
    next_try: new Date(now + 60_000).toISOString(),
    retry_reason: 'the source does not answer',
  });
});

it('status shows an age of 0 after the clock was set back, and says that the clock is wrong', async () => {
  const { settings } = await filled({ items: 50 });
  const future = /complete .* UTC, 1[12] min \d+ s in the future: check the clock of this machine\n/;
  expect(await statusText(settings, -777_100)).toMatch(future);
  expect(await statusJson(settings, -777_100)).toMatchObject({ age_seconds: 0 });
  // A usual difference between two machines is not reported.
  expect(await statusText(settings, -50_000)).toContain('UTC, 0.0 s ago\n');
});

it('status shows how many removals are held, and why', async () => {
  const { settings } = await filled({ items: 50 });
  const reason = '2 removals are more than the limit of 1; the source announced 1 more, 3 in all';
  const why = { code: 'limit', removals: 2, limit: 1, announced: 1 } as const;
  const reasons = [{ code: 'held', why, verdict: null } as const];
  const store = openStore(settings.CATCHWORD_DB ?? '');
  writeUnder(store.keeperLease, Date.now(), ({ runs, removals }) => {
    runs.create({ kind: 'full', from: null, startedAt: Date.now(), tick: null, selection: SELECTION });
    removals.hold(2, [1, 2, 3]);
    const ended = { finishedAt: Date.now(), counts: runs.counts(2), reasons, error: null };
    runs.end(2, { state: 'held', proof: 'sealed', ...ended });
  });
  store.close();
  const held = `held       run 2: 3 removals to decide on (${reason}): npx catchword run 2\n`;
  expect(await statusText(settings)).toContain(held);
  expect(await statusJson(settings)).toMatchObject({ held: [2], held_runs: [{ run: 2, removals: 3, reason }] });
});

it('status shows the lag and the last error of every sink', async () => {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  bench.change(books(4, 1));
  writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) => {
    sinks.configure({ name: 'shop', kind: 'postgres', address: 'a', identity: 'a' });
    sinks.fail(sinks.get('shop')?.id ?? 0, 'PostgreSQL: permission denied (42501)', 0, Date.now() + 60_000);
  });
  execute(
    bench.store.path,
    "INSERT INTO parked (sink_id, seq, vbid, state, reason, at, change) SELECT id, 3, 'V', 'refused', 'too long', 1, '{}' FROM sinks",
  );
  const settings = { CATCHWORD_DB: bench.store.path, CATCHWORD_SINK_FILE: 'jsonl:out.jsonl' };
  const text = await statusText(settings);
  expect(text).toMatch(
    /sink {7}shop: retrying, 4 changes behind for .*, 1 event parked \(npx catchword sink parked shop\): PostgreSQL: permission denied \(42501\) \(1970-01-01 00:00:00 UTC\)\n/,
  );
  expect(text).toContain('sink       file: new, nothing is delivered before the daemon (or relay) starts\n');
  expect(await statusJson(settings)).toMatchObject({
    sinks: [
      { name: 'shop', state: 'retrying', lag_records: 4, parked: 1, error: 'PostgreSQL: permission denied (42501)' },
      { name: 'file', state: 'new', lag_records: null, error: null },
    ],
  });
});

it('a daemon is shown while it is alive, even without sinks and between runs', async () => {
  const { settings } = await filled({ items: 50 });
  expect(await statusText(settings)).toContain('daemon     no daemon is running\n');
  const never = { CATCHWORD_FULL_CRON: 'off', CATCHWORD_DELTA_CRON: 'off', LOG_LEVEL: 'info' };
  const daemon = start(['daemon'], { ...settings, ...never }, temporaryDirectory());
  await daemon.shows('"started"');
  const shown = `process ${daemon.child.pid} on ${hostname()}`;
  expect(await statusText(settings)).toContain(`daemon     ${shown}\n`);
  const { pid } = daemon.child;
  expect(await statusJson(settings)).toMatchObject({ daemon: { pid, host: hostname() }, running: null });
  await daemon.stop('SIGKILL');
  expect(await statusJson(settings)).toMatchObject({ daemon: null });
});

it('a daemon disappears from status when it stops, and another one is shown instead', async () => {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  const { store } = bench;
  for (const _ of ['the first', 'another one']) {
    const daemon = showPresence({ store, clock: systemClock, log: createLog('silent') });
    expect(store.daemonLease.holder(Date.now())).toMatchObject({ pid: process.pid });
    await daemon.stop();
    expect(store.daemonLease.holder(Date.now())).toBeNull();
  }
});

it('status says of a store that was repaired until when it is watched', async () => {
  const { settings, db } = await filled({ items: 3 });
  const store = openStore(db);
  onTestFinished(() => store.close());
  const now = Date.now();
  const shop = { name: 'shop', kind: 'postgres', address: 'db', identity: 'shop' };
  const message = 'The store of sink shop differs from its source.\n2 differ.';
  writeUnder(store.relayLease, now, ({ sinks }) => sinks.configure(shop));
  writeUnder(store.daemonLease, now, ({ episodes }) => episodes.begin('differs:shop', message, now, []));
  expect(await statusText(settings)).toMatch(
    /\nwrong {6}gone, watching for a few minutes|repaired, watching for a few minutes/,
  );
  execute(
    db,
    `UPDATE sinks SET checked = '${JSON.stringify({ at: now, differing: 0, missing: 0, extra: 0, repaired: 2, same: 3, held: 0, notJudged: 0, error: null, allows: 'repair', deep: true })}'`,
  );
  const until = new Date(now + 300_000).toISOString();
  expect(await statusText(settings)).toContain(
    `wrong      repaired, watching until ${until.slice(11, 19)} UTC: The store of sink shop differs from its source`,
  );
  expect(await statusJson(settings)).toMatchObject({ episodes: [{ gone: true, watched_until: until }] });
});
