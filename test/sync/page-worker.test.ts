import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { productsOf } from '@catchword/catalog/page-items';
import { bytesOf, pageOfText } from '@catchword/testing/page';
import { pageText, task } from '@catchword/testing/scripted-source';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { startPageWorker } from '../../src/sync/fast/page-worker-client.ts';

/** Compiled, as in use. */
const PROGRAM = new URL('../../dist/page-worker.js', import.meta.url);
/** More than are validated before the thread starts. */
const PAGES = Array.from({ length: 30 }, (_, at) => at + 1);

function started(program = PROGRAM) {
  const thread = startPageWorker(undefined, program);
  onTestFinished(() => thread.stop());
  return thread;
}

it('a page worker validates pages as the main thread does, whichever is used', async () => {
  const { validate } = started();
  const pages = await Promise.all(
    PAGES.map(async (page) => await validate(bytesOf(pageText(task(page).window)), task(page, { filling: page > 15 }))),
  );
  for (const [at, page] of pages.entries()) {
    expect(page.envelope.page).toBe(at + 1);
    expect(productsOf(page).map((product) => product?.vbid)).toEqual(
      Array.from({ length: 10 }, (_, index) => `V${at * 10 + index}`),
    );
    expect(page.items.isComplete).toBe(at + 1 > 15);
    expect(typeof page.items.rows !== 'string').toBe(at + 1 > 15);
  }
});

it('a page worker compares pages with the mirror, and closes it when it is stopped', async () => {
  const db = join(temporaryDirectory(), 'catalog.db');
  const store = openStore(db);
  const leased = store.keeperLease.acquire(0);
  const { products } = pageOfText(pageText(task(1).window), task(1).window);
  leased.write((writer) => {
    const rows = products.flatMap((product, at) => (product === null ? [] : [{ id: at + 1, seq: at + 1, product }]));
    writer.products.insert(rows, 1_000);
  });
  const thread = startPageWorker(db, PROGRAM);
  const wanted = task(1, { mirror: store.incarnation });
  const pages = await Promise.all(
    PAGES.map(async () => await thread.validate(bytesOf(pageText(wanted.window)), wanted)),
  );
  expect([...(pages.at(-1)?.matched?.ids ?? [])]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  const filling = await thread.validate(bytesOf(pageText(wanted.window)), { ...wanted, filling: true });
  expect(filling.matched).toBeUndefined();
  await thread.stop();
  store.close();
  // The last connection to close removes it.
  expect(existsSync(`${db}-wal`)).toBe(false);
});

it('a page worker validates large pages in the thread from the second one on', async () => {
  const { validate } = started();
  const large = () => new Uint8Array(Buffer.from(pageText(task(1).window).padEnd(600_000)));
  const [first, second] = [large(), large()];
  for (const bytes of [first, second]) expect((await validate(bytes, task(1))).items.count).toBe(10);
  // What the thread gets is moved, not copied.
  expect([first, second].map(({ length }) => length)).toEqual([600_000, 0]);
});

it('a page worker accepts bytes that are part of a larger buffer, and leaves the rest of it alone', async () => {
  const { validate } = started();
  const pool = bytesOf(`before${pageText(task(1).window)}after`);
  for (const _ of PAGES) {
    const page = await validate(pool.subarray(6, pool.length - 5), task(1));
    expect(page.items.count).toBe(10);
  }
  expect(Buffer.from(pool).toString()).toMatch(/^before\{.*\}after$/);
});

it('a page worker reports why a page is invalid, with the code of the error', async () => {
  const { validate } = started();
  const error = { code: 'PAGE_INVALID', retryable: true, message: 'requested page 2, got page 1' };
  for (const _ of PAGES) {
    await expect((async () => await validate(bytesOf(pageText(task(1).window)), task(2)))()).rejects.toMatchObject(
      error,
    );
  }
});

it('a thread that ends by itself fails its pages, which may be read again, and later ones are validated here', async () => {
  const program = join(temporaryDirectory(), 'broken.mjs');
  writeFileSync(
    program,
    "import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => { throw new Error('out of luck'); });",
  );
  const { validate } = started(new URL(`file://${program}`));
  const asked = PAGES.map(async (page) => await validate(bytesOf(pageText(task(page).window)), task(page)));
  const results = await Promise.allSettled(asked);
  const failed = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  expect(failed.length).toBeGreaterThan(0);
  for (const error of failed) {
    const message = expect.stringContaining('out of luck') as string;
    expect(error).toMatchObject({ code: 'PAGE_INVALID', retryable: true, message });
  }
  expect((await validate(bytesOf(pageText(task(1).window)), task(1))).items.count).toBe(10);
});
