// @module-tag slow
import { copyFileSync, rmSync } from 'node:fs';
import { systemClock } from '@catchword/base/clock';
import { freePort } from '@catchword/testing/server';
import { EventSource } from 'eventsource';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { startService } from '../support/cli.ts';
import { load } from '../support/load.ts';
import { catalogOf } from '../support/mirror.ts';
import { filled, type Place } from '../support/place.ts';
import { serve, serveFilled } from './place.ts';
import { stall, upTo } from './reader.ts';

/*
 * A standard EventSource reconnects 3 seconds after a stream ended and survives network failures, but any status other
 * than 200 ends it for good.
 */

/** Random number that makes a refused reader come back at once, not after ten seconds. */
const WITHIN_A_SECOND = -0.45;
const PATIENCE = { timeout: 30_000, interval: 20 };

interface Event {
  readonly sequence: string;
  readonly data: { readonly vbid: string; readonly product: unknown };
}

/** The reader from docs/stream.md. */
function follow(url: string) {
  const source = new EventSource(url);
  onTestFinished(() => source.close());
  /** By vbid. */
  const products = new Map<string, unknown>();
  /** Events since the last reset, in order. */
  const seqs: number[] = [];
  const resets: { readonly code: string; readonly after: number }[] = [];
  /** How often a connection ended or failed. */
  let failures = 0;
  source.addEventListener('error', () => failures++);
  source.addEventListener('reset', ({ data }) => {
    resets.push(JSON.parse(String(data)) as (typeof resets)[number]);
    products.clear();
    seqs.length = 0;
  });
  source.addEventListener('message', ({ data }) => {
    const event = JSON.parse(String(data)) as Event;
    seqs.push(Number(event.sequence));
    if (event.data.product === null) products.delete(event.data.vbid);
    else products.set(event.data.vbid, event.data.product);
  });
  return { source, products, seqs, resets, failures: () => failures };
}

function mirrorOf(db: string): Map<string, unknown> {
  return new Map([...catalogOf(db)].map(([vbid, body]) => [vbid, JSON.parse(body) as unknown]));
}

async function expectUpToDate({ seqs, products }: ReturnType<typeof follow>, db: string): Promise<void> {
  const store = openStore(db, { mustExist: true });
  const last = store.changes.lastSeq();
  store.close();
  await expect.poll(() => seqs.at(-1), PATIENCE).toBe(last);
  expect(products).toEqual(mirrorOf(db));
}

it('an EventSource survives a restart of the daemon that another reader delays', async () => {
  const { directory, db, settings, sandbox } = await filled({ items: 6_000, details: true });
  const port = await freePort();
  const more = { CATCHWORD_HTTP_PORT: `${port}`, CATCHWORD_FULL_CRON: 'off', LOG_LEVEL: 'info' };
  const daemonSettings = { ...settings, ...more, CATCHWORD_DELTA_CRON: '* * * * * *' };
  const begin = async () => {
    const daemon = startService(['daemon'], daemonSettings, directory);
    await daemon.shows('"msg":"listening"');
    return daemon;
  };
  const first = await begin();
  const url = `http://127.0.0.1:${port}`;
  await stall(url, '/api/changes/stream');
  const follower = follow(`${url}/api/changes/stream`);
  await expect.poll(() => follower.seqs.length, PATIENCE).toBe(6_000);

  first.child.kill('SIGTERM');
  // Its stream has ended, and it could not reconnect yet.
  await expect.poll(follower.failures, PATIENCE).toBeGreaterThanOrEqual(2);
  expect(follower.source.readyState).toBe(EventSource.CONNECTING);
  expect(await first.ended).toMatchObject({ code: 0 });
  sandbox.catalog.mutate({ create: 20, update: 30, remove: 10, seed: 4 });
  const second = await begin();
  await second.shows('run complete');
  await expectUpToDate(follower, db);
  expect(follower.resets).toEqual([]);
  expect(follower.seqs).toEqual(upTo(follower.seqs.length));
});

it('an EventSource resumes where it started if it was cut off before its first event', async () => {
  const { db, settings, sandbox, web, logged } = await serveFilled({ items: 30 });
  const port = Number(new URL(web.url).port);
  const follower = follow(`${web.url}/api/changes/stream?after=latest`);
  await logged('stream started');
  await expect.poll(() => follower.source.readyState, PATIENCE).toBe(EventSource.OPEN);
  await web.stop();
  await expect.poll(follower.failures, PATIENCE).toBeGreaterThanOrEqual(1);
  sandbox.catalog.mutate({ create: 3, seed: 1 });
  await load(settings, 'delta');
  await serve(db, { port });
  await expect.poll(() => [...follower.seqs], PATIENCE).toEqual([31, 32, 33]);
});

it('an EventSource comes back by itself if it was refused because too many streams are open', async () => {
  const { db } = await filled({ items: 30 });
  const { web, logged } = await serve(db, {
    limits: { maxStreams: 1 },
    clock: { ...systemClock, random: () => WITHIN_A_SECOND },
  });
  const first = follow(`${web.url}/api/changes/stream`);
  await expect.poll(() => first.seqs.length, PATIENCE).toBe(30);
  const refused = follow(`${web.url}/api/changes/stream?after=20`);
  const reasons: string[] = [];
  refused.source.addEventListener('end', ({ data }) => reasons.push(String(data)));
  await expect.poll(refused.failures, PATIENCE).toBeGreaterThanOrEqual(1);
  expect(refused.source.readyState).toBe(EventSource.CONNECTING);
  expect(reasons[0]).toContain('TOO_MANY_STREAMS');
  first.source.close();
  await logged('stream ended');
  await expect.poll(() => [...refused.seqs], PATIENCE).toEqual(upTo(30, 21));
});

/** Copies a mirror that no process has open. */
function keepCopy(db: string): string {
  const store = openStore(db);
  store.walCheckpoint();
  store.close();
  copyFileSync(db, `${db}.kept`);
  return `${db}.kept`;
}

function removeMirror(db: string): void {
  for (const file of [db, `${db}-wal`, `${db}-shm`]) rmSync(file, { force: true });
}

function putBack(copy: string, db: string): void {
  removeMirror(db);
  copyFileSync(copy, db);
}

const RESTORED: [string, string, (made: Place, copy: string) => Promise<void>][] = [
  ['an older one', 'RESTORED', async ({ db }, copy) => putBack(copy, db)],
  [
    'an older one that has grown beyond the last id',
    'RESTORED',
    async ({ db, settings, sandbox }, copy) => {
      putBack(copy, db);
      sandbox.catalog.mutate({ create: 40, update: 20, remove: 3, seed: 9 });
      await load(settings, 'full');
    },
  ],
  [
    'another one',
    'OTHER_MIRROR',
    async ({ db, settings }) => {
      removeMirror(db);
      await load(settings, 'full');
    },
  ],
];

it.each(RESTORED)(
  'an EventSource whose mirror was replaced by %s gets the reset %s, and ends with the products of the mirror',
  async (_name, code, restore) => {
    const made = await filled({ items: 50 });
    const { db, settings, sandbox } = made;
    const copy = keepCopy(db);
    sandbox.catalog.mutate({ create: 10, update: 5, seed: 2 });
    await load(settings, 'delta');
    const first = await serve(db);
    const port = Number(new URL(first.web.url).port);
    const follower = follow(`${first.web.url}/api/changes/stream`);
    await expectUpToDate(follower, db);
    await first.web.stop();
    await restore(made, copy);

    const second = await serve(db, { port });
    await expect.poll(() => follower.resets, PATIENCE).toMatchObject([{ code, after: 0 }]);
    await expectUpToDate(follower, db);
    expect(await second.logged('stream reset')).toMatchObject({ code });
    // From then on, it resumes as usual.
    await second.web.stop();
    sandbox.catalog.mutate({ create: 2, seed: 5 });
    await load(settings, 'delta');
    await serve(db, { port });
    await expectUpToDate(follower, db);
    expect(follower.resets).toHaveLength(1);
  },
);
