import { describe, expect, it } from 'vitest';
import { SINK_NAME, until } from '../../src/contract/harness.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { heldSinkText, holdNumber } from '../../src/report/sink-report.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { fedShop, shop, where } from './fed-shop.ts';
import { newRun, unusualRun } from './unusual-run.ts';

/** The products of `shop` with other members. */
function changed(count: number, members: string, from = 0) {
  return shop(count, `1,${members}`, from);
}

function removed(count: number, from = 0) {
  return shop(count, '1', from).map(({ vbid }) => ({ vbid, body: null }));
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

  it('is not approved by a second click on the button for the run before it', async () => {
    const view = where("format = 'EPUB'");
    const { mirror, products, held, restart } = await fedShop(0, view);
    mirror.change(changed(600, '"format":"EPUB"'));
    await mirror.caughtUp();
    await mirror.stop();
    const first = newRun(mirror);
    mirror.change(changed(200, '"format":"epub"'), first);
    mirror.change(changed(200, '"format":"epub"', 200), newRun(mirror));
    await restart(view);
    await held();
    const holder = holdNumber(mirror.sink());
    const click = () => mirror.store.request((writer) => changeSink(writer, 'release', SINK_NAME, holder, 0));
    click();
    await until('the next run holds it', () => {
      const { state, held: why } = mirror.sink();
      return state === 'held' && why?.why === 'run' && why.run > first;
    });
    expect(click).toThrow(
      expect.objectContaining({
        code: 'USAGE',
        message: expect.stringContaining('contract is held for another reason by now: run '),
      }),
    );
    expect(products().size).toBe(600);
  });

  it('is not blamed on a product on which an expression failed when it was created, earlier that day', async () => {
    const view = where('json(subtitle) IS NOT NULL');
    const { mirror, held, restart } = await fedShop(0, view);
    mirror.change([...changed(300, '"subtitle":"1"'), ...changed(1, '"subtitle":"x"', 300)]);
    await mirror.caughtUp();
    await restart(view);
    mirror.change(removed(200), newRun(mirror));
    await held();
    const { held: why } = mirror.sink();
    expect(why?.why === 'run' && why.reason).toMatch(
      /would remove 200 of 300 products; CATCHWORD_REMOVAL_LIMIT allows 150$/,
    );
  });

  it('is counted with products that it changes, or removes, after they have left', async () => {
    const { mirror, products, held, restart } = await fedShop(0, where("format = 'EPUB'"));
    mirror.change(changed(600, '"format":"EPUB"'));
    await mirror.caughtUp();
    const run = newRun(mirror);
    await mirror.stop();
    mirror.change(changed(400, '"format":"epub"'), run);
    mirror.change(changed(200, '"format":"epub","edition":2'), run);
    mirror.change(removed(200, 200), run);
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

  it('is judged, too, if an unusual run after it was approved', async () => {
    const { mirror, products, held, decide } = await fedShop(400);
    unusualRun(mirror, shop(300, 'null'));
    await held();
    const gone = removed(200, 100);
    const run = newRun(mirror);
    mirror.change(gone, run);
    unusualRun(mirror, shop(50, '{}'));
    decide('release');
    await until('the sink is held for it', () => mirror.sink().held?.why === 'run' && mirror.sink().state === 'held');
    expect(mirror.sink().held).toMatchObject({ run, removed: 200 });
    expect(products().size).toBe(400);
  });

  it('waits for an answer about what it takes away, also if it is unusual and its empty fields were approved', async () => {
    const { mirror, products, held, decide } = await fedShop(0, where("body ->> 'price' IS NOT NULL"));
    mirror.change(shop(400, '1'));
    await mirror.caughtUp();
    const run = unusualRun(mirror, shop(200, 'null'));
    await held();
    expect(mirror.sink().held).not.toHaveProperty('removed');
    decide('release');
    await until(
      'the sink is held for what leaves',
      () => mirror.sink().held?.why === 'run' && mirror.sink().state === 'held',
    );
    expect(mirror.sink().held).toMatchObject({ run, removed: 200 });
    expect(products().size).toBe(400);
    decide('release');
    await mirror.caughtUp();
    expect(products().size).toBe(200);
  });

  it('is counted with the runs before an unusual run whose empty fields were approved', async () => {
    const { mirror, products, held, decide } = await fedShop(600);
    const remove = (count: number, from: number): void => mirror.change(removed(count, from), newRun(mirror));
    remove(100, 0);
    await mirror.caughtUp();
    unusualRun(mirror, shop(50, 'null', 200));
    await held();
    decide('release');
    await mirror.caughtUp();
    remove(100, 100);
    await held();
    expect(mirror.sink().held).toMatchObject({ removed: 200 });
    expect(products().size).toBe(500);
  });

  it('is counted with the runs before a changed view, of which each view counts what it showed', async () => {
    const { mirror, products, held, restart } = await fedShop(0, where("format = 'EPUB'"));
    const run = (count: number, format: string, from: number) =>
      mirror.change(changed(count, `"format":"${format}"`, from), newRun(mirror));
    run(400, 'EPUB', 0);
    run(200, 'PDF', 400);
    await mirror.caughtUp();
    run(100, 'epub', 0);
    run(100, 'pdf', 400);
    await mirror.caughtUp();
    for (const view of ["format IN ('EPUB', 'PDF')", "format IN ('EPUB', 'PDF') AND vbid <> 'P399'"]) {
      const { generation } = mirror.sink();
      await restart(where(view));
      await until('the view is under way', () => mirror.sink().generation > generation);
      await mirror.caughtUp();
    }
    // The store never had the PDF that left before the view showed them.
    run(40, 'pdf', 500);
    await mirror.caughtUp();
    expect(products().size).toBe(359);
    run(20, 'epub', 100);
    await held();
    expect(mirror.sink().held).toMatchObject({ removed: 160 });
    expect(products().size).toBe(359);
  });

  it.each<[what: string, views: (string | null)[], start: string, left: string[]]>([
    ['a wider view shows what left', ["lower(format) = 'epub'"], '', ['epub']],
    ['the view is removed', [null], '', ['epub']],
    ['a wider view shows what came back under a third name', ["format IN ('EPUB', 'ePub')"], '', ['epub', 'ePub']],
    ['the view was put back', ["lower(format) = 'epub'", "format = 'EPUB'"], '', ['epub']],
    ['a view of other products was approved', ["format = 'PDF'"], 'PDF', ['epub']],
  ])('is counted without the runs before a changed view if %s', async (_what, views, others, left) => {
    const { mirror, products, restart, decide } = await fedShop(0, where("format = 'EPUB'"));
    const run = (count: number, format: string, from = 0) =>
      mirror.change(changed(count, `"format":"${format}"`, from), newRun(mirror));
    run(600, 'EPUB');
    if (others !== '') run(600, others, 600);
    await mirror.caughtUp();
    for (const format of left) run(140, format);
    await mirror.caughtUp();
    expect(products().size).toBe(460);
    for (const view of views) {
      const { generation } = mirror.sink();
      await restart(view === null ? null : where(view));
      await until('the view is judged', () => mirror.sink().generation > generation || mirror.sink().state === 'held');
      if (mirror.sink().state === 'held') decide('release');
      await until('the view is under way', () => mirror.sink().generation > generation);
      await mirror.caughtUp();
    }
    const size = products().size;
    const shown = [...products().keys()].slice(-20).map((vbid) => ({ vbid, body: null }));
    mirror.change(shown, newRun(mirror));
    await until('the run is judged', () => products().size === size - 20 || mirror.sink().state === 'held');
    expect(mirror.sink()).toMatchObject({ state: 'running', held: null });
  });

  it('is not counted with the runs before a fill, or before an approval that sent what differed', async () => {
    const { mirror, products, held, decide, restart } = await fedShop(600, where("title <> 'x'"));
    const remove = (count: number, from: number): void => mirror.change(removed(count, from), newRun(mirror));
    remove(140, 0);
    await mirror.caughtUp();
    mirror.store.request((writer) => changeSink(writer, 'replay', SINK_NAME, 0, 0));
    await restart(where("title <> 'y'"));
    await mirror.caughtUp();
    remove(20, 140);
    await mirror.caughtUp();
    remove(140, 160);
    await held();
    expect(mirror.sink().held).toMatchObject({ removed: 160 });
    decide('release-newest');
    await mirror.caughtUp();
    remove(140, 300);
    await mirror.caughtUp();
    expect(products().size).toBe(160);
  });

  it.each([
    ['25 hours apart are counted apart', 25, false],
    ['12 hours apart are counted together', 12, true],
  ])('and others %s, for whole products and after a day without a relay', async (_, hours, isHeld) => {
    const { mirror, products, held, restart } = await fedShop(400);
    await mirror.stop();
    const now = Date.now();
    for (const [index, from] of [0, 100].entries()) {
      const gone = removed(100, from);
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
    mirror.change(removed(200), newRun(mirror));
    await held();
    expect(products().size).toBe(300);
  });

  it('does not hold a sink for removals that an operator approved, or that the source announced', async () => {
    const { mirror, products } = await fedShop(600);
    const approved = newRun(mirror, [{ code: 'held', why: { code: 'empty' }, verdict: 'approved' }]);
    mirror.change(removed(200), approved);
    await mirror.caughtUp();
    mirror.change(changed(200, '"distributable":false', 200), newRun(mirror));
    mirror.change(removed(200, 200), newRun(mirror));
    await mirror.caughtUp();
    expect(products().size).toBe(200);
  });

  it('is the reason that people read, although it also empties prices', async () => {
    const { mirror, held } = await fedShop(300);
    const run = newRun(mirror);
    mirror.change(removed(200), run);
    await held();
    const { store } = mirror;
    writeUnder(store.keeperLease, Date.now(), ({ runs }) =>
      runs.noteLosses(
        run,
        { price: 90 },
        { from: store.changes.lastSeq() + 1, field: 'price', products: 90, living: 100 },
      ),
    );
    expect(heldSinkText(store, mirror.sink())?.reason).toContain('would remove 200 of 300 products');
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
