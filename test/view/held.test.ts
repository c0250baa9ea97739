import { describe, expect, it, onTestFinished } from 'vitest';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { SINK_NAME, until } from '../../src/relay/contract/harness.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { compileView, type View, viewText } from '../../src/view/view.ts';
import { type TestMirror, temporaryMirror } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';

const SELECTION = '{}';

function where(text: string): View {
  return compileView(viewText(text, undefined), { where: 'WHERE', fields: 'FIELDS' });
}

function shop(count: number, price: string, from = 0) {
  return Array.from({ length: count }, (_, index) => {
    const vbid = `P${from + index}`;
    return { vbid, body: `{"vbid":"${vbid}","title":"t${index}","price":${price}}` };
  });
}

/** A store in memory that got so many products, each with a price. */
async function fedShop(count: number, view: View | null = null) {
  const mirror = temporaryMirror();
  const store = memory();
  onTestFinished(() => mirror.stop());
  mirror.change(shop(count, '1'));
  const limits = { removalLimit: () => 150 };
  mirror.start(store.config({ view }), limits);
  await mirror.caughtUp();
  return {
    mirror,
    store,
    restart: async (next: View | null) => {
      await mirror.stop();
      mirror.start(store.config({ view: next }), limits);
    },
    decide: (action: 'release' | 'release-newest' | 'resume' | 'retry') =>
      mirror.store.request((writer) => changeSink(writer, action, SINK_NAME, null, 0)),
    held: () => until('the sink is held', () => mirror.sink().state === 'held'),
    products: () => {
      const found = new Map<string, string>();
      for (const { vbid, body } of store.rows) {
        if (body === null) found.delete(vbid);
        else found.set(vbid, body);
      }
      return found;
    },
  };
}

/** Records changes as an unusual run does. @returns its number */
function unusualRun({ store, change }: TestMirror, versions: ReturnType<typeof shop>): number {
  const from = store.changes.lastSeq() + 1;
  const run = writeUnder(store.keeperLease, Date.now(), ({ runs }) => {
    const id = runs.create({ kind: 'delta', from: null, startedAt: 0, tick: null, selection: SELECTION });
    const about = { from, field: 'price', products: versions.length, living: 300 };
    runs.noteLosses(id, { price: versions.length }, about);
    return id;
  });
  change(versions);
  return run;
}

describe('a changed view that would remove too much', () => {
  it('is held, sends nothing, and goes on when it is approved', async () => {
    const { mirror, store, restart, held, decide, products } = await fedShop(300);
    const before = store.rows.length;
    await restart(where("title = 't1'"));
    await held();
    expect(mirror.sink().held).toEqual({
      why: 'view',
      where: "title = 't1'",
      fields: null,
      forecast: { has: 300, matching: 1, created: 0, updated: 0, removed: 299, failed: 0 },
      isApproved: false,
    });
    mirror.change([{ vbid: 'P1', body: '{"vbid":"P1","title":"t1","price":2}' }]);
    expect(store.rows.length).toBe(before);
    expect(() => decide('resume')).toThrow('contract is held');
    expect(() => decide('release-newest')).toThrow('--newest is for a sink that an unusual run holds');
    decide('release');
    await until('the store has the view', () => products().size === 1);
    expect(mirror.sink()).toMatchObject({ state: 'running', held: null });
    expect(() => decide('release')).toThrow('contract is not held: it is running');
  });

  it('is released when the setting is put back, and judged again when it changes again', async () => {
    const { mirror, store, restart, held, products } = await fedShop(300);
    const before = store.rows.length;
    await restart(where('abs(title) > 9223372036854775807 OR 0'));
    await held();
    await restart(null);
    await until('the sink runs', () => mirror.sink().state === 'running');
    await mirror.caughtUp();
    expect(store.rows.length).toBe(before);
    await restart(where('0'));
    await held();
    await restart(where("title <> 't7'"));
    await until('the store has the view', () => products().size === 299);
    expect(store.rows.slice(before).map(({ vbid, body }) => [vbid, body])).toEqual([['P7', null]]);
  });

  it('is not held if it removes little', async () => {
    const { restart, products } = await fedShop(300);
    await restart(where("title NOT LIKE 't1%'"));
    await until('the store has the view', () => products().size === 189);
  });
});

describe('an unusual run', () => {
  it('holds a sink before its changes, which an approval delivers', async () => {
    const { mirror, held, decide, products } = await fedShop(300);
    const run = unusualRun(mirror, shop(300, 'null'));
    await held();
    expect(mirror.sink().held).toEqual({
      why: 'run',
      run,
      reason: `run ${run}, which comes next, emptied price of 300 of 300 products`,
    });
    expect([...products().values()].filter((body) => body.includes('null'))).toEqual([]);
    expect(mirror.sink().cursor).toBe(300);
    decide('release');
    await mirror.caughtUp();
    expect([...products().values()].filter((body) => body.includes('null')).length).toBe(300);
    unusualRun(mirror, shop(300, '{}'));
    await held();
    expect(mirror.sink().cursor).toBe(600);
  });

  it.each([
    ['whole products', null],
    ['a view', where("title <> 't3'")],
  ])('is skipped with --newest: what differs is sent once, as it is now (%s)', async (_what, view) => {
    const { mirror, store, held, decide, products } = await fedShop(300, view);
    const before = store.rows.length;
    unusualRun(mirror, shop(300, 'null'));
    await held();
    mirror.change(shop(295, '1'));
    mirror.change([...shop(2, '7', 295), { vbid: 'P297', body: null }, ...shop(1, '1', 298), ...shop(2, '1', 299)]);
    decide('release-newest');
    await mirror.caughtUp();
    expect(store.rows.slice(before).map(({ vbid, body }) => [vbid, body && JSON.parse(body)])).toEqual([
      ['P295', { vbid: 'P295', title: 't0', price: 7 }],
      ['P296', { vbid: 'P296', title: 't1', price: 7 }],
      ['P297', null],
      ['P298', { vbid: 'P298', title: 't0', price: 1 }],
      ['P299', { vbid: 'P299', title: 't0', price: 1 }],
      ['P300', { vbid: 'P300', title: 't1', price: 1 }],
    ]);
    mirror.change(shop(1, '9'));
    await mirror.caughtUp();
    expect(products().get('P0')).toContain('9');
  });

  it('does not hold a sink that is added later', async () => {
    const mirror = temporaryMirror();
    const store = memory();
    onTestFinished(() => mirror.stop());
    mirror.change(shop(300, '1'));
    unusualRun(mirror, shop(300, 'null'));
    mirror.start(store.config());
    await mirror.caughtUp();
    expect(store.rows.length).toBe(300);
  });
});
