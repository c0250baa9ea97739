import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { openHarness, until } from '../../src/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { post } from '../http/browser-requests.ts';
import { serve } from '../http/place.ts';
import { readableLog } from '../relay/readable-log.ts';
import { runHere } from '../support/in-process.ts';

const body = (at: number, price: string) => `{"vbid":"P${at}","title":"t${at}","price":${price}}`;

/** Products of a shop, each with a price. */
const shop = (count: number, price: string, from = 0) =>
  Array.from({ length: count }, (_, at) => ({ vbid: `P${from + at}`, body: body(from + at, price) }));

/** A mirror of 300 products, a sink that stores them in a file, and the commands that look after it. */
async function scene() {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  const directory = temporaryDirectory();
  const env: Record<string, string> = {
    CATCHWORD_BASE_URL: 'http://service.example',
    CATCHWORD_DB: bench.store.path,
    CATCHWORD_SINK_SHOP: `jsonl:${join(directory, 'out.jsonl')}`,
  };
  const command = (args: readonly string[]) => runHere([...args], env, directory);
  const row = () => bench.store.sinks.get('shop');
  bench.change(shop(300, '1'));
  /** Starts a relay with these settings of the view. */
  const relay = async (view: Record<string, string> = {}) => {
    await bench.stop();
    Object.assign(env, { CATCHWORD_SINK_SHOP_WHERE: '', CATCHWORD_SINK_SHOP_FIELDS: '', ...view });
    const [setting] = checkedSettings(env, 'nothing').sinks;
    if (setting === undefined) throw new Error('no sink');
    bench.start(sinkConfig(setting), { removalLimit: () => 100 });
  };
  return {
    bench,
    env,
    row,
    relay,
    isAt: (seq: number) => until('the sink is there', () => row()?.cursor === seq && row()?.state === 'running'),
    isHeld: () => until('the sink is held', () => row()?.state === 'held'),
    text: async (...args: string[]) => {
      const { stdout, stderr } = await command(args);
      return stdout + stderr;
    },
    json: async (...args: string[]) => JSON.parse((await command([...args, '--json'])).stdout) as unknown,
  };
}

it('sink preview counts what a view would change in a store, and sends and writes nothing', async () => {
  const { bench, env, relay, isAt, json, text, row } = await scene();
  const few = ['--where', "title LIKE 't1%'", '--fields', 'title'];
  const sample = { vbid: 'P1', op: 'created', before: null, after: '{"vbid":"P1","title":"t1"}' };
  const none = { has: 0, matching: 111, created: 111, updated: 0, removed: 0, failed: 0, failure: null };
  expect(await json('sink', 'preview', 'shop', ...few)).toMatchObject({ ...none, held: false });
  await relay();
  await isAt(300);
  const before = row();
  const found = await json('sink', 'preview', 'shop', ...few);
  const after = { before: body(1, '1'), after: sample.after };
  expect(found).toMatchObject({ has: 300, matching: 111, created: 0, updated: 111, removed: 189, held: true });
  expect(found).toMatchObject({
    removal_limit: 100,
    samples: [{ vbid: 'P0', op: 'removed', after: null }, { ...after, op: 'updated' }, {}, {}, {}],
  });
  const { bytes } = found as { bytes: { before: number; after: number } };
  expect(bytes.before).toBe(shop(300, '1').reduce((sum, one) => sum + one.body.length, 0));
  expect(bytes.after).toBe(
    shop(300, '1')
      .filter((one) => /^P1/.test(one.vbid))
      .reduce((sum, { vbid }) => sum + JSON.stringify({ vbid, title: `t${vbid.slice(1)}` }).length, 0),
  );
  const said = await text('sink', 'preview', 'shop', ...few);
  expect(said).toContain(
    'it would create 0 products, update 111 and remove 189 of the 300 that the store has; 111 match',
  );
  expect(said).toContain(
    'it would be held, because its view was changed, and would remove 189 of 300 products; CATCHWORD_REMOVAL_LIMIT allows 100; then see: npx catchword sink list',
  );
  expect(said).toMatch(
    /P1 updated\n {2}now: {2}\{"vbid":"P1","title":"t1","price":1\}\n {2}then: \{"vbid":"P1","title":"t1"\}\n/,
  );
  expect(row()).toEqual(before);
  expect(await json('sink', 'preview', 'shop')).toMatchObject({ created: 0, updated: 0, removed: 0, samples: [] });
  env.CATCHWORD_SINK_SHOP_WHERE = "title <> 't7'";
  expect(await json('sink', 'preview', 'shop')).toMatchObject({ removed: 1, where: env.CATCHWORD_SINK_SHOP_WHERE });
  expect(await json('sink', 'preview', 'shop', '--where', '')).toMatchObject({ removed: 0, where: null });
  await bench.stop();
  // Only a changed view is held, not what the mirror already lost.
  bench.change(shop(150, '1').map(({ vbid }) => ({ vbid, body: null })));
  expect(await json('sink', 'preview', 'shop', '--where', '')).toMatchObject({ removed: 150, held: false });
});

it('sink preview says that a view which names a member wrongly would be held, as the relay decides it', async () => {
  const { env, relay, isAt, isHeld, json, text } = await scene();
  const mistyped = { CATCHWORD_SINK_SHOP_FIELDS: 'titel,price' };
  Object.assign(env, mistyped);
  const expected = 'it would be held, because its view names a member wrongly: ';
  expect(await json('sink', 'preview', 'shop')).toMatchObject({ has: 0, held: true });
  expect(await text('sink', 'preview', 'shop')).toContain(expected);
  await relay();
  await isAt(300);
  Object.assign(env, mistyped);
  expect(await text('sink', 'preview', 'shop')).toContain(expected);
  await relay(mistyped);
  await isHeld();
});

it('sink preview says on how many products an expression fails, and which option or setting is wrong', async () => {
  const { env, text, json } = await scene();
  const failing = ['--where', "abs(CASE title WHEN 't3' THEN -9223372036854775807 - 1 ELSE 1 END)"];
  expect(await json('sink', 'preview', 'shop', ...failing)).toMatchObject({
    matching: 299,
    failed: 1,
    failure: 'P3: integer overflow',
  });
  expect(await text('sink', 'preview', 'shop', ...failing)).toContain(
    'an expression fails on 1 product, last on P3: integer overflow',
  );
  expect(await text('sink', 'preview', 'shop', '--where', 'titel = 1')).toMatch(
    /--where: no such column: titel \[USAGE\]/,
  );
  expect(await text('sink', 'preview', 'shop', '--fields', 'titel || 1')).toMatch(/--fields: .* \[USAGE\]/);
  expect(await text('sink', 'preview', 'none')).toContain('the mirror has no sink none [NOT_FOUND]');
  env.CATCHWORD_SINK_SHOP_WHERE = 'titel = 1';
  expect(await text('sink', 'preview', 'shop')).toMatch(
    /CATCHWORD_SINK_SHOP_WHERE: no such column: titel \[CONFIG_INVALID\]/,
  );
});

it('a view can come from files, whose line breaks at the end do not belong to it', async () => {
  const { env, relay, isAt, json, text, row, bench } = await scene();
  const directory = temporaryDirectory();
  const [where, fields] = [join(directory, 'where.sql'), join(directory, 'fields')];
  writeFileSync(where, "title = 't1'\n  OR title = 't2'\r\n");
  writeFileSync(fields, 'title\n');
  await relay({ CATCHWORD_SINK_SHOP_WHERE_FILE: where, CATCHWORD_SINK_SHOP_FIELDS_FILE: fields });
  await isAt(300);
  const view = { where: "title = 't1'\n  OR title = 't2'", fields: 'title' };
  expect(await json('sink', 'list')).toMatchObject([{ state: 'live', ...view }]);
  expect(row()?.delivered).toBe(2);
  await bench.stop();
  expect(await json('sink', 'preview', 'shop')).toMatchObject({ has: 2, matching: 2, is_changed: false, ...view });

  const missing = join(directory, 'missing');
  Object.assign(env, { CATCHWORD_SINK_SHOP_WHERE_FILE: missing, CATCHWORD_SINK_SHOP_FIELDS_FILE: missing });
  const found = await text('sink', 'preview', 'shop');
  for (const part of ['WHERE', 'FIELDS']) {
    expect(found).toContain(
      `CATCHWORD_SINK_SHOP_${part}_FILE: cannot read the file that it names (it does not exist, ENOENT)`,
    );
  }
  expect(found).toContain('[CONFIG_INVALID]');
  writeFileSync(where, '\n');
  Object.assign(env, { CATCHWORD_SINK_SHOP_WHERE_FILE: where, CATCHWORD_SINK_SHOP_FIELDS_FILE: '' });
  expect(await text('sink', 'preview', 'shop')).toContain(
    'CATCHWORD_SINK_SHOP_WHERE_FILE: the file that it names is empty',
  );
});

it('a sink whose changed view is held is shown with the forecast in sink list, status, the page and metrics', async () => {
  const { bench, relay, isAt, isHeld, json, text } = await scene();
  await relay();
  await isAt(300);
  await relay({ CATCHWORD_SINK_SHOP_WHERE: "title = 't1'" });
  await isHeld();
  const reason = 'create 0 products, update 0 and remove 299 of the 300 that the store has; 1 match';
  const forecast = { has: 300, matching: 1, created: 0, updated: 0, removed: 299, failed: 0 };
  const held = { why: 'view', where: "title = 't1'", fields: null, forecast };
  expect(await json('sink', 'list')).toMatchObject([{ state: 'held', where: null, held }]);
  expect(await json('status')).toMatchObject({
    problems: expect.arrayContaining(['sink:shop']),
    sinks: [{ state: 'held', held }],
  });
  for (const said of [await text('sink', 'list'), await text('status')]) {
    expect(said).toContain(reason);
    expect(said).toMatch(/npx catchword sink approve shop \d+; or put CATCHWORD_SINK_SHOP_WHERE and _FIELDS back/);
  }
  const { web } = await serve(bench.store.path);
  const get = async (path: string) => await (await fetch(web.url + path)).text();
  const page = await get('/sinks/shop');
  expect(page).toContain(reason);
  expect([...page.matchAll(/name="action" value="([\w-]+)"/g)].map(([, action]) => action)).toEqual([
    'release',
    'replay',
    'replay',
  ]);
  const metrics = await get('/metrics');
  expect(metrics).toMatch(/catchword_sink_state\{sink="shop",state="held"\} 1/);
  expect(metrics).toContain('catchword_sink_view_failures_total{sink="shop"} 0');
  expect(await text('sink', 'approve', 'shop')).toContain('shop gets what its changed view changes');
  await until('the view is there', () => bench.store.sinks.get('shop')?.cursor === 300);
  await expect.poll(() => json('sink', 'list')).toMatchObject([{ state: 'live', where: "title = 't1'", held: null }]);
});

it('an approval that is entered twice on the command line does not approve what holds the sink next', async () => {
  const { relay, isAt, isHeld, json, text, row } = await scene();
  const hasView = (where: string | null) =>
    expect.poll(() => json('sink', 'list')).toMatchObject([{ state: 'live', where, held: null }]);
  const few = { CATCHWORD_SINK_SHOP_WHERE: "title < 't2'" };
  await relay();
  await isAt(300);
  await relay(few);
  await isHeld();
  const shown = /approve shop \d+/.exec(await text('sink', 'list'))?.[0].split(' ') ?? [];
  expect(await text('sink', ...shown)).toContain('shop gets what its changed view changes');
  await hasView(few.CATCHWORD_SINK_SHOP_WHERE);
  await relay();
  await hasView(null);
  // The same view, but another time.
  await relay(few);
  await isHeld();
  const asked = 'shop was approved before, and is held again: its view was changed: ';
  for (const [again, why] of [
    [shown, 'shop is held for another reason by now: its view was changed: '],
    [['approve', 'shop'], asked],
    [['approve', 'shop', '--newest'], asked],
  ] as const) {
    const refused = await text('sink', ...again);
    expect(refused).toContain(why);
    expect(refused).toMatch(/To send it: npx catchword sink approve shop \d+;/);
  }
  expect(row()).toMatchObject({ state: 'held', held: { isApproved: false } });
  const [{ held }] = (await json('sink', 'list')) as [{ held: { number: number } }];
  expect(await text('sink', 'approve', 'shop', String(held.number))).toContain('shop gets');
});

it('the first approval of a sink that was forgotten and made again needs no number', async () => {
  const { bench, env, relay, isAt, isHeld, text, row } = await scene();
  for (const where of ["title < 't2'", "title < 't1'"]) {
    // Its store is made again, too.
    env.CATCHWORD_SINK_SHOP += '1';
    await relay();
    await isAt(300);
    await relay({ CATCHWORD_SINK_SHOP_WHERE: where });
    await isHeld();
    expect(await text('sink', 'approve', 'shop')).toContain('shop gets what its changed view changes');
    await until('the store has it', () => row()?.held === null);
    await bench.stop();
    bench.store.request(({ sinks }) => sinks.forget(row()?.id ?? 0));
  }
});

it('a sink that an unusual run holds is shown with the run and both ways to approve it', async () => {
  const { bench, relay, isAt, isHeld, json, text, row } = await scene();
  await relay();
  await isAt(300);
  writeUnder(bench.store.keeperLease, Date.now(), ({ runs }) => {
    const id = runs.create({ kind: 'full', from: null, startedAt: 0, tick: null, selection: '{}' });
    runs.noteLosses(id, { price: 300 }, { from: 301, field: 'price', products: 300, living: 300 });
  });
  bench.change(shop(300, 'null'));
  await isHeld();
  expect(await json('sink', 'list')).toMatchObject([
    { held: { why: 'run', reason: expect.stringContaining('emptied price of 300 of 300 products') } },
  ]);
  expect(await text('sink', 'list')).toMatch(/npx catchword sink approve shop \d+ --newest/);
  const [, number = ''] = /approve shop (\d+)\./.exec(await text('sink', 'list')) ?? [];
  const command = `npx catchword sink approve shop ${number}`;
  expect(await text('status')).toContain(`Waiting for you: shop. To send its changes: ${command}. Once`);
  expect(await text('sink', 'resume', 'shop')).toContain(`To let it go on: ${command}.`);
  const { web } = await serve(bench.store.path);
  const page = await (await fetch(`${web.url}/sinks/shop`)).text();
  expect(page).toContain('value="release-newest"');
  const previewed = await (await fetch(`${web.url}/sinks/shop?preview=1&where=title+%3D+'t1'&fields=title`)).text();
  expect(previewed).toContain('Judged 300 products. Nothing was sent.');
  expect(previewed).toContain('it would create 0 products, update 1 and remove 299 of the 300 that the store has');
  const wrong = await (await fetch(`${web.url}/sinks/shop?preview=1&where=titel+%3D+1&fields=`)).text();
  expect(wrong).toContain('where: no such column: titel. Did you mean title?');
  bench.change(shop(300, '1'));
  // From a page that shows another run, or a changed view.
  for (const argument of ['7', '0'])
    for (const action of ['release', 'release-newest'])
      await post(web, '/actions', { action, target: 'shop', argument });
  expect(row()).toMatchObject({ state: 'held', approvedRun: 0 });
  const [, run = ''] = /name="argument" value="(\d+)"/.exec(page) ?? [];
  expect((await post(web, '/actions', { action: 'release-newest', target: 'shop', argument: run })).status).toBe(303);
  await isAt(900);
  expect(row()).toMatchObject({ held: null, delivered: 300 });
});

it('sink list says how far a store is that gets what differs', async () => {
  const { bench, relay, isAt, text, json, row } = await scene();
  await relay();
  await isAt(300);
  await bench.stop();
  const before = row();
  writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) => {
    if (before !== undefined) sinks.changeView(before, { where: "title <> 't7'", fields: null });
  });
  expect(await json('sink', 'list')).toMatchObject([{ state: 'reconciling', cursor: 0, load_to: 300 }]);
  expect(await text('sink', 'list')).toContain('shop: load: only what differs from what its store has, up to 0 of 300');
});

it('product --sink says what a store has of a product, and why', async () => {
  const { bench, env, relay, isAt, isHeld, json, text, row } = await scene();
  const at = async (vbid: string) => ((await json('product', vbid, '--sink', 'shop')) as { sink: unknown }).sink;
  const whole = { vbid: 'P7', title: 't7', price: 1 };
  const will = 'the sink was not fed yet; the store will get it';
  expect(await at('P7')).toMatchObject({ has: null, gets: whole, why: will });
  const view = { CATCHWORD_SINK_SHOP_WHERE: "title <> 't8'", CATCHWORD_SINK_SHOP_FIELDS: 'title' };
  await relay(view);
  await isAt(300);
  const thin = { vbid: 'P7', title: 't7' };
  const now = { sink: 'shop', position: 300, known: true, has: thin, gets: thin, why: 'the store has it as it is now' };
  expect(await at('P7')).toEqual(now);
  expect(await at('P8')).toMatchObject({ has: null, gets: null, why: 'it does not match' });
  expect(await text('product', 'P8', '--sink', 'shop')).toMatch(
    /\nshop, as of change 300: it does not match\nit has:\n {2}nothing\n$/,
  );
  await bench.stop();
  bench.change([
    { vbid: 'P7', body: '{"vbid":"P7","title":"new"}' },
    { vbid: 'P9', body: null },
  ]);
  const waits = { has: thin, gets: { vbid: 'P7', title: 'new' }, why: 'change 301 of it waits: the sink is at 300' };
  expect(await at('P7')).toMatchObject(waits);
  expect(await text('product', 'P7', '--sink', 'shop')).toMatch(/it has:\n.*"t7".*it is to have:\n.*"new"/s);
  expect(await at('P9')).toMatchObject({ has: { vbid: 'P9' }, gets: null, why: expect.stringMatching(/^change 302/) });
  env.CATCHWORD_SINK_SHOP_WHERE = "abs(CASE title WHEN 'new' THEN -9223372036854775807 - 1 ELSE 1 END)";
  expect(await at('P7')).toMatchObject({ has: thin, gets: null });
  expect(await text('product', 'P7', '--sink', 'none')).toContain('the mirror has no sink none [NOT_FOUND]');
  await relay(view);
  await isAt(302);
  expect(await at('P9')).toMatchObject({ has: null, gets: null, why: 'the product is removed' });
  await relay({ CATCHWORD_SINK_SHOP_WHERE: "title = 'x'" });
  await isHeld();
  expect(await at('P7')).toMatchObject({
    gets: null,
    why: expect.stringMatching(/^the sink is held: its view was changed/),
  });
  await bench.stop();
  const [change] = bench.events(301);
  const id = row()?.id ?? 0;
  bench.change(shop(1, '5', 7));
  const newest = bench.events(302)[0];
  if (change === undefined || newest === undefined) throw new Error('no event');
  writeUnder(bench.store.relayLease, Date.now(), ({ sinks }) =>
    sinks.park(id, { seq: 303, reason: 'poison', at: 0, change: newest }),
  );
  expect(await at('P7')).toMatchObject({
    has: { title: 'new' },
    why: 'event 303 of it is parked: npx catchword sink parked shop',
  });
});

it('doctor names the view of a sink, and members that no product has', async () => {
  const { env, json } = await scene();
  const view = async () => ((await json('doctor')) as { check: string }[]).filter(({ check }) => check === 'view');
  expect(await view()).toEqual([]);
  env.CATCHWORD_SINK_SHOP_WHERE = "title <> 't8'";
  env.CATCHWORD_SINK_SHOP_FIELDS = 'titel, price, price.eur';
  const text = "shop gets titel, price, price.eur, where title <> 't8'";
  const found = 'Of the first 300 products: no product has titel: did you mean title?; no product has price.eur';
  const hint = `${found}. Correct CATCHWORD_SINK_SHOP_WHERE or _FIELDS.`;
  expect(await view()).toEqual([{ check: 'view', level: 'note', text, hint }]);
  env.CATCHWORD_SINK_SHOP_FIELDS = 'title, vbid';
  expect(await view()).toMatchObject([{ level: 'ok', text: "shop gets title, vbid, where title <> 't8'" }]);
});

it('doctor says where a comparison of a view may not be what a person expects', async () => {
  const { env, json, bench } = await scene();
  bench.change([{ vbid: 'E', body: JSON.stringify({ vbid: 'E', edition: '2nd', pages: 7 }) }]);
  const hint = async (where: string) => {
    env.CATCHWORD_SINK_SHOP_WHERE = where;
    const findings = (await json('doctor')) as { check: string; hint?: string }[];
    return findings.find(({ check }) => check === 'view')?.hint?.replace(/^.*?: (.*)\. Correct.*$/s, '$1');
  };
  const cast = 'a text is greater than every number: write CAST(edition AS REAL)';
  expect(await hint('edition > 5 OR edition IS NULL')).toBe(`edition is a text in 1, and ${cast}`);
  expect(await hint("body->>'edition' BETWEEN 1 AND 5")).toContain("body->>'edition' is a text in 1");
  expect(await hint("vbid = 'E' OR lower(title) = 'ärger'")).toBe(
    'lower, upper and LIKE do not fold ä, only the letters A to Z',
  );
  expect(await hint("body->>'pages' > 5 AND CAST(edition AS REAL) < 5 AND lower(vbid) <> 'x'")).toBeUndefined();
});

it('a filter that matches none of the products is named by doctor, a preview, an export and the start of its sink', async () => {
  const { env, bench, text } = await scene();
  const none =
    'the filter matches none of 300 products: compare its values with those that the source writes, such as ePub';
  const commands = [['doctor'], ['sink', 'preview', 'shop'], ['export', '--where', "title = 'T1'"]];
  env.CATCHWORD_SINK_SHOP_WHERE = "title = 't299'";
  expect(await text('doctor')).not.toContain('matches none');
  env.CATCHWORD_SINK_SHOP_WHERE = "title = 'T1'";
  for (const command of commands) expect(await text(...command), command[0]).toContain(none);
  const { lines, log } = readableLog();
  const [setting] = checkedSettings(env, 'nothing').sinks;
  if (setting === undefined) throw new Error('no sink');
  bench.start(sinkConfig(setting), { log });
  const warning = () => lines.find(({ msg }) => msg === 'the view may be a mistake');
  await until('the start is logged', () => warning() !== undefined);
  expect(warning()).toMatchObject({ sink: 'shop', reason: none });
});

it('a filter over a mirror without products is not named', async () => {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  const env = { CATCHWORD_DB: bench.store.path };
  const { stderr } = await runHere(['export', '--where', "title = 'T1'"], env, temporaryDirectory());
  expect(stderr).toMatch(/^0 products as of change 0 /);
});

it('sink preview --at compares the products as of a change or a time, and says if the log does not reach back', async () => {
  const { bench, relay, isAt, json, text } = await scene();
  const between = new Date().toISOString();
  bench.change(shop(100, '2'), 2, Date.parse(between) + 60_000);
  await relay();
  await isAt(400);
  const cheap = ['--where', "body->>'price' < 2", '--fields', ''];
  expect(await json('sink', 'preview', 'shop', ...cheap)).toMatchObject({
    as_of: 400,
    has: 300,
    matching: 200,
    removed: 100,
  });
  const before = { as_of: 300, has: 300, matching: 300, removed: 0 };
  expect(await json('sink', 'preview', 'shop', ...cheap, '--at', '300')).toMatchObject(before);
  expect(await json('sink', 'preview', 'shop', ...cheap, '--at', between)).toMatchObject(before);
  expect(await text('sink', 'preview', 'shop', '--at', '2199-01-01')).toContain(
    '"2199-01-01" is in the future [USAGE]',
  );
  expect(await text('sink', 'preview', 'shop', '--at', '1999-12-31')).toContain(
    'the mirror did not exist at 1999-12-31',
  );
  expect(await text('sink', 'preview', 'shop', '--at', '401')).toContain(
    '--at: 401 is beyond the newest change, which is 400 [USAGE]',
  );
  expect(await text('sink', 'preview', 'shop', '--at', 'soon')).toContain(
    'is neither the number of a change nor a time',
  );
  writeUnder(bench.store.keeperLease, Date.now(), ({ changes }) => changes.prune(350));
  expect(await text('sink', 'preview', 'shop', '--at', '300')).toMatch(
    /no longer holds the mirror as of change 300 \[NOT_FOUND\]\nhint {2}Changes up to 350 were pruned/,
  );
});
