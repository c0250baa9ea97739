import { systemClock } from '@catchword/base/clock';
import { createLog } from '@catchword/base/log';
import { redisAvailable, startRedis } from '@catchword/testing/redis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { startFetcherService } from '../../src/cli/roles/pipeline.ts';
import { createHistory, productAsOf } from '../../src/store/history/history.ts';
import type { ProductRow } from '../../src/store/rows/product-rows.ts';
import { openedStore } from '../store/opened-store.ts';
import { catalogOf, expectExactLog } from '../support/mirror.ts';
import { isDelta, rawPlace } from './raw-place.ts';

function book(vbid: string, title: string, encoding: BufferEncoding = 'utf8'): Buffer {
  return Buffer.from(`{"vbid":"${vbid}","title":"${title}"}`, encoding);
}

function rejectedOf(db: string, runId: number) {
  return openedStore(db).runs.rejected(5_000, { run: runId, after: 0 });
}

/** Starts a fetcher behind Redis. @returns the settings of a load that uses it */
async function startBehindRedis(settings: Record<string, string>): Promise<Record<string, string>> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const shared = { REDIS_URL: redis.url };
  const config = checkedSettings({ ...settings, ...shared }, 'source');
  const fetcher = await startFetcherService({ config, clock: systemClock, log: createLog('silent') }, redis.url);
  onTestFinished(() => fetcher.stop());
  return shared;
}

for (const queue of ['embedded', 'BullMQ']) {
  const tags: 'stores'[] = queue === 'BullMQ' ? ['stores'] : [];
  describe.skipIf(tags.length > 0 && !redisAvailable)(`through the queue ${queue}`, { tags }, () => {
    it.each([false, true])(
      'a run rejects the one item that is not UTF-8, and reads all others (gzip: %s)',
      async (gzip) => {
        const items = [book('A', 'Café'), book('B', 'Café', 'latin1'), book('C', 'Über \ufffd 😀')];
        const { source, db, settings, run } = await rawPlace(items, {}, gzip);
        const own = queue === 'embedded' ? {} : await startBehindRedis(settings);
        const ended = await run('full', own);
        expect(ended).toMatchObject({ state: 'complete', proof: 'open', created: 2, rejected: 1 });
        expect(catalogOf(db)).toEqual(
          new Map([
            ['A', '{"vbid":"A","title":"Café"}'],
            ['C', '{"vbid":"C","title":"Über \ufffd 😀"}'],
          ]),
        );
        expect(rejectedOf(db, ended.id)).toMatchObject([
          {
            position: 1,
            reason: 'invalid UTF-8: byte 0xe9 after 24 characters',
            body: '{"vbid":"B","title":"Caf\ufffd"}',
          },
        ]);
        // It was read again before it was rejected, because bytes may be damaged on the way.
        expect(source.requests.filter((url) => !isDelta(url))).toHaveLength(3);

        source.items = [book('A', 'Café'), book('B', 'Café'), book('C', 'Über \ufffd 😀')];
        expect(await run('full', own)).toMatchObject({ state: 'complete', created: 1, rejected: 0 });
        expect(catalogOf(db).get('B')).toBe('{"vbid":"B","title":"Café"}');
        expectExactLog(db);
      },
    );
  });
}

it('a run never removes a product because its title has become invalid UTF-8', async () => {
  const { source, db, run } = await rawPlace([book('A', 'Café'), book('B', 'Café')]);
  await run();
  source.items = [book('A', 'Café'), book('B', 'Café', 'latin1')];
  for (let night = 1; night <= 4; night++) {
    expect(await run()).toMatchObject({ proof: 'open', removed: 0 });
  }
  expect([...catalogOf(db).keys()]).toEqual(['A', 'B']);
});

it('a run whose delta held a rejected item removes nothing: the item may be the product', async () => {
  const { source, run } = await rawPlace(['A', 'B', 'C'].map((vbid) => book(vbid, 'Café')));
  await run();
  // The list agrees with its own total, and does not show C.
  source.items = source.items.slice(0, 2);
  source.changed = [book('C', 'Café', 'latin1')];
  const why = 'items were rejected, and each may be a product that was not seen';
  for (let night = 1; night <= 3; night++) {
    expect(await run()).toMatchObject({ proof: 'open', removed: 0, missing: 1, reasons: [why] });
  }
  // The watermark passes the change of the item, so the run says that it was rejected.
  source.changed = [book('A', 'Café'), book('C', 'Café', 'latin1')];
  expect(await run('delta')).toMatchObject({ proof: 'open', rejected: 1, reasons: [why] });
  source.changed = [];
  expect(await run()).toMatchObject({ proof: 'sealed', removed: 1 });
});

it('a run fails if most items are rejected, reads no further, and keeps a few of them', async () => {
  const other = Array.from({ length: 5_000 }, (_, at) => Buffer.from(`{"sku":"S${at}"}`));
  const { source, db, run } = await rawPlace(['A', 'B'].map((vbid) => book(vbid, 'Café')));
  await run();
  source.items = other;
  source.changed = other.slice(0, 30);
  const failed = { code: 'PAGE_INVALID', retryable: false };
  const message = expect.stringMatching(/items that were read were rejected, such as one for this reason: vbid must/);
  await expect(run('delta')).rejects.toMatchObject({ ...failed, message: message as string });
  await expect(run()).rejects.toMatchObject({ ...failed, message: message as string });
  // Not for every page of the list.
  expect(rejectedOf(db, 3).length).toBeLessThanOrEqual(1_000);
  expect([...catalogOf(db).keys()]).toEqual(['A', 'B']);
  // A few odd items do not end a run; a delta of nothing else is asked for again.
  source.items = ['A', 'B'].map((vbid) => book(vbid, 'Café'));
  source.changed = other.slice(0, 3);
  const first = await run('delta');
  expect(first).toMatchObject({ state: 'complete', rejected: 3 });
  expect(await run('delta')).toMatchObject({ from: first.from });
});

it('products whose numeric keys are equal as doubles are kept apart', async () => {
  const usable = ['9007199254740993', '9007199254740992', '0', '"1.50"'];
  const unusable = ['1.50', '1.5', '1e3', '-1', '-0', '1e400'];
  const { db, run } = await rawPlace([...usable, ...unusable].map((vbid) => `{"vbid":${vbid},"title":"T"}`));
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', proof: 'open', created: 4, rejected: 6 });
  expect([...catalogOf(db).keys()].sort()).toEqual(['0', '1.50', '9007199254740992', '9007199254740993']);
  expect(rejectedOf(db, ended.id).map(({ position, reason }) => [position, reason])).toEqual(
    unusable.map((vbid, index) => [index + 4, `vbid: ${vbid} is not a whole number of 0 or more`]),
  );
});

it('keys with half of a surrogate pair are rejected, and such texts elsewhere are kept unchanged', async () => {
  const kept = '{"vbid":"A","title":"\\ud800","\\udfff":["\\ud83d", "\\ud83d\\ude00"]}';
  const keys = ['{"vbid":"\\ud800"}', '{"vbid":"\\udc00"}', '{"vbid":"\\ud83d\\ude00"}'];
  const { source, db, run } = await rawPlace([kept, ...keys]);
  const ended = await run();
  expect(ended).toMatchObject({ state: 'complete', created: 2, rejected: 2 });
  expect([...catalogOf(db)]).toEqual([
    ['A', kept],
    ['😀', '{"vbid":"\\ud83d\\ude00"}'],
  ]);
  expect(rejectedOf(db, ended.id)).toMatchObject([
    { position: 1, reason: 'vbid contains half of a surrogate pair', body: '{"vbid":"\\ud800"}' },
    { position: 2, reason: 'vbid contains half of a surrogate pair', body: '{"vbid":"\\udc00"}' },
  ]);
  // The previous value of such a field is kept just as exactly.
  source.items = [Buffer.from('{"vbid":"A","title":"\\ud801"}'), Buffer.from('{"vbid":"\\ud83d\\ude00"}')];
  expect(await run()).toMatchObject({ updated: 1 });
  expect(createHistory(openedStore(db)).of('A')).toMatchObject([
    { op: 'updated', before: '{"title":"\\ud800","\\udfff":["\\ud83d", "\\ud83d\\ude00"]}' },
    { op: 'created', body: kept },
  ]);
});

it('a run finds a change in the digits of a number even if both are equal as doubles', async () => {
  const numbers = ['1', '12345678901234567890', '12345678901234567891', '1e400', 'null', '0.10000000000000000001'];
  const bodyOf = (number: string, seen: number): string => `{"vbid":"A","id":${number},"seen":${seen}}`;
  const { source, db, run } = await rawPlace([bodyOf('0', 0)], { CATCHWORD_IGNORE_FIELDS: '/seen' });
  await run();
  for (const [index, number] of numbers.entries()) {
    source.items = [Buffer.from(bodyOf(number, index))];
    expect(await run(), number).toMatchObject({ updated: 1 });
    // Only ignored fields differ, and the order of keys.
    source.items = [Buffer.from(`{"seen":-1,"id":${number},"vbid":"A"}`)];
    expect(await run(), number).toMatchObject({ updated: 0 });
  }
  expect(expectExactLog(db)).toBe(numbers.length + 1);
  const store = openedStore(db);
  const row = store.products.get('A') as ProductRow;
  for (const [index, number] of ['0', ...numbers].entries()) {
    expect(productAsOf(store, row, index + 1).body).toContain(`"id":${number}`);
  }
});
