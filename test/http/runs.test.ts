import { productOf } from '@catchword/catalog/product';
import type { RunState } from '@catchword/catalog/run-types';
import { startRawSource } from '@catchword/testing/raw-source';
import { execute } from '@catchword/testing/sqlite';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { KeeperWriter } from '../../src/store/schema/writers.ts';
import { runHere as cli } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { mutate, SELECTION, settingsFor } from '../support/mirror.ts';
import { filled } from '../support/place.ts';
import { ids, type PassSketch, type RunSketch, START, sketchRun } from '../sync/run-sketch.ts';
import { emptyMirror, serve } from './place.ts';

async function pageAt(db: string, path: string): Promise<{ status: number; html: string; text: string }> {
  const { web } = await serve(db);
  const response = await fetch(`${web.url}${path}`);
  const html = await response.text();
  await web.stop();
  const text = html
    .replace(/<(script|style)\b.*?<\/\1>/gs, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
  return { status: response.status, html, text };
}

/** The page of a run that was sketched, with a change to it. */
async function sketched(sketch: RunSketch, change: (writer: KeeperWriter, id: number) => void = () => {}, path = '') {
  const { store, run } = sketchRun(sketch);
  writeUnder(store.keeperLease, START, (writer) => change(writer, run.id));
  return await pageAt(store.path, `/runs/${run.id}${path}`);
}

function end(state: RunState, more: Partial<Parameters<KeeperWriter['runs']['end']>[1]> = {}) {
  return ({ runs }: KeeperWriter, id: number): void =>
    runs.end(id, {
      state,
      finishedAt: START + 60_000,
      counts: runs.counts(id),
      proof: null,
      reasons: [],
      error: null,
      ...more,
    });
}

const LIST: PassSketch = {
  windows: [
    { ids: ids(1, 10), total: 24 },
    { page: 2, perPage: 8, ids: ids(9, 16), total: 24 },
  ],
};

const RUN: RunSketch = { products: 24, passes: [LIST] };

it('the list of runs invites to start a load while the mirror is empty', async () => {
  const { status, text, html } = await pageAt(emptyMirror(), '/runs');
  expect(status).toBe(200);
  expect(text).toContain('No run yet. Start a full load to fill the mirror.');
  expect(html).toContain('<input type="hidden" name="target" value="full"/>');
});

it('the list of runs shows 50 on a page, with a link to older ones', async () => {
  const { store } = sketchRun(RUN);
  writeUnder(store.keeperLease, START, (writer) => {
    end('complete', { proof: 'sealed' })(writer, 1);
    for (let id = 2; id <= 60; id++) {
      writer.runs.create({ kind: 'delta', from: START, startedAt: START + id, tick: null, selection: SELECTION });
      end('complete')(writer, id);
    }
  });
  const first = await pageAt(store.path, '/runs');
  expect([...first.html.matchAll(/href="\/runs\/(\d+)"/g)].map(([, id]) => Number(id))).toEqual(ids(11, 60).reverse());
  expect(first.html).toContain('data-live="/live/runs"');
  const [, older = ''] = /href="(\/runs\?before=\d+)"/.exec(first.html) ?? [];
  const second = await pageAt(store.path, older);
  expect([...second.html.matchAll(/href="\/runs\/(\d+)"/g)].map(([, id]) => Number(id))).toEqual(ids(1, 10).reverse());
  expect(second.html).not.toMatch(/href="[^"]*\?before=/);
  expect(second.text).toContain('Run 1 full complete sealed');
  expect((await pageAt(store.path, '/runs?before=x')).status).toBe(400);
});

it('the page of a run is not found for another number', async () => {
  const { store } = sketchRun(RUN);
  for (const id of ['2', '0', 'x', '1e3', '99999999999999999999']) {
    expect((await pageAt(store.path, `/runs/${id}`)).status).toBe(404);
  }
});

it('the page says that a planned run has not read anything', async () => {
  const { text, html } = await sketched(
    { products: 0, passes: [{ windows: [] }] },
    (writer, id) => {
      end('cancelled')(writer, id);
      writer.runs.create({ kind: 'full', from: null, startedAt: START, tick: null, selection: SELECTION });
    },
    '/../2',
  );
  expect(text).toContain('It is planned, and has not read anything yet.');
  expect(text).toContain('No process works on this run.');
  expect(text).toContain('not known: no process works on it');
  expect(html).toContain('name="action" value="cancel"');
  expect(html).toContain('data-live="/live/runs/2"');
});

it('the page shows how far a run has read, and where it repairs', async () => {
  const sketch: RunSketch = {
    products: 40,
    passes: [
      {
        windows: [
          { ids: ids(1, 10), total: 24 },
          { page: 2, perPage: 8, ids: ids(9, 16), total: 24, rejected: 1 },
          { page: 3, perPage: 7, ids: [20, 21, 22, 23, 24, 25, 26], total: 24 },
        ],
      },
      { kind: 'delta', windows: [{ ids: [] }] },
      { kind: 'repair', root: 0, windows: [{ page: 2, perPage: 10, ids: [14, 15, 16, 17, 18, 19, 20, 21] }] },
    ],
  };
  const { text, html } = await sketched(sketch);
  expect(html).toContain('data-seams="jo. "');
  expect(html).toContain('data-cells="wxa."');
  expect(text).toContain(
    '3 of 4 windows read, 1 of 3 seams closed, 1 open, 1 window read again as repairs, 1 window with rejected items.',
  );
  expect(text).toContain('This is a preview');
  expect(text).toContain('It reads again where neighbouring windows did not join.');

  const list = { pass: 0, kind: 'list', windows: 3, repairs: 1, overlap: 1, overlapLeast: 0, seams: 'jr' } as const;
  const judged = await sketched(sketch, ({ runs }, id) => runs.noteSeams(id, [list]));
  expect(judged.html).toContain('data-seams="jr "');
  expect(judged.text).toContain('2 of 2 seams closed');
  const failed = await sketched(sketch, (writer, id) => {
    writer.runs.noteSeams(id, [list]);
    end('failed', { error: 'SOURCE_UNAVAILABLE: no answer' })(writer, id);
  });
  expect(failed.html).toContain('data-seams="jr "');
  expect(failed.text).toContain('they are drawn as it judged them last');
});

it('the page says until when a run waits', async () => {
  const { text } = await sketched(RUN, ({ runs }, id) =>
    runs.settle(id, { until: START + 300_000, leftMs: 300_000 }, 3),
  );
  expect(text).toContain('waiting for late changes');
  expect(text).toContain(
    'Settling until 2027-01-15 08:05:00 UTC: 3 products were not seen; a last delta at 08:05:00 decides.',
  );
});

it('the page says what failed, and when it is tried again', async () => {
  const { store, run } = sketchRun(RUN);
  writeUnder(store.keeperLease, START, (writer) =>
    end('failed', { error: 'SOURCE_UNAVAILABLE: <b>no answer</b>' })(writer, run.id),
  );
  const before = await pageAt(store.path, '/runs/1');
  expect(before.text).toContain('What failed: SOURCE_UNAVAILABLE: &lt;b>no answer&lt;/b>');
  expect(before.text).toContain('It is not tried again by itself.');
  store.schedule.setRetry({ kind: 'full', at: START, reason: 'no answer' });
  expect((await pageAt(store.path, '/runs/1')).text).toContain('It is tried again at 2027-01-15 08:00:00 UTC');
});

it('the page says that a cancelled run proved nothing, and keeps its picture', async () => {
  const { text, html } = await sketched(RUN, end('cancelled'));
  expect(text).toContain('It was cancelled. What it had read is kept.');
  expect(text).toContain('Nothing: it did not read everything.');
  expect(html).toContain('data-cells="ww.');
  expect(html).not.toContain('value="cancel"');
});

it('a run that has ended shows its proof, its seams and its requests until a later run completes', async () => {
  const here = await filled({ items: 3_500, churnPerSecond: 0 });
  const { text, html } = await pageAt(here.db, '/runs/1');
  expect(text).toContain('The mirror held every product of the source when this run ended.');
  expect(text).toContain('All 3 seams between them closed');
  expect(html).toMatch(/data-seams="jjj "[^>]*data-sealed/);
  expect(text).toContain('5 requests in all.');
  await load(here.settings, 'full');
  const later = await pageAt(here.db, '/runs/1');
  expect(later.html).toContain('data-seams="jjj "');
  expect(later.html).not.toContain('class="pace"');
});

it('a run that has ended draws its requests, unless their time is too short for a curve', async () => {
  const delta: PassSketch = { kind: 'delta', at: 20_000, windows: [{ ids: [] }] };
  const long = await sketched({ products: 24, passes: [LIST, delta] }, end('cancelled'));
  expect(long.html).toContain('data-requests="2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,3"');
  const short = await sketched(RUN, end('cancelled'));
  expect(short.html).not.toContain('class="pace"');
  expect(short.text).toContain('2 requests in all. No limit is set');
});

it('the page says of a run without proof that its record is gone after a later run', async () => {
  const { text, html } = await sketched(RUN, (writer, id) => {
    end('cancelled')(writer, id);
    writer.runs.dropCheckpoints(id + 1);
  });
  expect(text).toContain('Which windows it read is kept only until a later run completes.');
  expect(text).toContain('When each was made is kept only until a later run completes.');
  expect(html).not.toContain('<figure');
});

it('a run needs no picture if one response held everything', async () => {
  const evidence = { requests: 1, deltas: 1, lookups: 0, seen: 6, numItems: 0, updatedShare: 0, lists: [] };
  const passes: PassSketch[] = [{ kind: 'delta', windows: [{ ids: ids(1, 6) }] }];
  const { text, html } = await sketched({ products: 24, kind: 'delta', passes }, end('complete', { evidence }));
  expect(text).toContain('One response held everything that changed');
  expect(text).not.toMatch(/preview|Windows and seams/);
  expect(html).not.toContain('<figure');
});

it.each([
  [24, 'It saw 24 products in 3 requests, read what changed meanwhile. '],
  [20, '. The source counted 20 when its list was read; products were added meanwhile.'],
  [25, '. The source counted 25 when its list was read. '],
])('the page compares what a run saw with the count of the source: %d', async (numItems, expected) => {
  const evidence = { requests: 3, deltas: 1, lookups: 0, seen: 24, numItems, updatedShare: 0, lists: [] };
  const given = end('complete', { evidence, proof: 'sealed' });
  expect((await sketched(RUN, given)).text).toContain(expected);
});

it('a run says why it is open, what follows, and what to do', async () => {
  const here = await filled({ items: 2_500 }, { CATCHWORD_SEAM: 'off' });
  const { text, html } = await pageAt(here.db, '/runs/1');
  expect(text).toContain('It could not be proven that nothing was missed.');
  expect(text).toContain('CATCHWORD_SEAM is off: plain pages do not overlap');
  expect(text).toContain('Remove CATCHWORD_SEAM from the settings');
  expect(text).toContain('No product is removed only because this run did not see it.');
  expect(html).toContain('data-seams="oo "');
});

it('the page offers to undo removals', async () => {
  const here = await filled({ items: 1_500, withdrawnForMs: 0 });
  await mutate(here.sandbox.url, { remove: 5, seed: 1 });
  await load(here.settings, 'full');
  const { text, html } = await pageAt(here.db, '/runs/2');
  expect(text).toContain('5 products that the source no longer has were removed.');
  expect(html).toContain('name="action" value="undo"');
  expect((await pageAt(here.db, '/runs/1')).html).not.toContain('value="undo"');
});

it('the page lists removals that are held, with links, 50 on a page', async () => {
  const here = await filled({ items: 2_500, details: true, withdrawnForMs: 0 });
  await mutate(here.sandbox.url, { remove: 150, seed: 1 });
  expect((await cli(['sync', '--full'], here.settings, here.directory)).code).toBe(5);
  const first = await pageAt(here.db, '/runs/2');
  expect(first.text).toContain('150 removals are more than the limit of 100');
  expect(first.html).toContain('value="approve"');
  expect(first.html).toContain('value="reject"');
  const seen = new Set<string>();
  let path = '/runs/2';
  for (let page = 0; page < 3; page++) {
    const { html } = await pageAt(here.db, path);
    for (const [, vbid = ''] of html.matchAll(/href="\/products\/([^"]+)"/g)) seen.add(vbid);
    path = (/href="(\/runs\/2\?held=\d+)#held"/.exec(html) ?? [])[1] ?? 'none';
  }
  expect(seen.size).toBe(150);
  expect(path).toBe('none');
  execute(here.db, 'DELETE FROM held_removals WHERE product_id IN (SELECT product_id FROM held_removals LIMIT 30)');
  const text = '30 of them were seen or removed since, so it would remove 120.';
  expect((await pageAt(here.db, '/runs/2')).text).toContain(text);
});

it('the page shows hostile titles and bodies as text', async () => {
  const hostile = '<img src=x onerror=alert(1)></td><script>alert(1)</script>\u202e';
  const { store, run } = sketchRun({ products: 3, passes: [LIST] });
  writeUnder(store.keeperLease, START, (writer) => {
    const fields = { vbid: 'a/b?<&"', title: hostile };
    const product = productOf(fields.vbid, fields, JSON.stringify(fields));
    writer.products.insert([{ id: 4, seq: 4, product }], START);
    writer.products.addLiving(1);
    writer.removals.hold(run.id, [1, 4]);
    writer.runs.addRejected(run.id, 0, { page: 1, perPage: 10 }, [
      { position: 3, reason: hostile, body: hostile + 'x'.repeat(1_000_000) },
    ]);
    const counts = { ...writer.runs.counts(run.id), rejected: 1 };
    const unreadable = { code: 'unreadable', from: 3, to: 3, said: hostile } as const;
    const held = { code: 'held', why: { code: 'empty' }, verdict: null } as const;
    end('held', { proof: 'open', reasons: [unreadable, held], counts })(writer, run.id);
  });
  const { html, text } = await pageAt(store.path, '/runs/1');
  expect(html).not.toMatch(/<img|<script>/);
  expect(html).toContain('&lt;img src=x onerror=alert(1)>');
  expect(html).toContain('href="/products/a%2Fb%3F%3C%26%22"');
  expect(text).toContain('more of 1,000,059 characters');
  expect(html).not.toContain('\u202e');
  expect(html.length).toBeLessThan(30_000);
});

it('the page shows the error of a run in one line, in its direction of writing', async () => {
  const error = `SOURCE_INVALID: got product \u202e\n\u009b<b>${'x'.repeat(5_000)}`;
  const { store, run } = sketchRun({ products: 3, passes: [LIST] });
  writeUnder(store.keeperLease, START, (writer) => end('failed', { error })(writer, run.id));
  for (const path of ['/runs/1', '/runs', '/']) {
    const { html } = await pageAt(store.path, path);
    expect(html, path).not.toMatch(/[\u202e\u009b]|<b>|x{2001}/);
    if (path !== '/runs') expect(html, path).toContain('\\u202e \\u009b&lt;b>xxx');
  }
});

it('the page lists the first 50 rejected items, and leads to all of them', async () => {
  const items = Array.from({ length: 250 }, (_, at) =>
    Buffer.from(at < 120 ? `{"vbid":"","n":${at}}` : `{"vbid":"P${at}"}`),
  );
  const source = await startRawSource(items);
  const db = `${temporaryDirectory()}/catalog.db`;
  const run = await load(settingsFor(source.url, db), 'full');
  expect(run.rejected).toBe(120);
  const first = await pageAt(db, '/runs/1');
  expect(first.text).toContain('50 of 120 items');
  expect(first.html).toContain('href="/rejected?run=1"');
  expect((await pageAt(db, '/rejected?run=1&before=71')).html).toContain('href="/rejected?run=1&amp;before=21"');
});

it('the page of a run with thousands of windows, and its stream after a restart, show all of them at once', async () => {
  const windows = ids(1, 1_800).map((page) => ({ page, perPage: 1, ids: [1], total: 1_800 }));
  const { store, run } = sketchRun({ products: 1, passes: [{ windows, perPage: 1, seam: 0 }] });
  const path = `/runs/${run.id}`;
  expect((await pageAt(store.path, path)).text).toContain('1,800 of 1,801 windows');
  const { web } = await serve(store.path);
  const { body } = await fetch(`${web.url}/live${path}`);
  let shown = '';
  for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    shown += text;
    if (/windows/.test(shown)) break;
  }
  expect(shown).toContain('1,800 of 1,801 windows');
});
