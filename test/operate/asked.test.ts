import { CatchwordError } from '@catchword/base/errors';
import { execute, query } from '@catchword/testing/sqlite';
import { createHandClock } from '@catchword/testing/test-clocks';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { startKeeper } from '../../src/cli/roles/pipeline.ts';
import { hastyClock, until } from '../../src/contract/harness.ts';
import { type AskedOptions, createDecisionQueue } from '../../src/operate/decisions/decision-queue.ts';
import { decide } from '../../src/operate/decisions/submit-decision.ts';
import { startRunQueue } from '../../src/operate/schedule/run-queue.ts';
import type { NewAction } from '../../src/store/rows/decision-rows.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { startService } from '../support/cli.ts';
import { runHere as cli } from '../support/in-process.ts';
import { expectExactLog } from '../support/mirror.ts';
import type { Place } from '../support/place.ts';
import { endOf, held, QUIET, reading } from './daemon.ts';

const HOUR = 3_600_000;
const NEVER = new AbortController().signal;

/** A process that keeps the mirror, as far as decisions are concerned. */
async function keeping({ settings }: Place, given: Partial<AskedOptions> = {}) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'trace' }, { write: (text: string) => void lines.push(JSON.parse(text) as never) });
  const config = checkedSettings(settings, 'source');
  const kept = await startKeeper({ config, clock: hastyClock, log, fetching: true });
  onTestFinished(() => kept.stop());
  const { store, keeper } = kept;
  const decisions = createDecisionQueue({ store, keeper, clock: hastyClock, log, lookUp: async () => null, ...given });
  return { decisions, store, lines };
}

/** The same for a mirror whose run 2 holds 20 removals. */
async function heldAndKept(given?: Partial<AskedOptions>) {
  const here = await held();
  return { here, ...(await keeping(here, given)) };
}

function ask(store: Store, action: string, target: string, at = Date.now()): number {
  const asked: NewAction = {
    who: 'a test',
    action,
    target,
    argument: null,
    at,
    state: 'asked',
    outcome: null,
    endedAt: null,
  };
  store.request(({ actions }) => actions.add(asked));
  return store.actions.list(1)[0]?.id ?? 0;
}

it('carries out what a command asks for while the command waits', async () => {
  const { here, decisions, store } = await heldAndKept();
  store.daemonLease.acquire(Date.now());
  const approving = cli(['approve', '2'], here.settings, here.directory);
  await until('the command has asked', () => store.actions.asked().length === 1);
  await decisions.next()?.work(NEVER);
  const { code, stdout, stderr } = await approving;
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'run 2 is approved: 20 products removed\n' });
  expect(stderr).toMatch(/process \d+ on \S+ carries it out when it makes no run/);
  expect(store.actions.list(9)).toMatchObject([{ action: 'approve', state: 'done' }]);
});

it('leaves nothing asked by a command that is interrupted', async () => {
  const { here, store } = await heldAndKept();
  store.daemonLease.acquire(Date.now());
  const stopping = new AbortController();
  const rejecting = cli(['reject', '2'], here.settings, here.directory, { signal: stopping.signal });
  await until('the command has asked', () => store.actions.asked().length === 1);
  stopping.abort();
  expect((await rejecting).code).not.toBe(0);
  expect(store.actions.list(9)).toMatchObject([
    { state: 'failed', outcome: expect.stringContaining('interrupted') as string },
  ]);
  expect(store.runs.get(2)?.state).toBe('held');
});

it('carries decisions out in the order of asking', async () => {
  const { decisions, store } = await heldAndKept();
  for (const [action, target] of [
    ['approve', '2'],
    ['undo', '2'],
    ['start', 'delta'],
    ['reject', '2'],
  ] as const) {
    ask(store, action, target);
  }
  expect(decisions.look()).toBe(true);
  for (let next = decisions.next(); next !== null; next = decisions.next()) await next.work(NEVER);
  expect(decisions.look()).toBe(false);
  expect(store.actions.list(9).reverse()).toMatchObject([
    { state: 'done', outcome: 'run 2 is approved: 20 products removed' },
    { state: 'done', outcome: 'restored 20 products that run 2 removed' },
    { state: 'done', outcome: 'run 3 started' },
    { state: 'failed', outcome: expect.stringContaining('run 2 is complete') as string },
  ]);
  expect(ask(store, 'undo', '1')).toBe(5);
  expect(decisions.look()).toBe(true);
});

it('two processes that take the same decision do nothing twice', async () => {
  const here = await held();
  const [one, other] = [await keeping(here), await keeping(here)];
  ask(one.store, 'approve', '2');
  const both = [one.decisions.next(), other.decisions.next()];
  for (const next of both) await next?.work(NEVER);
  expect(one.store.actions.get(1)).toMatchObject({ outcome: 'run 2 is approved: 20 products removed' });

  ask(one.store, 'start', 'full');
  const starts = [one.decisions.next(), other.decisions.next()];
  expect(await starts[0]?.work(NEVER)).toMatchObject({ id: 3 });
  await expect(starts[1]?.work(NEVER)).rejects.toMatchObject({ code: 'RUN_CANCELLED' });
  expect(one.store.runs.list(9)).toHaveLength(3);
  expect(one.store.runs.unfinished()).toBeUndefined();
  expect(one.store.actions.get(2)).toMatchObject({ state: 'done', outcome: 'run 3 started' });
  expectExactLog(here.db);
});

it('waits while another process makes a run', async () => {
  const { here, decisions, store } = await heldAndKept();
  const other = openStore(here.db);
  onTestFinished(() => other.close());
  const leased = other.keeperLease.acquire(Date.now());
  ask(store, 'reject', '2');
  ask(store, 'start', 'full');
  expect(decisions.next()).toBeNull();
  expect(decisions.look()).toBe(true);
  leased.release();
  await decisions.next()?.work(NEVER);
  expect(store.actions.get(1)).toMatchObject({ outcome: 'run 2 is rejected: nothing is removed' });
});

it('keeps a decision asked if the process stops before it was made', async () => {
  const here = await held();
  const stop = new AbortController();
  const interrupted = async (): Promise<never> => {
    stop.abort();
    throw new CatchwordError('INTERRUPTED', 'interrupted; nothing was decided');
  };
  const first = await keeping(here, { lookUp: interrupted });
  ask(first.store, 'approve', '2');
  await first.decisions.next()?.work(stop.signal);
  expect(first.store.actions.get(1)).toMatchObject({ state: 'asked', outcome: null, endedAt: null });
  const second = await keeping(here);
  await second.decisions.next()?.work(NEVER);
  expect(second.store.actions.get(1)).toMatchObject({ state: 'done' });
  expectExactLog(here.db);
});

it('ends a decision that fails in an unexpected way, so that it is not tried for ever', async () => {
  const broken = async (): Promise<never> => {
    throw new TypeError('a bug');
  };
  const { decisions, store, lines } = await heldAndKept({ lookUp: broken });
  ask(store, 'approve', '2');
  await decisions.next()?.work(NEVER);
  expect(store.actions.get(1)).toMatchObject({
    state: 'failed',
    outcome: "it failed inside catchword: see catchword's log",
  });
  expect(lines.find(({ msg }) => msg === 'a decision of an operator failed')).toMatchObject({ reason: 'a bug' });
  expect(store.runs.get(2)).toMatchObject({ state: 'held' });
  ask(store, 'adopt', '2');
  expect(decisions.next()).toBeNull();
  expect(store.actions.get(2)).toMatchObject({ outcome: 'this version of catchword cannot carry it out' });
});

it('decisions asked more than an hour ago, or dated by a clock that was ahead, are not carried out', async () => {
  const { decisions, store } = await heldAndKept();
  ask(store, 'approve', '2', Date.now() - HOUR - 1_000);
  ask(store, 'reject', '2', Date.now() + HOUR + 60_000);
  expect(decisions.next()).toBeNull();
  for (const id of [1, 2]) {
    expect(store.actions.get(id)).toMatchObject({
      state: 'failed',
      outcome: 'it waited longer than an hour, and was not carried out',
    });
  }
  expect(store.runs.get(2)).toMatchObject({ state: 'held' });
});

it('records why a run could not be started', async () => {
  const here = await held();
  const keeper = {
    run: async (): Promise<never> => {
      throw new CatchwordError('SOURCE_AUTH', 'the key was refused', { hint: 'Check it.' });
    },
  };
  const { decisions, store } = await keeping(here, { keeper });
  ask(store, 'start', 'full');
  await expect(decisions.next()?.work(NEVER)).rejects.toMatchObject({ code: 'SOURCE_AUTH' });
  expect(store.actions.get(1)).toMatchObject({ state: 'failed', outcome: 'the key was refused. Check it.' });
});

it('records a start and plans its run in one transaction', async () => {
  const { here, decisions, store } = await heldAndKept();
  ask(store, 'start', 'full');
  execute(
    here.db,
    `CREATE TRIGGER crash BEFORE UPDATE ON actions BEGIN SELECT raise(ABORT, 'the process ends here'); END`,
  );
  await expect(decisions.next()?.work(NEVER)).rejects.toThrow();
  execute(here.db, 'DROP TRIGGER crash');
  expect(store.runs.list(9)).toHaveLength(2);
  expect(store.actions.get(1)).toMatchObject({ state: 'asked' });
  await decisions.next()?.work(NEVER);
  expect(store.actions.get(1)).toMatchObject({ outcome: 'run 3 started' });
  expect(store.runs.list(9)).toHaveLength(3);
});

it('approves once if the daemon is killed while it looks the products up', { tags: ['slow'] }, async () => {
  const here = await held({ CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid', CATCHWORD_RATE_LIMIT: '20/s' }, 5);
  const env = { ...here.settings, ...QUIET, CATCHWORD_HTTP_PORT: 'off', LOG_LEVEL: 'info' };
  const first = startService(['daemon'], env, here.directory);
  await first.shows('"msg":"started"');
  const store = reading(here.db);
  const before = here.sandbox.requests.length;
  decide(store, { who: 'a test', action: 'approve', target: '2', argument: null }, Date.now());
  await until('it looks products up', () => here.sandbox.requests.length > before + 2);
  await first.stop('SIGKILL');
  expect(store.actions.get(1)).toMatchObject({ state: 'asked' });
  expect(store.runs.get(2)).toMatchObject({ state: 'held' });
  const second = startService(['daemon'], env, here.directory);
  expect(await endOf(store, 1)).toMatchObject({ state: 'done', outcome: 'run 2 is approved: 20 products removed' });
  expect(query(here.db, `SELECT vbid FROM change_log WHERE op = 'removed'`)).toHaveLength(20);
  expectExactLog(here.db);
  expect((await second.stop()).code).toBe(0);
});

it('tries a decision that another writer keeps waiting again later, not at once', async () => {
  const busy = async (): Promise<never> => {
    throw new CatchwordError('MIRROR_BUSY', 'another process writes');
  };
  const { decisions, store } = await heldAndKept({ lookUp: busy });
  ask(store, 'approve', '2');
  let tries = 0;
  const counting = { next: () => (tries++ < 9 ? decisions.next() : null) };
  const log = pino({ level: 'silent' });
  const keeper = { run: busy, resume: busy, adopt: busy };
  const clock = createHandClock(Date.now());
  const runs = startRunQueue({ keeper, store, clock, log, decisions: counting });
  for (let turn = 0; turn < 5; turn++) await clock.pass(1);
  await runs.stop();
  expect(tries).toBe(1);
  expect(store.actions.get(1)).toMatchObject({ state: 'asked' });
});
