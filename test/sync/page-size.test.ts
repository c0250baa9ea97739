import type { RunKind } from '@catchword/catalog/run-types';
import { expect, it } from 'vitest';
import { hastyClock } from '../../src/contract/harness.ts';
import { runHere as cli } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { bodies, numbered, rawPlace } from './raw-place.ts';

const DAY = 86_400_000;

/** A source that refuses pages of more than `most` products, and the page sizes that it is asked for. */
async function begin(most: number) {
  const { source, directory, settings } = await rawPlace(bodies(numbered(900)), { CATCHWORD_PER_PAGE: '400' });
  const limits = { most };
  const sizeOf = (asked: URL) => Number(asked.searchParams.get('per_page'));
  source.instead = (asked) => (sizeOf(asked) > limits.most ? { status: 400 } : null);
  let aheadMs = 0;
  const clock = { ...hastyClock, now: () => hastyClock.now() + aheadMs };
  return {
    limits,
    later: (ms: number) => {
      aheadMs += ms;
    },
    /** Runs, and returns the page sizes that the source refused. */
    refused: async (kind: RunKind = 'full', more: Record<string, string> = {}): Promise<number[]> => {
      const before = source.requests.length;
      await load({ ...settings, ...more }, kind, undefined, clock);
      return source.requests
        .slice(before)
        .map(sizeOf)
        .filter((size) => size > limits.most);
    },
    status: async () => await cli(['status'], settings, directory),
  };
}

it('a smaller page size that a source answers is used for a week, then the configured one is tried again', async () => {
  const { limits, later, refused, status } = await begin(100);
  expect(await refused()).toEqual([400, 200]);
  expect((await status()).stdout).toMatch(/^pages {6}100 products each/m);
  expect(await refused('delta')).toEqual([]);
  expect(await refused()).toEqual([]);
  later(8 * DAY);
  expect(await refused()).toEqual([400, 200]);
  limits.most = 1000;
  later(8 * DAY);
  expect(await refused()).toEqual([]);
  expect((await status()).stdout).not.toMatch(/^pages/m);
});

it('another CATCHWORD_PER_PAGE is tried at once', async () => {
  const { refused } = await begin(100);
  expect(await refused()).toEqual([400, 200]);
  expect(await refused('full', { CATCHWORD_PER_PAGE: '300' })).toEqual([300, 150]);
});

it('no size is remembered of a source that refuses them all', async () => {
  const { limits, refused } = await begin(0);
  await expect(refused()).rejects.toThrow('answered 400');
  limits.most = 1000;
  expect(await refused()).toEqual([]);
});

it('a delta asks for the page size that a list was read with, also after a week and with a larger CATCHWORD_PER_PAGE', async () => {
  const { later, refused } = await begin(100);
  expect(await refused()).toEqual([400, 200]);
  later(8 * DAY);
  expect(await refused('delta')).toEqual([]);
  expect(await refused('delta', { CATCHWORD_PER_PAGE: '300' })).toEqual([]);
  expect(await refused()).toEqual([400, 200]);
});

it('a delta asks for pages of the configured size once a list was read with them again', async () => {
  const { limits, later, refused } = await begin(100);
  await refused();
  limits.most = 1000;
  later(8 * DAY);
  await refused();
  limits.most = 399;
  await expect(refused('delta')).rejects.toThrow('answered 400');
});
