import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '@catchword/base/clock';
import { productOf } from '@catchword/catalog/product';
import { SANDBOX_DEFAULTS, type SandboxOptions } from '@catchword/sandbox/options';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { serveHttp } from '@catchword/testing/listen';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { expect, it, onTestFinished } from 'vitest';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { openedStore } from '../store/opened-store.ts';
import { runHere as cli } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, standIn, truthOf } from '../support/mirror.ts';
import { filled as anyFilled, type Place, place } from '../support/place.ts';

/** A filled mirror. Withdrawn products are gone at once, without an announcement. */
function filled(options: Partial<SandboxOptions>, more?: Record<string, string>): Promise<Place> {
  return anyFilled({ withdrawnForMs: 0, ...options }, more);
}

const command = (here: Place, ...args: string[]) => cli(args, here.settings, here.directory);

/** Adds products to the mirror that the source does not have. */
function addProducts(db: string, items: readonly { readonly vbid: string }[]): void {
  writeUnder(openedStore(db).keeperLease, Date.now(), ({ products, changes }) => {
    const [id, seq] = [products.lastId() + 1, changes.lastSeq() + 1];
    const rows = items.map((item, at) => {
      return { id: id + at, seq: seq + at, product: productOf(item.vbid, { ...item }, JSON.stringify(item)) };
    });
    products.insert(rows, 1);
    changes.appendCreated(seq, id, rows.length, 1, 1);
    products.addLiving(rows.length);
  });
}

async function expectEqual({ sandbox, db }: Place): Promise<void> {
  expect(catalogOf(db)).toEqual(await truthOf(sandbox.url));
  expectExactLog(db);
}

/** A service that answers each path with this text; null means not found. */
async function serve(answer: (path: string) => string | null): Promise<string> {
  return await serveHttp((request, response) => {
    const text = answer(new URL(request.url ?? '', 'http://localhost').pathname);
    response.writeHead(text === null ? 404 : 200, { 'content-type': 'application/json' });
    response.end(text ?? '{"errors":["Book not found"]}');
  });
}

it('a sealed run removes products that are gone, restores products that come back, and undoes removals', {
  tags: ['slow'],
}, async () => {
  const here = await filled({ items: 2_500 });
  here.sandbox.catalog.mutate({ remove: 40, seed: 1 });
  const second = await load(here.settings, 'full');
  expect(second).toMatchObject({ state: 'complete', proof: 'sealed', removed: 40, missing: 0 });
  await expectEqual(here);

  const undone = await command(here, 'runs', 'undo', '2');
  expect(undone).toMatchObject({ code: 0, stdout: 'restored 40 products that run 2 removed\n' });
  expect(catalogOf(here.db).size).toBe(2_500);
  expectExactLog(here.db);
  const again = await command(here, 'runs', 'undo', '2', '--json');
  expect(JSON.parse(again.stdout)).toEqual({ run: 2, restored: 0 });

  const third = await load(here.settings, 'full');
  expect(third).toMatchObject({ proof: 'sealed', removed: 40 });
  await expectEqual(here);
});

it('a sealed run keeps withdrawn products until they are gone, or removes them at once if the settings say so', async () => {
  const kept = await filled({ items: 500, withdrawnForMs: 86_400_000 });
  kept.sandbox.catalog.mutate({ remove: 5, seed: 1 });
  expect(await load(kept.settings, 'delta')).toMatchObject({ updated: 5, removed: 0 });
  expect(catalogOf(kept.db).size).toBe(500);

  const removed = { ...kept.settings, CATCHWORD_WITHDRAWN_AS: 'removed' };
  expect(await load(removed, 'delta')).toMatchObject({ updated: 0, removed: 5 });
  expect(await load(removed, 'delta')).toMatchObject({ updated: 0, removed: 0, created: 0 });
  expect(await load(removed, 'full')).toMatchObject({ proof: 'sealed', removed: 0 });
  await expectEqual(kept);
});

it('a sealed run removes vanished products even if as many were withdrawn, and verify agrees', async () => {
  const here = await filled({ items: 1_500, withdrawnForMs: 86_400_000 }, { CATCHWORD_WITHDRAWN_AS: 'removed' });
  here.sandbox.catalog.mutate({ remove: 3, seed: 1 });
  const verified = await command(here, 'verify');
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('0 differences, 3 drifted') as string });
  // One product more than the source has; as many as were announced.
  addProducts(here.db, [{ vbid: 'STRANGER' }]);
  expect(await load(here.settings, 'full')).toMatchObject({ proof: 'sealed', removed: 4, missing: 0 });
  await expectEqual(here);
});

it('a sealed run removes any number of announced products', async () => {
  const here = await place({ items: 1_000, withdrawnForMs: 86_400_000 });
  await load({ ...here.settings, CATCHWORD_DELTA_OVERLAP: '0s' }, 'full');
  here.sandbox.catalog.mutate({ remove: 300, seed: 1 });
  await load(here.settings, 'delta');
  // After the overlap, so that the delta does not show them any more.
  const later = { ...here.settings, CATCHWORD_DELTA_OVERLAP: '0s' };
  await systemClock.sleep(3_500);
  expect(await load(later, 'full')).toMatchObject({ state: 'complete', proof: 'sealed', removed: 300 });
  await expectEqual(here);
});

async function held(more: Record<string, string> = {}): Promise<Place> {
  const here = await filled({ items: 2_500, details: true }, more);
  here.sandbox.catalog.mutate({ remove: 150, update: 10, seed: 1 });
  return here;
}

it('more removals than the limit are counted apart from removals that the source announced', {
  tags: ['slow'],
}, async () => {
  const here = await held();
  addProducts(
    here.db,
    Array.from({ length: 20 }, (_, at) => ({ vbid: `WITHDRAWN-${at}`, distributable: false })),
  );
  const run = await command(here, 'sync', '--full');
  expect(run.code).toBe(5);
  expect(run.stdout).toContain(
    'held: 150 removals are more than the limit of 100; the source announced 20 more, 170 in all\n',
  );
  expect(run.stdout).toContain('would remove 170 products:');
});

it('more removals than the limit are held, listed with titles, and applied when approved', {
  tags: ['slow'],
}, async () => {
  const here = await held();
  const run = await command(here, 'sync', '--full');
  expect(run).toMatchObject({ code: 5, stderr: '' });
  expect(run.stdout).toContain('held: 150 removals are more than the limit of 100');
  expect(run.stdout).toContain('would remove 150 products:');
  expect(catalogOf(here.db).size).toBe(2_500);

  const shown = JSON.parse((await command(here, 'run', '2', '--json')).stdout) as {
    state: string;
    held_removals: { vbid: string; title: string }[];
  };
  expect(shown.state).toBe('held');
  expect(shown.held_removals).toHaveLength(150);
  expect(shown.held_removals[0]?.title).toMatch(/\w/);

  const approved = await command(here, 'approve', '2');
  expect(approved).toMatchObject({ code: 0, stdout: 'run 2 is approved: 150 products removed\n' });
  await expectEqual(here);
  const twice = await command(here, 'approve', '2');
  expect(twice.code).toBe(1);
  expect(twice.stderr).toContain('run 2 is complete: it does not hold removals [RUN_NOT_ACTIVE]');
});

it('more removals than the limit are dropped when rejected', { tags: ['slow'] }, async () => {
  const here = await held();
  expect(await load(here.settings, 'full')).toMatchObject({ state: 'held', updated: 10, removed: 0, missing: 150 });
  expect((await command(here, 'reject', '2')).stdout).toBe('run 2 is rejected: nothing is removed\n');
  expect(catalogOf(here.db).size).toBe(2_500);
  expectExactLog(here.db);
  // The next run finds the same removals, and holds them again.
  expect(await load(here.settings, 'full')).toMatchObject({ state: 'held', missing: 150 });
});

it('more removals than the limit are superseded by the next full run', { tags: ['slow'] }, async () => {
  const here = await held();
  await load(here.settings, 'full');
  expect(await load({ ...here.settings, CATCHWORD_REMOVAL_LIMIT: '10%' }, 'full')).toMatchObject({
    state: 'complete',
    removed: 150,
  });
  const store = openedStore(here.db);
  expect(store.runs.get(2)).toMatchObject({ state: 'cancelled', error: 'superseded by run 3; nothing was removed' });
  await expectEqual(here);
});

it('more removals than the limit shrink by products that were seen since, or that a lookup finds', {
  tags: ['slow'],
}, async () => {
  const here = await held();
  await load(here.settings, 'full');
  const gone = openedStore(here.db).removals.held(2);
  const [first, second] = gone.map(({ vbid }) => vbid) as [string, string];
  // A service that still has two of them: a delta shows one, a lookup finds the other.
  const url = await serve((path) => {
    const vbid = path.split('/').at(-1) ?? '';
    if (vbid === 'products') {
      return `{"num_items":1,"page":1,"per_page":1000,"total_pages":1,"items":[{"vbid":"${first}"}]}`;
    }
    return gone.some((one) => one.vbid === vbid) && vbid !== second ? null : JSON.stringify({ vbid });
  });
  const other = { ...here.settings, CATCHWORD_BASE_URL: url, CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' };
  standIn(here.db, url);
  await load(other, 'delta');
  const approved = await cli(['approve', '2', '--json'], other, here.directory);
  expect(JSON.parse(approved.stdout)).toMatchObject({ state: 'complete', removed: 148 });
  expect(catalogOf(here.db).has(first)).toBe(true);
  expect(catalogOf(here.db).has(second)).toBe(true);
  expectExactLog(here.db);
});

it('more removals than the limit are not approved while another run, which may have seen them, is unfinished', {
  tags: ['slow'],
}, async () => {
  const here = await held();
  await load(here.settings, 'full');
  const stop = new AbortController();
  const reading = load({ ...here.settings, CATCHWORD_RATE_LIMIT: '1/s' }, 'full', stop.signal);
  const store = openedStore(here.db);
  while ((store.runs.unfinished()?.pages ?? 0) === 0) await systemClock.sleep(20);
  stop.abort();
  await expect(reading).rejects.toMatchObject({ code: 'INTERRUPTED' });
  const approved = await command(here, 'approve', '2');
  expect(approved).toMatchObject({ code: 1, stdout: '' });
  expect(approved.stderr).toContain(
    'run 3 is unfinished, and may have seen products that this run removes [RUN_NOT_ACTIVE]',
  );
  expect(catalogOf(here.db).size).toBe(2_500);
  // Products that the cancelled run has seen, in the first window, are off the list as well.
  await command(here, 'cancel', '3');
  expect(store.removals.heldCount(2)).toBe(150);
  expect((await command(here, 'approve', '2')).code).toBe(0);
  await expectEqual(here);
});

for (const hasRedis of [false, true]) {
  it.skipIf(hasRedis && !redisAvailable)(
    `removals of a catalog that was empty for a while are looked up (with Redis: ${hasRedis}), even if no other product is left`,
    { tags: hasRedis ? ['stores', 'slow'] : [] },
    async () => {
      const redis = hasRedis ? await startRedis() : null;
      onTestFinished(() => redis?.stop());
      const here = await filled(
        { items: 120 },
        { CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid', REDIS_URL: redis?.url ?? '' },
      );
      const empty = await startSandbox({ items: 0 });
      onTestFinished(() => empty.stop());
      const settings = { ...here.settings, CATCHWORD_BASE_URL: empty.url };
      standIn(here.db, empty.url);
      expect(await load(settings, 'full')).toMatchObject({ state: 'held', missing: 120 });
      const doubted = await cli(['approve', '2'], settings, here.directory);
      expect(doubted.code).toBe(1);
      expect(doubted.stderr).toContain(
        'the lookup finds nothing, not even products that should exist [SOURCE_REFUSED]',
      );
      standIn(here.db, here.sandbox.url);
      const spared = await command(here, 'approve', '2', '--json');
      expect(JSON.parse(spared.stdout)).toMatchObject({ state: 'complete', removed: 0 });
      await expectEqual(here);
    },
  );
}

it('removals of an approved run are dated after the lookups', async () => {
  const more = { CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid', CATCHWORD_REMOVAL_LIMIT: '1' };
  const here = await filled({ items: 60, latencyMs: 5 }, more);
  here.sandbox.catalog.mutate({ remove: 20 });
  expect(await load(here.settings, 'full')).toMatchObject({ state: 'held', missing: 20 });
  expect((await command(here, 'approve', '2')).code).toBe(0);
  const requests = (await (await fetch(`${here.sandbox.url}/_sandbox/requests`)).json()) as { at: number }[];
  const { stdout } = await command(here, 'changes', '--after', '60');
  const events = stdout.trim().split('\n');
  const times = events.map((line) => Date.parse((JSON.parse(line) as { time: string }).time));
  expect(times).toHaveLength(20);
  expect(Math.min(...times)).toBeGreaterThanOrEqual(requests.at(-1)?.at ?? Number.POSITIVE_INFINITY);
});

it('an empty catalog is held, however small the mirror', async () => {
  const here = await filled({ items: 20 });
  here.sandbox.catalog.mutate({ remove: 20 });
  const run = await load(here.settings, 'full');
  expect(run).toMatchObject({ state: 'held', removed: 0 });
  expect(run.reasons).toEqual(['held: the source lists no product at all']);
  expect(catalogOf(here.db).size).toBe(20);
});

const plain = { CATCHWORD_SEAM: 'off', CATCHWORD_PER_PAGE: '500' };

it('an open run reads plain pages if the source ignores the requested page size, and says so', async () => {
  const here = await place({ items: 2_500, maxPerPage: 300 });
  const run = await load(here.settings, 'full');
  expect(run).toMatchObject({ state: 'complete', proof: 'open', created: 2_500 });
  expect(run.reasons).toEqual([
    'the source answers 300 products a page whatever it is asked for, so pages cannot overlap (try CATCHWORD_PER_PAGE=300)',
  ]);
  await expectEqual(here);
  // With the size that the source answers, a run can be sealed.
  expect(await load({ ...here.settings, CATCHWORD_PER_PAGE: '300' }, 'full')).toMatchObject({ proof: 'sealed' });
});

it('an open run moves the watermark by deltas of many plain pages, if their products stood still', async () => {
  const here = await filled({ items: 2_500, maxPerPage: 100, withdrawnForMs: 86_400_000 });
  const store = openedStore(here.db);
  const before = store.watermark() ?? 0;
  here.sandbox.catalog.mutate({ update: 350, seed: 1 });
  // Later deltas of the run begin after the changes, less the overlap, by a clock that counts whole seconds.
  await delay(4_000);
  const run = await load({ ...here.settings, CATCHWORD_DELTA_OVERLAP: '1s' }, 'delta');
  expect(run).toMatchObject({ state: 'complete', proof: 'open', updated: 350 });
  expect(store.watermark()).toBe(run.sourceTime);
  expect(store.watermark()).toBeGreaterThan(before);
  await expectEqual(here);
});

it('an open run removes products that several runs did not see', async () => {
  const here = await filled({ items: 2_500 }, plain);
  here.sandbox.catalog.mutate({ remove: 7, seed: 1 });
  expect(await load(here.settings, 'full')).toMatchObject({ proof: 'open', removed: 0, missing: 7 });
  expect(await load(here.settings, 'delta')).toMatchObject({ removed: 0 });
  expect(await load(here.settings, 'full')).toMatchObject({ proof: 'open', removed: 7, missing: 0 });
  await expectEqual(here);
});

it('an open run removes products at once that a lookup does not find', async () => {
  const here = await filled({ items: 2_500 }, { ...plain, CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' });
  here.sandbox.catalog.mutate({ remove: 7, seed: 1 });
  const run = await load(here.settings, 'full');
  expect(run).toMatchObject({ proof: 'open', removed: 7, missing: 0, evidence: { lookups: 15 } });
  await expectEqual(here);
});

it('an open run ignores lookups that do not find any product', async () => {
  const here = await filled({ items: 2_500 }, { ...plain, CATCHWORD_LOOKUP_PATH: '/v4/nowhere/:vbid' });
  here.sandbox.catalog.mutate({ remove: 7, seed: 1 });
  expect(await load(here.settings, 'full')).toMatchObject({ proof: 'open', removed: 0, missing: 7 });
});

const DAY = 86_400_000;

it.each([DAY, -DAY])('the clock of the source may be wrong by %i ms', async (offMs) => {
  const clock = { ...SANDBOX_DEFAULTS.clock, now: () => Date.now() + offMs };
  // With an overlap of a second, the fraction that `Date` omits may cost one more delta.
  const here = await filled({ items: 1_500, clock, withdrawnForMs: DAY }, { CATCHWORD_DELTA_OVERLAP: '10s' });
  here.sandbox.catalog.mutate({ create: 3, update: 4, seed: 1 });
  expect(await load(here.settings, 'delta')).toMatchObject({ created: 3, updated: 4, pages: 1 });
  await expectEqual(here);
});

it('the clock of the source may be put back: changes with an earlier time than the watermark are still found', async () => {
  let offMs = 0;
  const clock = { ...SANDBOX_DEFAULTS.clock, now: () => Date.now() + offMs };
  const here = await filled({ items: 1_500, clock, withdrawnForMs: DAY }, { CATCHWORD_DELTA_OVERLAP: '10s' });
  // The sandbox's change times never go back, so another sandbox shows them an hour earlier.
  offMs = -3_600_000;
  const other = await startSandbox({ items: 1_500, clock, withdrawnForMs: DAY });
  onTestFinished(() => other.stop());
  other.catalog.mutate({ create: 2, update: 5, seed: 1 });
  const moved = { ...here, sandbox: other, settings: { ...here.settings, CATCHWORD_BASE_URL: other.url } };
  standIn(here.db, other.url);
  const run = await load(moved.settings, 'delta');
  expect(run).toMatchObject({ created: 2, updated: 5, evidence: { deltas: 2 } });
  await expectEqual(moved);
  const store = openedStore(here.db);
  const watermark = store.watermark();
  other.catalog.mutate({ update: 3, seed: 2 });
  expect(await load(moved.settings, 'delta')).toMatchObject({ updated: 3, evidence: { deltas: 1 } });
  expect(store.watermark()).toBe(watermark);
});
