import { execute } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { openedStore } from '../store/opened-store.ts';
import { load } from '../support/load.ts';
import { mutate } from '../support/mirror.ts';
import { filled } from '../support/place.ts';
import { emptyMirror, NO_PLANS, serve, settableClock } from './place.ts';
import { get } from './reader.ts';

const HOUR = 3_600_000;
/** Makes this process the daemon of the mirror. @returns a function that ends it */
function beDaemon(db: string): () => void {
  // It stays open: a lease whose holder has closed the mirror is free.
  openedStore(db).daemonLease.acquire(Date.now());
  return () => execute(db, 'UPDATE lease SET holder = NULL');
}

/** The text of one section of a page, and of the whole page. */
async function overviewOf(url: string, id?: string): Promise<string> {
  const { status, text } = await get(url, { headers: { accept: 'text/html' } });
  expect(status).toBe(200);
  const part = id === undefined ? text : (new RegExp(`<section id="${id}".*?</section>`, 's').exec(text)?.[0] ?? '');
  return part.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
}

it('the overview says of an empty mirror what happens now', async () => {
  const db = emptyMirror();
  const next = Date.now() + 20 * 60_000 + 5_000;
  const { web } = await serve(db, { plans: () => ({ ...NO_PLANS, nextFull: next }) });
  expect(await overviewOf(web.url, 'mirror')).toMatch(/empty, and no daemon is running .* npx catchword daemon/);
  expect(await overviewOf(web.url, 'attention')).toContain('Nothing needs a decision');
  beDaemon(db);
  expect(await overviewOf(web.url, 'mirror')).toMatch(
    /The mirror is empty.* it starts in 20 minutes .*Not complete yet/,
  );
  execute(db, "INSERT INTO runs (kind, state, started_at, selection) VALUES ('full', 'planned', 1, '{}')");
  expect(await overviewOf(web.url, 'mirror')).toContain('The first full load is under way');
  expect(await overviewOf(web.url, 'run')).toMatch(/Run 1 reads the whole catalog: it waits for the first page/);
});

it('the overview says how fresh a mirror is, what the last run did and when the next ones start', async () => {
  const { db, settings } = await filled({ items: 30 });
  await load(settings, 'delta');
  beDaemon(db);
  const clock = settableClock();
  const plans = () => ({ ...NO_PLANS, nextFull: Date.now() + 5 * HOUR, nextDelta: clock.now() + 30_000 });
  const { web } = await serve(db, { clock, plans, readyMaxAgeMs: 26 * HOUR });
  const fresh = await overviewOf(web.url, 'mirror');
  expect(fresh).toMatch(/Up to date , as of less than a minute ago .*Products 30 .*Delta run 2 complete/);
  expect(fresh).toMatch(/changes in less than a minute .*everything in 5 hours/);
  expect(fresh).toContain('Changes in the last 24 hours 30 created Size');
  expect(fresh).toMatch(/\d+ kB, .* of the disk free/);
  expect(await overviewOf(web.url, 'run')).toContain('No run is under way');
  clock.aheadMs = 25 * HOUR;
  expect(await overviewOf(web.url, 'mirror')).toMatch(/Up to date , as of 25 hours ago .*24 hours none Size/);
});

it('the page of runs lists the next ones of the schedule', async () => {
  const { db } = await filled({ items: 3 });
  const upcoming = () => [
    { kind: 'delta' as const, at: Date.parse('2126-11-20T20:30:00Z') },
    { kind: 'full' as const, at: Date.parse('2126-11-20T21:30:00Z') },
  ];
  const { web } = await serve(db, { upcoming, plans: () => ({ ...NO_PLANS, timezone: 'Asia/Kolkata' }) });
  expect(await overviewOf(`${web.url}/runs`, 'schedule')).toContain(
    'No daemon is running, so no run starts by itself.',
  );
  beDaemon(db);
  expect(await overviewOf(`${web.url}/runs`, 'schedule')).toContain(
    '2126-11-20 20:30:00 UTC (02:00 in Asia/Kolkata): delta 2126-11-20 21:30:00 UTC (03:00 in Asia/Kolkata): full',
  );
});

it('the overview names the zone of the next runs, and says which were missed and why', async () => {
  const { db } = await filled({ items: 3 });
  const at = (text: string): number => Date.parse(text);
  const missedDelta = { ticks: 3, from: at('2026-11-20T10:30:00Z'), upTo: at('2026-11-20T12:30:00Z') };
  const missedFull = { ticks: 501, from: at('2025-01-01T20:30:00Z'), upTo: at('2026-11-19T20:30:00Z') };
  const nextFull = at('2126-11-20T20:30:00Z');
  const plans = () => ({ ...NO_PLANS, timezone: 'Asia/Kolkata', nextFull, missedDelta, missedFull });
  const { web } = await serve(db, { plans });
  const without = await overviewOf(web.url, 'mirror');
  expect(without).toContain('more than 500 scheduled full loads, 2025-01-01 20:30:00 UTC (02:00 in Asia/Kolkata) to ');
  expect(without).toContain(
    '3 scheduled delta loads, 2026-11-20 10:30:00 UTC (16:00 in Asia/Kolkata) to 2026-11-20 12:30:00 UTC (18:00 in Asia/Kolkata): no daemon is running',
  );
  beDaemon(db);
  execute(db, "INSERT INTO runs (kind, state, started_at, selection) VALUES ('full', 'reading', 1, '{}')");
  const withOne = await overviewOf(web.url, 'mirror');
  expect(withOne).toContain(': full run 2 is unfinished and is resumed first');
  expect(withOne).toContain('(02:00 in Asia/Kolkata)');
});

it('the overview puts what needs a decision first, with the reason and the way to it', async () => {
  const { db, settings, sandbox } = await filled({ items: 2_500, withdrawnForMs: 0 });
  await mutate(sandbox.url, { remove: 150, seed: 1 });
  const held = await load(settings, 'full');
  expect(held).toMatchObject({ state: 'held' });
  const endDaemon = beDaemon(db);
  const { web } = await serve(db);
  const { text } = await get(web.url);
  expect(text).toMatch(/<main id="main"[^>]*><h1>Overview<\/h1><section id="attention"/);
  expect(text).toContain('<a href="/runs/2">Look at them and decide</a>');
  expect(await overviewOf(web.url, 'attention')).toMatch(
    /Run 2 would remove 150 products. It was held back because \d+ removals are more than the limit of 100/,
  );
  const now = Date.now();
  execute(
    db,
    `UPDATE runs SET state = 'failed', error = 'the service <b>said no</b>', proof = NULL WHERE id = 2;
     INSERT INTO runs (kind, state, started_at, finished_at, error, selection)
       VALUES ('delta', 'failed', ${now}, ${now}, 'no connection', '{}');
     UPDATE mirror SET blocked_since = ${now}, blocked_until = ${now + HOUR},
       retry_at = ${now + HOUR}, retry_kind = 'delta', retry_reason = 'no connection';
     INSERT INTO sinks (id, name, kind, address, identity, state, error) VALUES
       (1, 'shop', 'webhook', 'https://shop.example', 'a', 'stopped', 'answered "<script>alert(1)</script>"'),
       (2, 'search', 'webhook', 'https://search.example', 'b', 'running', NULL);
     INSERT INTO parked (sink_id, seq, vbid, state, reason, at, change) VALUES (2, 3, 'V', 'refused', 'too long', 1, '{}')`,
  );
  const troubled = await overviewOf(web.url, 'attention');
  expect(troubled).toMatch(/The sink shop is stopped: it receives nothing\. Answered &quot;&lt;script>/);
  expect(troubled).toMatch(/The sink search refused changes\. 1 event is parked/);
  expect(troubled).not.toMatch(/runs failed|no request before/);
  const known = await overviewOf(web.url, 'trouble');
  expect(known).toMatch(
    /Nothing delivers to the sinks\..*The last 2 runs failed\. No connection\. It is tried again at/,
  );
  expect(known).toMatch(/The service asked for no request before/);
  expect(await overviewOf(web.url, 'mirror')).toContain('Usable, but the last run failed');
  expect(await overviewOf(web.url, 'sinks')).toMatch(
    /shop stopped 2,\d+ changes, for .*search initial load|search live/,
  );
  const page = await get(web.url);
  expect(page.text).not.toMatch(/<script>|<b>said/);

  execute(db, `UPDATE runs SET state = 'complete', proof = 'open', error = NULL, kind = 'full' WHERE id IN (2, 3)`);
  endDaemon();
  const open = await overviewOf(web.url, 'trouble');
  expect(open).toMatch(/No daemon is running.*The last 2 full runs could not prove/);
});

it('the overview shows the progress of a run without what overlaps, and that nothing makes it', async () => {
  const { db } = await filled({ items: 10 });
  execute(
    db,
    `INSERT INTO runs (id, kind, state, started_at, selection) VALUES (7, 'full', 'reading', 1, '{}');
     INSERT INTO passes (run_id, pass, kind, root, num_items, per_page, seam, size_ignored, reversed)
       VALUES (7, 1, 'list', 1, 4000, 1000, 200, 0, 0);
     INSERT INTO checkpoints (run_id, pass, page, per_page, num_items, total_pages, requested_at, items, created, updated,
       removed, restored, rejected, requests, ids, seq) VALUES (7, 1, 1, 1000, 4000, 4, 1, 1000, 1000, 0, 0, 0, 0, 2, x'', 0)`,
  );
  const { web } = await serve(db);
  expect(await overviewOf(web.url, 'run')).toMatch(
    /Run 7 reads the whole catalog: 800 of about 4,000 products, 2 requests so far\. It was interrupted\. Start the daemon/,
  );
  expect((await get(web.url)).text).toContain('<progress max="4000" value="800"');
});

it('the overview shows one state of the mirror, also in parts that read it when they are rendered', async () => {
  const { db } = await filled({ items: 3 });
  execute(
    db,
    "INSERT INTO sinks (id, name, kind, address, identity, state) VALUES (1, 'shop', 'webhook', 'https://shop.example', 's', 'running')",
  );
  const store = openedStore(db);
  store.relayLease.acquire(Date.now());
  // The schedule is asked in the middle of the page.
  const plans = () => {
    execute(db, 'UPDATE lease SET holder = NULL');
    return NO_PLANS;
  };
  const { web } = await serve(db, { plans });
  expect(await overviewOf(web.url, 'sinks')).not.toContain('No daemon or relay is running');
  expect(await overviewOf(web.url, 'sinks')).toContain('No daemon or relay is running');
});

it('the overview lists the first of many held runs, sinks and parked events, and counts the rest', async () => {
  const { db } = await filled({ items: 1_200 });
  execute(
    db,
    `WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n LIMIT 100)
       INSERT INTO runs (id, kind, state, started_at, finished_at, reasons, selection)
       SELECT n, 'full', 'held', 1, 2, '[{"code":"held","why":{"code":"empty"},"verdict":null}]', '{}' FROM n;
     INSERT INTO held_removals SELECT runs.id, products.id FROM runs, products WHERE state = 'held';
     WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 50)
       INSERT INTO sinks (id, name, kind, address, identity, state)
       SELECT n, 'sink' || n, 'webhook', 'https://shop.example', n, iif(n % 2, 'running', 'disabled') FROM n;
     WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 10000)
       INSERT INTO parked (sink_id, seq, vbid, state, reason, at, change)
       SELECT 1 + 2 * (n % 2), n, 'V', 'refused', 'no', 1, '{}' FROM n`,
  );
  const { web } = await serve(db);
  const text = await overviewOf(web.url, 'attention');
  expect(text.match(/would remove more than 1,000 products/g)).toHaveLength(3);
  expect(text).toContain('97 more runs wait for a decision');
  expect(text.match(/is disabled: it receives nothing/g)).toHaveLength(3);
  expect(text).toContain('24 more sinks need a decision');
  expect(text.length).toBeLessThan(5_000);
  expect(await overviewOf(web.url, 'sinks')).toContain('40 more sinks');
  // The figures of commands are exact.
  const store = openStore(db);
  expect(store.removals.heldCount(2)).toBe(1_200);
  expect(store.sinks.parkedCount(1)).toBe(5_000);
  store.close();
});

it('the charts of the overview leave out the first load, also if runs failed before it', async () => {
  const { db } = await filled({ items: 30 });
  execute(
    db,
    `UPDATE runs SET id = 2;
     INSERT INTO runs (id, kind, state, started_at, finished_at, error, selection)
       SELECT 1, 'full', 'failed', started_at, started_at, 'no connection', '{}' FROM runs`,
  );
  const { web } = await serve(db);
  expect(await overviewOf(web.url, 'history')).toContain(
    'Charts appear here when a run has ended after the first load',
  );
});

it('the charts of the overview show the age of the mirror now only for today', async () => {
  const { db } = await filled({ items: 3 });
  const noon = Math.floor(Date.now() / (24 * HOUR)) * 24 * HOUR + 12 * HOUR;
  execute(
    db,
    `INSERT INTO runs (kind, state, started_at, finished_at, selection)
       VALUES ('delta', 'complete', ${noon - 2 * HOUR}, ${noon - 2 * HOUR}, '{}'), ('delta', 'complete', ${noon}, ${noon}, '{}')`,
  );
  const clock = settableClock();
  clock.aheadMs = 5 * 24 * HOUR;
  const { web } = await serve(db, { clock });
  expect(await overviewOf(web.url, 'mirror')).toContain('5 days ago');
  expect(await overviewOf(web.url, 'history')).toMatch(/ 3 0 0 0 0 2 h 0 min 0\.0 s /);
  const charts = async () => (await get(web.url)).text.match(/<figure class="chart"/g)?.length ?? 0;
  expect(await charts()).toBe(0);
  execute(db, `UPDATE runs SET finished_at = finished_at + ${24 * HOUR} WHERE id = 3`);
  expect(await charts()).toBe(4);
});

it('the overview shows a sink that does not deliver above the runs, the sinks and the charts', async () => {
  const { db } = await filled({ items: 3 });
  execute(
    db,
    `INSERT INTO sinks (id, name, kind, address, identity, state, error, retry_at)
       VALUES (1, 'shop', 'webhook', 'https://shop.example', 's', 'running', 'no connection', ${Date.now() + HOUR})`,
  );
  beDaemon(db);
  openedStore(db).relayLease.acquire(Date.now());
  const { web } = await serve(db);
  expect(await overviewOf(web.url, 'attention')).toContain('Nothing needs a decision');
  expect(await overviewOf(web.url, 'trouble')).toMatch(/To know Sink shop fails\. .*no connection/);
  const order = [...(await get(web.url)).text.matchAll(/<section id="(\w+)"/g)].map(([, id]) => id);
  expect(order).toEqual(['attention', 'trouble', 'mirror', 'run', 'sinks', 'history', 'start', 'decisions']);
});
