import { systemClock } from '@catchword/base/clock';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SINK_NAME, until } from '../../src/contract/harness.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { heldSinkText } from '../../src/report/sink-report.ts';
import { compileView, type View, viewText } from '../../src/view/view.ts';
import { temporaryMirror } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';
import { runHere } from '../support/in-process.ts';
import { fedShop, shop, where } from './fed-shop.ts';
import { unusualRun, usualRun } from './unusual-run.ts';

describe('a view with which a sink begins', () => {
  const fields = (text: string): View => compileView(viewText(undefined, text), { where: 'WHERE', fields: 'FIELDS' });

  async function beginWith(view: View) {
    const mirror = temporaryMirror();
    const store = memory();
    onTestFinished(() => mirror.stop());
    mirror.change(shop(3, '1'));
    mirror.start(store.config({ view }));
    await until('the sink is held', () => mirror.sink().state === 'held');
    expect(heldSinkText(mirror.store, mirror.sink())?.reason).toContain('its view is new: ');
    expect(heldSinkText(mirror.store, mirror.sink())?.reason).toContain('no product has titel: did you mean title?');
    expect(store.rows).toEqual([]);
    return { mirror, store };
  }

  it('is held if it names a member wrongly, until it is corrected', async () => {
    const { mirror, store } = await beginWith(fields('vbid, titel'));
    await mirror.stop();
    await mirror.resume(store.config({ view: fields('vbid, title') }));
    expect(store.rows.map(({ body }) => body)).toContain('{"vbid":"P1","title":"t1"}');
    await until('it is over', () => mirror.sink().held === null);
  });

  it.each([
    ['a choice', fields('vbid, titel')],
    ['a filter', where("body->>'titel' = 't1'")],
  ])('is held if it is %s of a wrong member, once an empty mirror has products', async (_, view) => {
    const mirror = temporaryMirror();
    const store = memory();
    onTestFinished(() => mirror.stop());
    mirror.start(store.config({ view }));
    await until('the relay knows the sink', () => mirror.store.sinks.get(SINK_NAME) !== undefined);
    await systemClock.sleep(300);
    expect(mirror.sink()).toMatchObject({ state: 'running', held: null });
    mirror.change(shop(3, '1'));
    await until('the sink is held', () => mirror.sink().state === 'held');
    expect(heldSinkText(mirror.store, mirror.sink())?.reason).toContain('no product has titel: did you mean title?');
    expect(store.rows).toEqual([]);
  });

  it('goes on, although it names a member wrongly, when it is approved', async () => {
    const { mirror, store } = await beginWith(fields('vbid, titel'));
    mirror.store.request((writer) => changeSink(writer, 'release', SINK_NAME, null, 0));
    await mirror.caughtUp();
    expect(store.rows.map(({ body }) => body)).toContain('{"vbid":"P1"}');
  });
});

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
    expect(() => decide('release-newest')).toThrow('--newest is for a sink that a run holds');
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

  it('is not held if its filter names a member that no product has now', async () => {
    const { mirror, store, restart, products } = await fedShop(100);
    await restart(where("body->>'promo' = 1"));
    await until('the store has the view', () => products().size === 0);
    mirror.change([{ vbid: 'P7', body: '{"vbid":"P7","promo":1}' }]);
    await until('the store has the product', () => products().size === 1);
    await restart(compileView(viewText(undefined, 'titel'), { where: 'WHERE', fields: 'FIELDS' }));
    await until('a choice of such a member is held', () => mirror.sink().state === 'held');
    expect(store.rows).toHaveLength(201);
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

  it('is left out of what readers ask for with --approved, until no sink waits any more', async () => {
    const { mirror, held, decide } = await fedShop(300);
    unusualRun(mirror, shop(300, 'null'));
    await held();
    const directory = temporaryDirectory();
    const env = { CATCHWORD_DB: mirror.store.path, CATCHWORD_BASE_URL: 'http://service.example' };
    const read = async (args: string) => {
      const { stdout, code } = await runHere(args.split(' '), env, directory);
      expect(code).toBe(0);
      return stdout.trimEnd().split('\n');
    };
    const emptied = (lines: readonly string[]) => lines.filter((line) => line.includes('"price":null')).length;
    const approved = await read('export - --approved');
    expect([approved.length, emptied(approved)]).toEqual([300, 0]);
    expect(emptied(await read('export -'))).toBe(300);
    expect(await read('changes --approved')).toHaveLength(300);
    expect(await read('changes')).toHaveLength(600);
    decide('release');
    await mirror.caughtUp();
    usualRun(mirror);
    expect(emptied(await read('export - --approved'))).toBe(300);
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
