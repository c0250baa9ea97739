import { type Digests, SinkError, type SinkEvent } from '@catchword/sink-kit/sink';
import { digestOf } from '@catchword/sink-kit/store-digest';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { openHarness, until } from '../../src/contract/harness.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { post } from '../http/browser-requests.ts';
import { serve } from '../http/place.ts';
import { runHere } from '../support/in-process.ts';

/** A store in memory that can be compared, without sums of its own. */
function shop() {
  const products = new Map<string, string>();
  const state = { isDown: false, isAsked: false, refuses: false, reading: Promise.resolve() };
  const apply = (events: readonly Pick<SinkEvent, 'vbid' | 'body'>[]): void => {
    if (state.isDown) throw new SinkError('unavailable', 'it is down');
    for (const { vbid, body } of events) {
      if (body === null) products.delete(vbid);
      else products.set(vbid, body);
    }
  };
  const digests: Digests = { digestOf: ({ body }) => digestOf(body ?? '') };
  async function* list() {
    state.isAsked = true;
    await state.reading;
    if (state.isDown) throw new SinkError('unavailable', 'it is down');
    // A store may return a product twice.
    const all = [...products].map(([vbid, body]) => ({ vbid, digest: digestOf(body) }));
    yield [...all, ...all.slice(0, 1)];
  }
  async function repair(events: readonly SinkEvent[], extra: readonly string[]): Promise<void> {
    if (state.refuses) throw new SinkError('refused', 'a trigger rejects it');
    apply([...events, ...extra.map((vbid) => ({ vbid, body: null }))]);
  }
  return { products, state, apply, list, digests, repair };
}

/** A mirror of 10 products and a relay that feeds a store in memory. */
async function scene(can: 'repair' | 'list' | 'nothing' = 'repair', url = 'jsonl:shop.jsonl') {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  const directory = temporaryDirectory();
  const env = {
    CATCHWORD_BASE_URL: 'http://service.example',
    CATCHWORD_DB: bench.store.path,
    CATCHWORD_SINK_SHOP: url,
  };
  const [setting] = checkedSettings(env, 'nothing').sinks;
  if (setting === undefined) throw new Error('the setting is missing');
  const { products, state, apply, list, digests, repair } = shop();
  const config = {
    ...sinkConfig(setting),
    make: async () => ({
      batch: { events: 4, chars: 1_000 },
      open: async () => null,
      deliver: async (events: readonly SinkEvent[]) => apply(events),
      close: async () => {},
      check: async () => '',
      ...(can !== 'nothing' && { list, digests }),
      ...(can === 'repair' && { apply: repair }),
    }),
  };
  bench.change(Array.from({ length: 10 }, (_, at) => ({ vbid: `P${at}`, body: `{"vbid":"P${at}"}` })));
  const start = () => bench.start(config, { removalLimit: () => 2 });
  start();
  const row = () => bench.store.sinks.get('shop');
  await until('the store is filled', () => row()?.cursor === 10 && (can !== 'repair' || row()?.fillEnd === 10));
  state.isAsked = false;
  const command = (...args: string[]) => runHere(['sink', ...args], env, directory);
  return { bench, env, directory, products, state, row, start, command };
}

it('sink verify prints what differs, repairs it, and exits with 0, 3 or 5', async () => {
  const { products, command } = await scene();
  const first = await command('verify', 'shop');
  expect(first.stdout).toBe('shop, as of change 10 (keys and whole values): 0 differ, 0 missing, 0 extra, 10 equal\n');
  expect(first.code).toBe(0);
  products.set('P1', '{}').set('E0', '').delete('P2');
  const found = await command('verify', 'shop', '--json');
  expect(found.code).toBe(3);
  const examples = [
    { vbid: 'P1', difference: 'differing', differs: ['JSON'] },
    { vbid: 'P2', difference: 'missing', differs: [] },
    { vbid: 'E0', difference: 'extra', differs: [] },
  ];
  const counts = { same: 8, differing: 1, missing: 1, extra: 1, repaired: 0, held: 0, not_judged: 0, remaining: 3 };
  expect(JSON.parse(found.stdout)).toMatchObject({ ...counts, deep: true, cursor: 10, error: null, examples });
  expect((await command('list')).stdout).toContain('To repair it: npx catchword sink verify shop --deep --repair');
  expect((await command('verify', 'shop', '--repair')).code).toBe(0);
  expect([...products.keys()].sort()).toEqual(Array.from({ length: 10 }, (_, at) => `P${at}`));
  products.set('E1', '').set('E2', '').set('E3', '');
  const held = await command('verify', 'shop', '--repair');
  expect(held.code).toBe(5);
  expect(held.stdout).toContain('To remove them: npx catchword sink verify shop --repair --extra');
  expect((await command('verify', 'shop', '--repair', '--extra')).code).toBe(0);
  expect(products.size).toBe(10);
  expect((await command('verify', 'shop', '--extra')).code).toBe(2);
});

it('sink verify says why a store cannot be compared, and leaves no request behind', async () => {
  const { bench, state, row, start, command } = await scene();
  state.isDown = true;
  const down = await command('verify', 'shop');
  expect(down).toMatchObject({ code: 1 });
  expect(down.stderr).toContain('the store of shop was not compared: it is down');
  state.isDown = false;
  await until('it runs again', () => row()?.retryAt === null);
  await bench.stop();
  const alone = await command('verify', 'shop');
  expect(alone.stderr).toContain('no daemon or relay is running. Start one: npx catchword daemon');
  expect(row()?.checkAsked).toBeNull();
  bench.store.request(({ sinks }) => sinks.setState(row()?.id ?? 0, 'paused'));
  start();
  await until('the relay runs', () => bench.store.relayLease.holder(Date.now()) !== null);
  expect((await command('verify', 'shop')).stderr).toContain('it is paused. See: npx catchword sink list');
});

it('a repair under way is not lost when somebody asks for a comparison meanwhile', async () => {
  const { bench, products, state, command, row } = await scene();
  products.delete('P2');
  let read = () => {};
  state.reading = new Promise((resolve) => {
    read = resolve;
  });
  const repair = command('verify', 'shop', '--deep', '--repair');
  await until('it is asked for', () => row()?.checkAsked !== null);
  const asked = row()?.checkAsked?.id;
  bench.store.request((writer) => changeSink(writer, 'verify', 'shop', null, 0));
  expect(row()?.checkAsked?.id).toBe(asked);
  read();
  expect((await repair).code).toBe(0);
  expect(products.has('P2')).toBe(true);
});

it('a repair and a comparison that asks for more are both done, whichever ends first', async () => {
  const { bench, products, state, command, row } = await scene();
  products.delete('P2');
  let read = () => {};
  state.reading = new Promise((resolve) => {
    read = resolve;
  });
  const repair = command('verify', 'shop', '--repair');
  await until('it is asked for', () => row()?.checkAsked !== null);
  bench.store.request((writer) => changeSink(writer, 'verify-deep', 'shop', null, 0));
  expect(row()?.checkAsked).toMatchObject({ deep: true, repair: true });
  read();
  const { code, stderr } = await repair;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  await until('both were done', () => row()?.checkAsked === null);
  expect(row()?.checked).toMatchObject({ deep: true, repair: true, error: null });
  expect(products.has('P2')).toBe(true);
});

it('a repair before which somebody asked for a comparison is done, and not withdrawn with it', async () => {
  const { bench, env, directory, products, row } = await scene();
  products.delete('P3');
  bench.store.request((writer) => changeSink(writer, 'verify-deep', 'shop', null, 0));
  const { code } = await runHere(['sink', 'verify', 'shop', '--repair'], env, directory);
  expect(code).toBe(0);
  expect([products.has('P3'), row()?.checkAsked]).toEqual([true, null]);
});

/** A scene whose store does not answer until `read` is called, and commands that are interrupted. */
async function interrupted() {
  const here = await scene();
  let read = () => {};
  here.state.reading = new Promise((resolve) => {
    read = resolve;
  });
  const start = (...options: string[]) => {
    const interrupt = new AbortController();
    const { signal } = interrupt;
    const ended = runHere(['sink', 'verify', 'shop', ...options], here.env, here.directory, { signal });
    return { ended, interrupt: () => interrupt.abort() };
  };
  const asked = () => here.row()?.checkAsked;
  return { ...here, start, asked, read };
}

it('sink verify that is interrupted does not report a defect, withdraws a repair, and leaves a comparison', async () => {
  const { start, asked, read, row } = await interrupted();
  const repair = start('--repair');
  await until('it is asked for', () => asked() !== null);
  repair.interrupt();
  const { code, stderr } = await repair.ended;
  expect({ code, stderr }).toEqual({ code: 130, stderr: 'error interrupted\n' });
  expect(asked()).toBeNull();
  // Another command may wait for the same comparison.
  const comparison = start();
  await until('it is asked for', () => asked() !== null);
  const id = asked()?.id;
  comparison.interrupt();
  expect((await comparison.ended).code).toBe(130);
  expect(asked()?.id).toBe(id);
  read();
  await until('it was compared', () => row()?.checked?.id === id);
});

it('sink verify that is interrupted puts back the comparison that its repair replaced', async () => {
  const { bench, state, products, start, asked, read, row } = await interrupted();
  for (const vbid of ['E1', 'E2', 'E3']) products.set(vbid, '');
  bench.store.request((writer) => changeSink(writer, 'verify', 'shop', null, 0));
  const earlier = asked();
  await until('it is under way', () => state.isAsked);
  const repair = start('--repair', '--extra');
  await until('the repair is asked for', () => asked()?.removesAll === true);
  repair.interrupt();
  expect((await repair.ended).code).toBe(130);
  expect(asked()).toEqual(earlier);
  read();
  await until('it was compared', () => asked() === null);
  expect(row()?.checked).toMatchObject({ id: earlier?.id, repair: false });
  expect(products.has('E1')).toBe(true);
});

it('sink verify whose repair somebody withdraws does not take a comparison for it', async () => {
  const { bench, row, state, start, asked, read } = await interrupted();
  bench.store.request((writer) => changeSink(writer, 'verify', 'shop', null, 0));
  const earlier = asked();
  await until('it is under way', () => state.isAsked);
  const repair = start('--repair');
  await until('the repair is asked for', () => asked()?.repair === true);
  bench.store.request(({ sinks }) => sinks.askCheck(row()?.id ?? 0, earlier ?? null));
  expect((await repair.ended).stderr).toContain('somebody has withdrawn the request');
  read();
});

it('sink verify says that a module has no list, and does not make a problem of it', async () => {
  const { env, directory, command } = await scene('nothing', 'module:shop.mjs');
  const { code, stderr } = await command('verify', 'shop');
  expect({ code, stderr }).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('the store of shop was not compared: its module has no list'),
  });
  expect((await command('list')).stdout).not.toContain('verify');
  const status = await runHere(['status', '--json'], env, directory);
  expect(JSON.parse(status.stdout).problems).not.toContain('differs:shop');
});

it('sink verify does not make a problem of a store that can never be compared', async () => {
  const { command, row } = await scene('nothing', 'webhook+https://shop.example/hook');
  const { code, stderr } = await command('verify', 'shop');
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('catchword cannot read what a receiver has stored'),
  });
  expect(row()).toMatchObject({ checked: null, checkAsked: null });
});

it('the page of a sink compares its store, and repairs it', async () => {
  const { bench, products, row } = await scene();
  products.set('P1', '{}');
  const { web } = await serve(bench.store.path);
  expect((await post(web, '/actions', { action: 'verify-deep', target: 'shop' })).status).toBe(303);
  await until('it was compared', () => row()?.checked !== null);
  const page = await (await fetch(`${web.url}/sinks/shop`)).text();
  expect(page).toContain('1 differ, 0 missing, 0 extra, 9 equal');
  expect(page).toContain('value="repair-deep"');
  expect((await post(web, '/actions', { action: 'repair-deep', target: 'shop' })).status).toBe(303);
  await until('it is repaired', () => products.get('P1') === '{"vbid":"P1"}');
});

it('sink verify names the first products that a store refuses if it refuses more than 20, and deliveries go on', async () => {
  const { bench, products, state, row, command } = await scene();
  bench.change(Array.from({ length: 20 }, (_, at) => ({ vbid: `Q${at}`, body: '{}' })));
  await until('the store has them', () => row()?.cursor === 30);
  state.refuses = true;
  products.clear();
  const { code, stderr } = await command('verify', 'shop', '--repair');
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /was not fully repaired: the store refuses more than 20 of the products, such as P\d, P\d, P\d: a trigger rejects it\. Look there/,
  );
  expect(row()).toMatchObject({ state: 'running', error: null, retryAt: null });
});

it('sink verify quotes keys that look like another one', async () => {
  const { products, command } = await scene();
  products.set('E 1', '').set('P1 ', '').set('\tP1', '').set('P1\u009b', '').set('P"1', '').set('"P1 "', '');
  const { stdout } = await command('verify', 'shop');
  expect(stdout.split('\n').slice(1, 7)).toEqual([
    '  extra      E 1',
    '  extra      "P1 "',
    '  extra      "\\tP1"',
    '  extra      "P1\\u009b"',
    '  extra      P"1',
    '  extra      "\\"P1 \\""',
  ]);
});

it('the page of a sink does not offer to repair a store that can only be compared, and says why', async () => {
  const { bench, products, command } = await scene('list');
  products.set('P1', '{}');
  expect((await command('verify', 'shop')).code).toBe(3);
  const page = await (await fetch(`${(await serve(bench.store.path)).web.url}/sinks/shop`)).text();
  expect(page).toContain('It cannot be repaired: events are only added to it.');
  expect(page).toContain('value="verify-deep"');
  expect(page).not.toContain('value="repair-deep"');
});
