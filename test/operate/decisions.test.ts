import { join } from 'node:path';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { query } from '@catchword/testing/sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hastyClock, until } from '../../src/contract/harness.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { openStore } from '../../src/store/store.ts';
import { serve } from '../http/place.ts';
import { webhookTarget } from '../relay/targets.ts';
import { addressOf, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, standIn, truthOf } from '../support/mirror.ts';
import { filled } from '../support/place.ts';
import { recordedChange } from '../support/recorded-change.ts';
import { daemonOn, decideOn, endOf, held, pageAt, post, QUIET, reading } from './daemon.ts';

/** Runs take long enough to look at them. */
const SLOW = { CATCHWORD_PER_PAGE: '5', CATCHWORD_RATE_LIMIT: '30/min' };

function ops(db: string, op: string): number {
  return query<{ n: number }>(db, `SELECT count(*) AS n FROM change_log WHERE op = '${op}'`)[0]?.n ?? 0;
}

describe('what an operator decides about a run on the page', () => {
  it('approves removals after looking the products up, and undoes them', async () => {
    const here = await held({ CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' });
    const { url, store, decided } = await daemonOn(here);
    const requestsBefore = here.sandbox.requests.length;
    expect(await decideOn(store, url, { action: 'approve', target: '2' })).toMatchObject({
      who: '127.0.0.1',
      action: 'approve',
      target: '2',
      argument: null,
      state: 'done',
      outcome: 'run 2 is approved: 20 products removed',
    });
    expect(here.sandbox.requests.length).toBeGreaterThanOrEqual(requestsBefore + 20);
    expect(ops(here.db, 'removed')).toBe(20);
    expect(catalogOf(here.db)).toEqual(await truthOf(here.sandbox.url));

    expect(await decided('undo', '2')).toEqual(['done', 'restored 20 products that run 2 removed']);
    expect(ops(here.db, 'restored')).toBe(20);
    expect(await (await fetch(`${url}/runs/2`)).text()).not.toContain('Undo its removals');
    expectExactLog(here.db);
  });

  it('rejects removals, and refuses a second decision with the reason', async () => {
    const here = await held();
    const { url, store, decided } = await daemonOn(here);
    const decisions = [
      post(url, { action: 'reject', target: '2' }),
      post(url, { action: 'approve', target: '2' }),
      post(url, { action: 'reject', target: '2' }),
    ];
    for (const response of await Promise.all(decisions)) expect(response.status).toBe(303);
    const rows = await Promise.all([1, 2, 3].map((id) => endOf(store, id)));
    expect(rows.filter(({ state }) => state === 'done')).toHaveLength(1);
    for (const { outcome } of rows.filter(({ state }) => state === 'failed')) {
      expect(outcome).toBe('run 2 is complete: it does not hold removals');
    }
    expectExactLog(here.db);
    expect((await decided('approve', '2'))[0]).toBe('failed');
    expect(await decided('undo', '99')).toEqual(['failed', 'run 99 does not exist']);
  });

  it('records why the lookups of an approval failed, and removes nothing', async () => {
    const here = await held({ CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' });
    const empty = await startSandbox({ items: 0 });
    onTestFinished(() => empty.stop());
    standIn(here.db, empty.url);
    const { store, decided } = await daemonOn(here, { CATCHWORD_BASE_URL: empty.url });
    expect(await decided('approve', '2')).toEqual([
      'failed',
      expect.stringContaining('the lookup finds nothing, not even products that should exist. Check'),
    ]);
    expect(store.runs.get(2)).toMatchObject({ state: 'held' });
    expect(ops(here.db, 'removed')).toBe(0);
  });

  it('a decision is answered by the run under way, waits until it ends, or cancels it', {
    tags: ['slow'],
  }, async () => {
    const here = await held();
    const { url, store, decided } = await daemonOn(here, SLOW);
    await decided('start', 'full');
    await until('run 3 reads', () => (store.runs.get(3)?.pages ?? 0) > 0);
    expect(await decided('start', 'delta')).toEqual(['done', 'run 3, which is under way, covers it']);
    await post(url, { action: 'undo', target: '1' });
    const waiting = store.actions.list(1)[0]?.id ?? 0;
    expect(await (await fetch(`${url}/actions`)).text()).toContain('waits until run 3 ends');
    expect(store.actions.get(waiting)).toMatchObject({ state: 'asked' });
    expect(await decided('cancel', '3')).toEqual([
      'done',
      expect.stringMatching(/^run 3 is cancelled \(\d+ applied pages? kept\)$/) as string,
    ]);
    expect(await endOf(store, waiting)).toMatchObject({
      state: 'done',
      outcome: 'run 1 removed nothing that could be restored',
    });
    expect(store.runs.get(3)).toMatchObject({ state: 'cancelled' });
    expect(await decided('cancel', '3')).toEqual(['failed', 'run 3 is already cancelled']);
  });

  it('resumes an unfinished run if that is enough', async () => {
    const here = await filled({ items: 60 }, { CATCHWORD_PER_PAGE: '5' });
    const stop = new AbortController();
    const reads = load({ ...here.settings, CATCHWORD_RATE_LIMIT: '1/s' }, 'full', stop.signal);
    const store = reading(here.db);
    await until('run 2 reads', () => (store.runs.get(2)?.pages ?? 0) > 0);
    stop.abort();
    await expect(reads).rejects.toMatchObject({ code: 'INTERRUPTED' });
    const writer = openStore(here.db);
    const asked = { who: 'a test', target: 'delta', argument: null, state: 'asked', outcome: null } as const;
    writer.request(({ actions }) => actions.add({ ...asked, action: 'start', at: Date.now(), endedAt: null }));
    writer.close();
    await daemonOn(here);
    const { outcome } = await endOf(store, 1);
    expect(outcome).toMatch(/^run 2, which (was unfinished, continues and|is under way,) covers it$/);
    await until('run 2 is complete', () => store.runs.get(2)?.state === 'complete');
    expect(store.runs.list(5)).toHaveLength(2);
  });
});

describe('without a daemon', () => {
  it('the page refuses at once what only a daemon can do, and says what to run', async () => {
    const here = await held();
    const { web } = await serve(here.db);
    const { store, decided } = pageAt(here.db, web.url);
    const commands: [string, string, string][] = [
      ['approve', '2', 'npx catchword approve 2'],
      ['reject', '2', 'npx catchword reject 2'],
      ['undo', '2', 'npx catchword runs undo 2'],
      ['start', 'full', 'npx catchword sync --full'],
      ['start', 'delta', 'npx catchword sync'],
    ];
    for (const [action, target, command] of commands) {
      expect(await decided(action, target)).toEqual(['failed', `no daemon is running; start it, or run: ${command}`]);
    }
    expect(store.runs.get(2)).toMatchObject({ state: 'held' });
  });

  it('a web role in a process of its own decides through the mirror, and the active daemon of two acts', {
    tags: ['slow'],
  }, async () => {
    const here = await held();
    const env = { ...here.settings, ...QUIET, LOG_LEVEL: 'info' };
    const web = startService(['web'], env, here.directory);
    const url = await addressOf(web);
    const active = startService(['daemon'], { ...env, CATCHWORD_HTTP_PORT: 'off' }, here.directory);
    await active.shows('"msg":"started"');
    const other = startService(['daemon'], { ...env, CATCHWORD_HTTP_PORT: 'off' }, here.directory);
    await other.shows('"msg":"standing by"');
    const { store, decided } = pageAt(here.db, url);
    expect(await decided('approve', '2')).toEqual(['done', 'run 2 is approved: 20 products removed']);
    expect(await active.shows('a decision of an operator has ended')).toContain('"what":"approve 2"');
    // The active one dies after a decision was asked: the other takes over, and acts.
    active.child.kill('SIGSTOP');
    await post(url, { action: 'undo', target: '2' });
    const id = store.actions.list(1)[0]?.id ?? 0;
    expect(store.actions.get(id)).toMatchObject({ state: 'asked' });
    await active.stop('SIGKILL');
    await other.shows('"msg":"took over"');
    expect(await endOf(store, id)).toMatchObject({
      state: 'done',
      outcome: 'restored 20 products that run 2 removed',
    });
    expect(catalogOf(here.db).size).toBe(60);
    expectExactLog(here.db);
  });
});

describe.skipIf(!redisAvailable)('with Redis', { tags: ['stores'] }, () => {
  it('the keeper role carries out what the web role records', { tags: ['slow'] }, async () => {
    const here = await held({ CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' });
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const env = { ...here.settings, ...QUIET, REDIS_URL: redis.url, LOG_LEVEL: 'info' };
    const web = startService(['web'], env, here.directory);
    const url = await addressOf(web);
    for (const role of ['keeper', 'fetcher']) await startService([role], env, here.directory).shows('"msg":"started"');
    const { store, decided } = pageAt(here.db, url);
    const requestsBefore = here.sandbox.requests.length;
    expect(await decided('approve', '2')).toEqual(['done', 'run 2 is approved: 20 products removed']);
    // Fetchers look the products up, with Redis as without it.
    expect(here.sandbox.requests.length - requestsBefore).toBeGreaterThanOrEqual(20);
    expect(await decided('start', 'full')).toEqual(['done', 'run 3 started']);
    await until('run 3 is complete', () => store.runs.get(3)?.state === 'complete');
    expectExactLog(here.db);
  });
});

/** A mirror, and a relay whose sink has refused the first of two events. */
async function refusing() {
  const here = await filled({ items: 2 });
  const hook = { refuses: 1 };
  const target = await webhookTarget(() => ({ status: hook.refuses-- > 0 ? 422 : 204 }), '&batch=1');
  onTestFinished(target.remove);
  const settings = {
    ...here.settings,
    CATCHWORD_SINK_SHOP: target.url,
    CATCHWORD_SINK_SHOP_SECRET: target.secret ?? '',
  };
  const { store, decided } = await daemonOn({ ...here, settings });
  await until('an event is parked', () => {
    const shop = store.sinks.get('shop');
    return shop?.cursor === 2 && store.sinks.parkedCount(shop.id) === 1;
  });
  return { hook, target, store, decided: (action: string, argument?: string) => decided(action, 'shop', argument) };
}

describe('what an operator decides about a sink on the page', () => {
  it('a decision about a sink is done at once, or recorded with the reason why it cannot be done', {
    tags: ['slow'],
  }, async () => {
    const { hook, target, store, decided } = await refusing();
    const state = () => store.sinks.get('shop')?.state;
    const id = () => store.sinks.get('shop')?.id ?? 0;
    expect(await decided('pause')).toEqual(['done', 'shop is paused']);
    expect(state()).toBe('paused');
    expect(await decided('pause')).toEqual(['failed', 'shop is not running: it is paused']);
    expect(await decided('resume')).toEqual(['done', 'shop resumes after change 2']);
    expect(state()).toBe('running');

    hook.refuses = 1;
    expect(await decided('retry')).toEqual(['done', 'shop gets 1 event again']);
    await until('it is refused again', () => store.sinks.parked(id(), 'refused').length === 1);
    expect(await decided('skip', '2')).toEqual(['failed', 'shop has not refused event 2']);
    expect(store.sinks.parked(id(), 'refused')).toHaveLength(1);
    expect(await decided('skip', '1')).toEqual([
      'done',
      '1 event skipped; later ones of the same products are delivered now',
    ]);
    expect(store.sinks.parked(id(), 'skipped')).toHaveLength(1);
    expect(await decided('skip-all')).toEqual(['done', 'shop has not refused any event']);

    const before = target.events.length;
    expect(await decided('replay', '2')).toEqual(['done', 'shop gets every change from 2 on']);
    const isBack = () => target.events.length > before && store.sinks.get('shop')?.cursor === 2;
    await until('the second event came again', isBack);
    expect(await decided('replay', '9')).toEqual([
      'failed',
      'shop has not had 9 yet: it is at 2. Replay from a change that was delivered already; later ones follow anyway.',
    ]);
    expect(await decided('replay', '')).toEqual([
      'done',
      'shop gets every product as of change 2, and then what follows',
    ]);
  });

  it('works without a daemon', async () => {
    const here = await filled({ items: 1 });
    const { web } = await serve(here.db);
    const { store, decided } = pageAt(here.db, web.url);
    writeUnder(store.relayLease, Date.now(), ({ sinks }) =>
      sinks.configure({ name: 'file', kind: 'jsonl', address: 'out', identity: 'out' }),
    );
    const add = 'To add one, set CATCHWORD_SINK_<NAME> and restart the daemon (or relay).';
    const none = `the mirror has no sink nowhere. Choose one of: file. ${add}`;
    expect(await decided('pause', 'nowhere')).toEqual(['failed', none]);
    expect(await decided('pause', 'file')).toEqual(['done', 'file is paused']);
    expect(store.sinks.get('file')).toMatchObject({ state: 'paused' });
  });
});

describe('commands', () => {
  it('record what they decide with the user, and what they refuse not', async () => {
    const here = await held();
    const settings = { ...here.settings, CATCHWORD_SINK_FILE: `jsonl:${join(here.directory, 'out.jsonl')}` };
    const store = reading(here.db);
    writeUnder(store.relayLease, Date.now(), ({ sinks }) => {
      sinks.configure({ name: 'file', kind: 'jsonl', address: 'out', identity: 'out' });
      const change = recordedChange({ seq: 1, at: 0, op: 'created', vbid: 'A' }, '{}');
      sinks.park(sinks.get('file')?.id ?? 0, { seq: 1, reason: 'it is poison', at: 0, change });
    });
    const run = async (code: number, ...args: string[]) => {
      const ended = await runHere(args, settings, here.directory, { clock: hastyClock });
      expect(ended.code, `${args.join(' ')}: ${ended.stderr}`).toBe(code);
      return ended.stdout.trimEnd();
    };
    const printed = [
      await run(0, 'approve', '2'),
      await run(0, 'runs', 'undo', '2'),
      await run(0, 'sink', 'pause', 'file'),
      await run(0, 'sink', 'resume', 'file'),
      await run(0, 'sink', 'retry', 'file'),
      await run(0, 'sink', 'skip', 'file', '--all'),
      await run(0, 'sink', 'replay', 'file'),
    ];
    await run(1, 'approve', '2');
    await run(1, 'reject', '2');
    await run(1, 'cancel', '2');
    await run(2, 'sink', 'skip', 'file', '7');
    await run(1, 'sink', 'pause', 'other');
    const rows = store.actions.list(50).reverse();
    expect(rows.map(({ action, target, argument }) => [action, target, argument])).toEqual([
      ['approve', '2', null],
      ['undo', '2', null],
      ['pause', 'file', null],
      ['resume', 'file', null],
      ['retry', 'file', null],
      ['skip-all', 'file', null],
      ['replay', 'file', 0],
    ]);
    expect(rows.map(({ outcome }) => outcome)).toEqual(printed);
    for (const row of rows) {
      expect(row).toMatchObject({ state: 'done', endedAt: expect.any(Number) as number });
      expect(row.who).toMatch(/^command, \S.*@\S+$/);
    }
  });

  it('record that a run is rejected or cancelled, also while a daemon runs', async () => {
    const here = await held();
    const store = reading(here.db);
    expect((await runHere(['reject', '2'], here.settings, here.directory)).code).toBe(0);
    const { decided } = await daemonOn(here, SLOW);
    await decided('start', 'full');
    await until('run 3 reads', () => (store.runs.get(3)?.pages ?? 0) > 0);
    const { stdout } = await runHere(['cancel', '3', '--json'], here.settings, here.directory);
    expect(JSON.parse(stdout)).toMatchObject({ id: 3, state: 'cancelled' });
    expect(store.actions.list(1)).toMatchObject([{ action: 'cancel', target: '3', state: 'done' }]);
    expect(store.actions.of('2', ['reject'], 5)).toMatchObject([{ outcome: 'run 2 is rejected: nothing is removed' }]);
  });
});
