import { systemClock } from '@catchword/base/clock';
import { serveHttp } from '@catchword/testing/listen';
import { expect, it } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { mirrorPath, openedStore } from '../store/opened-store.ts';
import { startService } from '../support/cli.ts';
import { runHere as cli } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { catalogOf, expectExactLog, settingsFor } from '../support/mirror.ts';
import { filled } from '../support/place.ts';
import { bodies, isDelta, numbered, rawPlace } from './raw-place.ts';

interface Version {
  readonly vbid: string;
  readonly version: number;
  readonly at: number;
}

/** A service that lists the newest change first, and that answers deltas from an index that lags behind. */
async function lagging(size: number, lagMs: number, more: Record<string, string> = {}) {
  const products = new Map<string, Version[]>();
  for (let n = 0; n < size; n++) {
    products.set(`P${n}`, [{ vbid: `P${n}`, version: 1, at: Date.now() - 86_400_000 - n * 1_000 }]);
  }

  /** The newest version of each product up to a moment. */
  function shownAt(moment: number): Version[] {
    return [...products.values()]
      .flatMap((versions) => versions.filter(({ at }) => at <= moment).slice(-1))
      .sort((a, b) => b.at - a.at);
  }

  const service = {
    asked: [] as URL[],
    /** Called before a page of the list is answered. */
    onList: (_page: number): void => {},
    /** `Age` of the pages of the list: a cache has no deltas, because two never have the same address. */
    headers: {} as Record<string, string>,
    list: () => shownAt(Date.now()),
    modify: (vbid: string): void => {
      const known = products.get(vbid) ?? [];
      products.set(vbid, [...known, { vbid, version: known.length + 1, at: Date.now() }]);
    },
    remove: (vbid: string): void => {
      products.delete(vbid);
    },
  };

  function answer(url: URL): string {
    const [page, perPage] = ['page', 'per_page'].map((name) => Number(url.searchParams.get(name))) as [number, number];
    const from = url.searchParams.get('from');
    if (from === null) service.onList(page);
    const all = from === null ? service.list() : shownAt(Date.now() - lagMs).filter(({ at }) => at >= Date.parse(from));
    const items = all.slice((page - 1) * perPage, page * perPage).map(({ vbid, version }) => ({ vbid, version }));
    const total = Math.ceil(all.length / perPage);
    return JSON.stringify({ num_items: all.length, page, per_page: perPage, total_pages: total, items });
  }

  const url = await serveHttp((request, response) => {
    const asked = new URL(request.url ?? '', 'http://localhost');
    service.asked.push(asked);
    response.writeHead(200, { 'content-type': 'application/json', ...(!isDelta(asked) && service.headers) });
    response.end(answer(asked));
  });
  const db = mirrorPath();
  return { service, db, settings: settingsFor(url, db, more) };
}

const SMALL_PAGES = { CATCHWORD_PER_PAGE: '20', CATCHWORD_SEAM: '5', CATCHWORD_CONCURRENCY: '1' };

it('a source whose deltas lag behind its list costs no living product that moved while the list was read', {
  tags: ['slow'],
}, async () => {
  const more = { ...SMALL_PAGES, CATCHWORD_DELTA_OVERLAP: '3s' };
  const { service, db, settings } = await lagging(100, 1_000, more);
  await load(settings, 'full');
  const [gone, moving] = [service.list()[3]?.vbid ?? '', service.list()[70]?.vbid ?? ''];
  service.onList = (page) => {
    if (page < 3) return;
    // Moves from the unread part into the part that was read, while another one leaves that: no seam moves.
    service.modify(moving);
    service.remove(gone);
    service.onList = () => {};
  };
  expect(await load(settings, 'full')).toMatchObject({ proof: 'sealed', removed: 0, missing: 0, updated: 1 });
  expect(catalogOf(db).has(moving)).toBe(true);
  expect(await load(settings, 'full')).toMatchObject({ proof: 'sealed', removed: 1, missing: 0, settlesAt: null });
  expect(catalogOf(db).has(moving)).toBe(true);
  expect(catalogOf(db).has(gone)).toBe(false);
  expectExactLog(db);
});

it('a source whose deltas lag behind its list is not waited for if nothing depends on it', async () => {
  const { settings } = await lagging(100, 1_000, { ...SMALL_PAGES, CATCHWORD_DELTA_OVERLAP: '1h' });
  const stop = AbortSignal.timeout(60_000);
  expect(await load(settings, 'full', stop)).toMatchObject({ proof: 'sealed', created: 100 });
  expect(await load(settings, 'full', stop)).toMatchObject({ proof: 'sealed', removed: 0 });
  expect(await load(settings, 'delta', stop)).toMatchObject({ state: 'complete', proof: null });
});

it('a source whose deltas lag behind its list never gets the same address twice in a run, so that a cache cannot answer with an earlier delta', async () => {
  const { service, settings } = await lagging(100, 0, SMALL_PAGES);
  await load(settings, 'full', undefined, systemClock);
  service.remove('P50');
  service.asked.length = 0;
  expect(await load(settings, 'full', undefined, systemClock)).toMatchObject({ proof: 'sealed', removed: 1 });
  const deltas = service.asked.filter(isDelta).map(({ search }) => search);
  expect(deltas.length).toBeGreaterThan(1);
  expect(new Set(deltas).size).toBe(deltas.length);
});

/** Starts a run that has read everything, and waits for ten minutes. */
async function settling() {
  const more = { CATCHWORD_DELTA_OVERLAP: '10m' };
  const { sandbox, directory, db, settings } = await filled({ items: 500, withdrawnForMs: 0 }, more);
  sandbox.catalog.mutate({ remove: 7, seed: 1 });
  const program = startService(['sync', '--full'], settings, directory);
  const store = openedStore(db);
  await expect.poll(() => store.runs.unfinished()?.settlesAt ?? null).not.toBeNull();
  return { directory, db, settings, program, store };
}

function settlesAt(store: Store): number {
  return store.runs.unfinished()?.settlesAt ?? 0;
}

it('a run that settles shows until when and why it waits, has not removed anything yet, and can be cancelled', {
  tags: ['slow'],
}, async () => {
  const { directory, db, settings, program } = await settling();
  const text =
    /settling until \d{4}-\d\d-\d\d (\d\d:\d\d:\d\d) UTC: 7 products were not seen; a last delta at \1 decides/;
  expect((await cli(['status'], settings, directory)).stdout).toMatch(text);
  expect((await cli(['run', '2'], settings, directory)).stdout).toMatch(text);
  expect((await cli(['runs'], settings, directory)).stdout).toContain('waiting for late changes');
  const json = JSON.parse((await cli(['run', '2', '--json'], settings, directory)).stdout) as Record<string, unknown>;
  expect(json).toMatchObject({ state: 'reading', settles_at: expect.stringMatching(/Z$/) as string, missing: 7 });
  expect(json).not.toHaveProperty('settlesAt');
  expect(catalogOf(db).size).toBe(500);
  expect((await cli(['cancel', '2'], settings, directory)).code).toBe(0);
  const ended = await program.ended;
  expect(ended).toMatchObject({ code: 1, stderr: expect.stringMatching(text) as string });
  expect(ended.stderr).toContain('RUN_CANCELLED');
  expect(catalogOf(db).size).toBe(500);
  expect((await cli(['status'], settings, directory)).stdout).not.toContain('settling');
});

it.each(['SIGTERM', 'SIGKILL'] as const)(
  'a run that settles is resumed after %s, and then removes products that are gone',
  { tags: ['slow'] },
  async (signal) => {
    const { db, settings, program, store } = await settling();
    const until = settlesAt(store);
    await program.stop(signal);
    expect(settlesAt(store)).toBe(until);
    expect(catalogOf(db).size).toBe(500);
    const run = await load({ ...settings, CATCHWORD_DELTA_OVERLAP: '1s' }, 'full');
    expect(run).toMatchObject({ id: 2, state: 'complete', proof: 'sealed', removed: 7, settlesAt: null });
    expect(catalogOf(db).size).toBe(493);
    expectExactLog(db);
  },
);

it('a cache in front of the source proves nothing with pages that are older than the overlap', async () => {
  const { service, settings, db } = await lagging(100, 0, { CATCHWORD_DELTA_OVERLAP: '2s' });
  await load(settings, 'full');
  service.remove('P50');
  service.headers = { age: '600' };
  service.asked.length = 0;
  const run = await load(settings, 'full');
  expect(run).toMatchObject({ state: 'complete', proof: 'open', removed: 0 });
  expect(run.reasons).toContain('a cache answered with a page from 600 s ago');
  expect(catalogOf(db).has('P50')).toBe(true);
  // Each page is read three times before it is used.
  expect(service.asked.filter((url) => url.search === '?page=1&per_page=1000')).toHaveLength(3 * 2);
});

it('a cache in front of the source is asked for the current state of the source', async () => {
  const seen: (string | undefined)[] = [];
  const url = await serveHttp((request, response) => {
    seen.push(request.headers['cache-control']);
    response.writeHead(200, { 'content-type': 'application/json', age: '1, 0' });
    response.end('{"num_items":0,"page":1,"per_page":1000,"total_pages":0,"items":[]}');
  });
  await load(settingsFor(url, mirrorPath()), 'full');
  expect(new Set(seen)).toEqual(new Set(['no-cache']));
});

it('a full run whose late delta withdraws a product settles, and ends with the product as it is', async () => {
  const here = await rawPlace(bodies(numbered(60)), {
    CATCHWORD_DELTA_OVERLAP: '1s',
    CATCHWORD_WITHDRAWN_AS: 'removed',
  });
  await here.run();
  const [product = ''] = numbered(1);
  let lateUntil: number | undefined;
  // Withdrawn and restored before the run: the list shows that, and deltas half a second later.
  here.source.instead = (asked) => {
    if (!isDelta(asked)) return null;
    lateUntil ??= Date.now() + 500;
    const late = Buffer.from(JSON.stringify({ vbid: product, distributable: false }));
    here.source.changed = Date.now() < lateUntil ? [late] : bodies([product]);
    return null;
  };
  const run = await load(here.settings, 'full', undefined, systemClock);
  expect(run).toMatchObject({ proof: 'sealed', removed: 1, restored: 1 });
  expect(catalogOf(here.db).size).toBe(60);
});
