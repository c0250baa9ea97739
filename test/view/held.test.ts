import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { SINK_NAME, until } from '../../src/relay/contract/harness.ts';
import { heldSinkText } from '../../src/report/sink-report.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { compileView, type View, viewText } from '../../src/view/view.ts';
import { temporaryMirror } from '../relay/feeding.ts';
import { memory } from '../relay/memory.ts';
import { runHere } from '../support/in-process.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { newRun, unusualRun, usualRun } from './unusual-run.ts';

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

/** The products of `shop` with other members. */
function changed(count: number, members: string, from = 0) {
  return shop(count, `1,${members}`, from);
}

describe('a run that takes many products away', () => {
  it.each([
    ['whose data leaves the view', where("format = 'EPUB'"), '"format":"EPUB"', '"format":"epub"'],
    ['whose products are withdrawn', where('distributable'), '"distributable":true', '"distributable":false'],
    ['on whose data an expression fails', where('json(subtitle) IS NOT NULL'), '"subtitle":"1"', '"subtitle":"x"'],
  ])('holds a sink before the first product leaves: %s', async (_what, view, before, after) => {
    const { mirror, products, held, decide } = await fedShop(0, view);
    mirror.change(changed(300, before));
    await mirror.caughtUp();
    const run = newRun(mirror);
    mirror.change(changed(150, after), run);
    await mirror.caughtUp();
    expect(products().size).toBe(150);
    const next = newRun(mirror);
    mirror.change(changed(300, before), next);
    await mirror.caughtUp();
    const last = newRun(mirror);
    mirror.change(changed(200, after), last);
    await held();
    const text = `run ${last}, which comes next, would remove 200 of 300 products; CATCHWORD_REMOVAL_LIMIT allows 150`;
    expect(mirror.sink().held).toMatchObject({ why: 'run', run: last, reason: expect.stringContaining(text) });
    const reason = expect.stringMatching(/An expression of its view fails on P\d+: malformed JSON$/);
    if (after.includes('x')) expect(mirror.sink().held).toMatchObject({ reason });
    expect(products().size).toBe(300);
    mirror.change(changed(100, after, 200), newRun(mirror));
    decide('release');
    await mirror.caughtUp();
    expect(products().size).toBe(0);
  });

  it('lets at most as many products leave as the limit allows, however slowly the run goes on', async () => {
    const { mirror, products, held, restart, decide } = await fedShop(0, where("format = 'EPUB'"));
    mirror.change(changed(300, '"format":"EPUB"'));
    await mirror.caughtUp();
    const run = newRun(mirror);
    for (let from = 0; from < 150; from += 50) {
      mirror.change(changed(50, '"format":"epub"', from), run);
      await mirror.caughtUp();
      await restart(where("format = 'EPUB'"));
    }
    mirror.change(changed(1, '"format":"epub"', 150), run);
    await held();
    expect(products().size).toBe(150);
    mirror.change(changed(300, '"format":"EPUB"'), newRun(mirror));
    const sent = products();
    decide('release-newest');
    await mirror.caughtUp();
    expect(products().size).toBe(300);
    expect([...sent.keys()].every((vbid) => products().has(vbid))).toBe(true);
  });

  it('is counted to its end, although the store has caught up with it meanwhile', async () => {
    const { mirror, products, held, decide } = await fedShop(0, where("format = 'EPUB'"));
    mirror.change(changed(400, '"format":"EPUB"'));
    await mirror.caughtUp();
    const run = newRun(mirror);
    mirror.change(changed(100, '"format":"epub"'), run);
    await mirror.caughtUp();
    mirror.change(changed(1, '"format":"EPUB","edition":2', 399), run);
    await mirror.caughtUp();
    mirror.change(changed(100, '"format":"epub"', 100), run);
    await held();
    expect(mirror.sink().held).toMatchObject({ removed: 200 });
    expect(products().size).toBe(300);
    // An approval is for what was counted then.
    decide('release');
    await mirror.caughtUp();
    expect(products().size).toBe(200);
    mirror.change(changed(1, '"format":"epub"', 200), run);
    await held();
    expect(mirror.sink().held).toMatchObject({ removed: 201 });
    expect(products().size).toBe(200);
  });

  it('is counted with the runs of the day before it, and held before the first product leaves', async () => {
    const view = where("format = 'EPUB'");
    const { mirror, products, held, decide, restart } = await fedShop(0, view);
    mirror.change(changed(400, '"format":"EPUB"'));
    await mirror.caughtUp();
    for (const from of [0, 50, 100]) {
      mirror.change(changed(50, '"format":"epub"', from), newRun(mirror));
      await mirror.caughtUp();
    }
    mirror.change(changed(40, '"format":"EPUB"'), newRun(mirror));
    mirror.change(changed(40, '"format":"epub"', 150), newRun(mirror));
    await mirror.caughtUp();
    await restart(view);
    await mirror.caughtUp();
    expect(products().size).toBe(250);
    const last = newRun(mirror);
    mirror.change(changed(2, '"format":"epub"', 200), last);
    await held();
    const text = `run ${last}, which comes next, and the runs of the 24 hours before would remove 152 of 250 products`;
    expect(mirror.sink().held).toMatchObject({ run: last, removed: 152, reason: expect.stringContaining(text) });
    expect(products().size).toBe(250);
    decide('release');
    await mirror.caughtUp();
    expect(products().size).toBe(248);
    // The approval has decided about this day so far.
    mirror.change(changed(100, '"format":"epub"', 250), newRun(mirror));
    await mirror.caughtUp();
    await restart(view);
    mirror.change(changed(50, '"format":"epub"', 350), newRun(mirror));
    await mirror.caughtUp();
    expect(products().size).toBe(98);
    mirror.change(changed(1, '"format":"epub"', 210), newRun(mirror));
    await held();
    expect(mirror.sink().held).toMatchObject({ removed: 151 });
  });

  it('passes once each of several such runs is approved, and a changed view keeps their approvals', async () => {
    const view = where("format = 'EPUB'");
    const { mirror, products, held, decide, restart } = await fedShop(0, view);
    mirror.change(changed(600, '"format":"EPUB"'));
    await mirror.caughtUp();
    await mirror.stop();
    const runs = [0, 200].map((from) => {
      const run = newRun(mirror);
      mirror.change(changed(200, '"format":"epub"', from), run);
      return run;
    });
    await restart(view);
    for (const run of runs) {
      await until(`the sink is held for run ${run}`, () => {
        const { held: why } = mirror.sink();
        return why?.why === 'run' && why.run === run;
      });
      expect(products().size).toBe(600);
      await mirror.stop();
      decide('release');
      await restart(where("format = 'EPUB' AND edition IS NULL"));
    }
    await mirror.caughtUp();
    expect(products().size).toBe(200);
    // An approval is not a licence for the next run.
    mirror.change(changed(160, '"format":"epub"', 400), newRun(mirror));
    await held();
    expect(products().size).toBe(200);
  });

  it('is counted with products that it changes, or removes, after they have left', async () => {
    const { mirror, products, held, restart } = await fedShop(0, where("format = 'EPUB'"));
    mirror.change(changed(600, '"format":"EPUB"'));
    await mirror.caughtUp();
    const run = newRun(mirror);
    await mirror.stop();
    mirror.change(changed(400, '"format":"epub"'), run);
    mirror.change(changed(200, '"format":"epub","edition":2'), run);
    mirror.change(
      shop(200, '1', 200).map(({ vbid }) => ({ vbid, body: null })),
      run,
    );
    await restart(where("format = 'EPUB'"));
    await held();
    expect(mirror.sink().held).toMatchObject({ removed: 400 });
    expect(products().size).toBe(600);
  });

  it('is not counted with products that the store never had, where the log was pruned', async () => {
    const view = where("format = 'EPUB'");
    const { mirror, products, restart } = await fedShop(0, view);
    mirror.change(changed(300, '"format":"EPUB"'));
    await mirror.caughtUp();
    await mirror.stop();
    const run = newRun(mirror);
    for (const edition of [1, 2]) mirror.change(changed(400, `"format":"PDF","edition":${edition}`, 300), run);
    mirror.change(changed(1, '"format":"EPUB"', 800), run);
    writeUnder(mirror.store.keeperLease, Date.now(), ({ changes }) =>
      changes.prune(mirror.store.changes.lastSeq() - 1),
    );
    await restart(view);
    await mirror.caughtUp();
    expect(mirror.sink().state).toBe('running');
    expect(products().size).toBe(301);
  });

  it.each([
    ['25 hours apart are counted apart', 25, false],
    ['12 hours apart are counted together', 12, true],
  ])('and others %s, for whole products and after a day without a relay', async (_, hours, isHeld) => {
    const { mirror, products, held, restart } = await fedShop(400);
    await mirror.stop();
    const now = Date.now();
    for (const [index, from] of [0, 100].entries()) {
      const gone = shop(100, '1', from).map(({ vbid }) => ({ vbid, body: null }));
      mirror.change(gone, newRun(mirror), now + (1 + index) * hours * 3_600_000);
    }
    await restart(null);
    if (isHeld) await held();
    else await mirror.caughtUp();
    expect(products().size).toBe(isHeld ? 400 : 200);
  });

  it('is not counted for products that it brings back', async () => {
    const { mirror, products } = await fedShop(0, where("format = 'EPUB'"));
    mirror.change(changed(300, '"format":"EPUB"'));
    await mirror.caughtUp();
    const run = newRun(mirror);
    for (let times = 0; times < 4; times++) {
      mirror.change(changed(100, '"format":"epub"'), run);
      mirror.change(changed(100, '"format":"EPUB"'), run);
    }
    await mirror.caughtUp();
    expect(products().size).toBe(300);
  });

  it('holds a sink that also gets another view meanwhile', async () => {
    const { mirror, products, held, restart } = await fedShop(0, where("format = 'EPUB'"));
    mirror.change(changed(300, '"format":"EPUB"'));
    await mirror.caughtUp();
    await mirror.stop();
    mirror.change(changed(300, '"format":"epub"'), newRun(mirror));
    await restart(where("format = 'EPUB' AND vbid <> 'P7'"));
    await held();
    expect(products().size).toBe(300);
    await restart(where("format = 'EPUB' AND vbid <> 'P8'"));
    await mirror.stop();
    expect(mirror.sink().state).toBe('held');
    expect(products().size).toBe(300);
  });

  it('counts for a sink that is opened again after many changes of the run', { tags: ['slow'] }, async () => {
    const view = where("format = 'EPUB'");
    const { mirror, products, held, restart } = await fedShop(0, view);
    mirror.change(changed(300, '"format":"EPUB"'));
    await mirror.caughtUp();
    const run = newRun(mirror);
    mirror.change(changed(100, '"format":"epub"'), run);
    mirror.change(changed(20_500, '"format":"PDF"', 1_000), run);
    await mirror.caughtUp();
    expect(products().size).toBe(200);
    await restart(view);
    await mirror.caughtUp();
    mirror.change(changed(51, '"format":"epub"', 100), run);
    await held();
    expect(mirror.sink().held).toMatchObject({ reason: expect.stringContaining('would remove 151 of 200 products') });
    expect(products().size).toBe(200);
  });

  it('holds a sink of whole products whose source withdraws them, which the setting removes at once', async () => {
    const { mirror, products, held } = await fedShop(300);
    mirror.change(
      shop(200, '1').map(({ vbid }) => ({ vbid, body: null })),
      newRun(mirror),
    );
    await held();
    expect(products().size).toBe(300);
  });

  it('does not hold a sink for removals that an operator approved, or that the source announced', async () => {
    const { mirror, products } = await fedShop(600);
    const approved = newRun(mirror, ['held until approved: 200 removals are more than the limit of 150']);
    mirror.change(
      shop(200, '1').map(({ vbid }) => ({ vbid, body: null })),
      approved,
    );
    await mirror.caughtUp();
    mirror.change(changed(200, '"distributable":false', 200), newRun(mirror));
    mirror.change(
      shop(200, '1', 200).map(({ vbid }) => ({ vbid, body: null })),
      newRun(mirror),
    );
    await mirror.caughtUp();
    expect(products().size).toBe(200);
  });

  it('holds a sink that was paused meanwhile', async () => {
    const { mirror, products, held } = await fedShop(0, where("format = 'EPUB'"));
    mirror.change(changed(300, '"format":"EPUB"'));
    await mirror.caughtUp();
    mirror.store.request(({ sinks }) => sinks.setState(mirror.sink().id, 'paused'));
    mirror.change(changed(300, '"format":"epub"'), newRun(mirror));
    mirror.store.request(({ sinks }) => sinks.setState(mirror.sink().id, 'running'));
    await held();
    expect(products().size).toBe(300);
  });
});
