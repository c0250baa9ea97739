// @module-tag slow

import { postgresAvailable, usePostgres } from '@catchword/testing/postgres';
import { redisAvailable } from '@catchword/testing/redis';
import { startS3 } from '@catchword/testing/s3';
import { useRedis } from '@catchword/testing/used-servers';
import { describe, expect, it } from 'vitest';
import type { SinkTarget } from '../../src/contract/checks.ts';
import { SINK_NAME, until } from '../../src/contract/harness.ts';
import { changeSink } from '../../src/operate/decisions/sink-actions.ts';
import { books, fedBefore, feederAt, temporaryMirror } from './feeding.ts';
import { memory } from './memory.ts';
import { postgresTarget, redisKeysTarget, s3Target } from './targets.ts';

/* A store that lost something is filled again: what a run has taken away meanwhile does not leave it without a decision. */

const LIMITS = { removalLimit: () => 100 };
const GONE = books(300, 1).map(({ vbid }) => ({ vbid, body: null }));

it('a store that cannot count its fill keeps its products until the run that removes them is approved', async () => {
  const mirror = temporaryMirror();
  const { store, sink, change, caughtUp, start, stop } = mirror;
  const kept = memory();
  change(books(310, 1));
  start(kept.config(), LIMITS);
  await caughtUp();
  await stop();
  change(GONE, 2);
  const incarnation = feederAt(mirror);
  kept.openResult = Object.assign({ incarnation, generation: 1, cursor: 0, at: 0, late: 0 }, { refill: 'it is new' });
  start(kept.config(), LIMITS);
  await until('the sink is held', () => sink().state === 'held');
  expect(sink()).toMatchObject({ cursor: 310, held: { why: 'run', run: 2, removed: 300 } });
  store.request((writer) => changeSink(writer, 'release', SINK_NAME, null, 0));
  await caughtUp();
  expect(kept.rows.slice(310).map(({ vbid }) => vbid)).toEqual(
    books(310, 1)
      .slice(300)
      .map(({ vbid }) => vbid),
  );
});

/** Feeds a store with 310 products, lets it lose something, and expects that it is held before a run's 300 removals. */
async function expectHeld<T extends SinkTarget>(
  prepared: Promise<T>,
  lose: (target: T) => unknown,
  left = 300,
): Promise<void> {
  const { harness, target, config } = await fedBefore(prepared, 155);
  await harness.resume(config, books(310, 1).slice(155));
  await harness.stop();
  await lose(target);
  // As many others come, so that the store does not shrink.
  const others = books(700, 1).slice(310);
  harness.change([...GONE, ...others], 2);
  harness.start(config, LIMITS);
  await until('the sink is held', () => harness.sink().state === 'held');
  expect(harness.sink().held).toMatchObject({ why: 'fill', removed: left });
  const { products } = await target.read();
  expect(products.size).toBe(400 + left);
}

it('a bucket that lost a file is held before a fill takes more products than allowed', async () => {
  const store = await startS3();
  await expectHeld(
    s3Target(store),
    ({ prefix }) => {
      const { files } = JSON.parse(String(store.objects.get(`${prefix}manifest.json`))) as {
        files: [{ file: string }];
      };
      store.objects.delete(`${prefix}${files[0].file}`);
    },
    145,
  );
});

describe.skipIf(!postgresAvailable)('a table that lost its cursor row', { tags: ['stores'] }, () => {
  const postgres = usePostgres();

  it('is held before a fill takes more rows than allowed', async () => {
    await expectHeld(postgresTarget(postgres.port), () => postgres.client.query('DELETE FROM catchword_cursor'));
  });
});

describe.skipIf(!redisAvailable)('keys of Redis that lost their mark', { tags: ['stores'] }, () => {
  const redis = useRedis();

  it('are held before a fill takes more of them than allowed', async () => {
    await expectHeld(redisKeysTarget(redis.server.port), ({ prefix }) => redis.client.del(`${prefix}:`));
  });
});
