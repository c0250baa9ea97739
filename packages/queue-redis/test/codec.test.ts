import { gzipSync } from 'node:zlib';
import { productsOf } from '@catchword/catalog/page-items';
import type { FetchOutcome, FetchTask, Page } from '@catchword/catalog/page-types';
import { validateLookup, validatePage } from '@catchword/catalog/validate-page';
import { decodeOutcome, encodeOutcome } from '@catchword/queue-redis/codec';
import { bytesOf } from '@catchword/testing/page';
import { pageText, task } from '@catchword/testing/scripted-source';
import fc from 'fast-check';
import { expect, it } from 'vitest';

const whole = fc.nat();
const time = fc.integer({ min: 0, max: 4_102_444_800_000 });

const tasks = fc.record({
  mirror: fc.uuid(),
  runId: whole,
  pass: whole,
  window: fc.record({ page: fc.integer({ min: 1, max: 5_000 }), perPage: fc.integer({ min: 1, max: 1_000 }) }),
  from: fc.option(time),
  answered: fc.boolean(),
  maxAttempts: fc.integer({ min: 1, max: 20 }),
});

const captured = fc
  .record({
    task: tasks,
    items: fc.uniqueArray(
      fc.record({ vbid: fc.stringMatching(/^[A-Z0-9]{1,12}$/), title: fc.string({ unit: 'binary' }) }),
      {
        selector: ({ vbid }) => vbid,
        maxLength: 5,
      },
    ),
    about: fc.record(
      { sourceTime: fc.option(time), requestedAt: time, receivedAt: time, ageMs: whole },
      { requiredKeys: ['sourceTime', 'requestedAt', 'receivedAt'] },
    ),
    requests: fc.integer({ min: 1, max: 20 }),
  })
  .map(({ task: asked, items, about, requests }): FetchOutcome => {
    const { page, perPage } = asked.window;
    const kept = items.slice(0, perPage).map((item) => ({ ...item, identifiers: {} }));
    const numItems = (page - 1) * perPage + kept.length;
    const envelope = { num_items: numItems, page, per_page: perPage, total_pages: page };
    const text = JSON.stringify({ ...envelope, items: kept });
    const made = validatePage(bytesOf(text), asked.window);
    return { kind: 'captured', task: asked, page: made, response: about, requests };
  });

const failed = fc.record({
  kind: fc.constant('failed' as const),
  task: tasks,
  requests: whole,
  error: fc.record(
    {
      code: fc.constantFrom('SOURCE_TIMEOUT' as const, 'SOURCE_AUTH' as const),
      message: fc.string(),
      retryable: fc.boolean(),
      hint: fc.string(),
      retryAfterMs: whole,
    },
    { requiredKeys: ['code', 'message', 'retryable'] },
  ),
});

/** Encodes and decodes an outcome, through JSON as in Redis. */
async function travel(outcome: FetchOutcome): Promise<FetchOutcome> {
  return decodeOutcome(JSON.parse(JSON.stringify(await encodeOutcome(outcome))));
}

function outcomeOf(asked: FetchTask, page: Page): FetchOutcome {
  const response = { sourceTime: null, requestedAt: 1, receivedAt: 2 };
  return { kind: 'captured', task: asked, page, response, requests: 1 };
}

async function encodedPage() {
  const asked = task(3);
  return encodeOutcome(outcomeOf(asked, validatePage(bytesOf(pageText(asked.window)), asked.window)));
}

it('the codec of outcomes decodes to the outcome that was encoded', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(captured, failed), async (outcome) => {
      expect(await travel(outcome)).toEqual(outcome);
    }),
  );
});

it.each(['{"vbid":"V 1/2","title":"A"}', ''])(
  'the codec of outcomes preserves the response to a point lookup: %j',
  async (text) => {
    const asked = task(7, { window: { page: 7, perPage: 1 }, vbid: 'V 1/2' });
    const page = validateLookup(bytesOf(text), 'V 1/2', asked.window);
    const outcome = outcomeOf(asked, page);
    expect(await travel(outcome)).toEqual(outcome);
    expect(page.items.count).toBe(text === '' ? 0 : 1);
    expect(() => validateLookup(bytesOf(text || '{"vbid":"B"}'), 'A', asked.window)).toThrow(
      /requested product A, got/,
    );
  },
);

it('the codec of outcomes preserves bytes that are not UTF-8', async () => {
  const asked = task(3);
  const bytes = Buffer.from(pageText(asked.window).replace('"V25"', '"V25","title":"Caf\xe9"'), 'latin1');
  const page = validatePage(new Uint8Array(bytes), asked.window);
  const outcome = outcomeOf(asked, page);
  expect(await travel(outcome)).toEqual(outcome);
  expect(page.rejected.map(({ position }) => position)).toEqual([5]);
  expect(productsOf(page).filter((product) => product !== null)).toHaveLength(9);
});

it('the codec of outcomes compresses a page', async () => {
  const encoded = await encodedPage();
  expect(JSON.stringify(encoded).length).toBeLessThan(pageText(task(3).window).length);
});

it.each([
  ['nothing', undefined],
  ['another kind', { kind: 'other' }],
  ['a task without a window', { kind: 'failed', task: { runId: 1 }, requests: 1, error: {} }],
])('the codec of outcomes rejects %s', async (_, data) => {
  await expect(decodeOutcome(data)).rejects.toMatchObject({ code: 'QUEUE_MISCONFIGURED' });
});

it('the codec of outcomes rejects a body that is not compressed', async () => {
  const encoded = await encodedPage();
  await expect(decodeOutcome({ ...encoded, body: 'bm90IGd6aXA=' })).rejects.toMatchObject({
    code: 'QUEUE_MISCONFIGURED',
  });
});

it('the codec of outcomes rejects a page that the task did not request', async () => {
  const encoded = await encodedPage();
  await expect(decodeOutcome({ ...encoded, task: task(4) })).rejects.toMatchObject({ code: 'PAGE_INVALID' });
});

it('the keeper rejects a page that unpacks to more than an answer may have', { tags: ['slow'] }, async () => {
  const bomb = gzipSync(Buffer.alloc(65 * 2 ** 20, 32)).toString('base64');
  const about = { requests: 1, sourceTime: null, requestedAt: 0, receivedAt: 0 };
  const asked = task(1);
  await expect(decodeOutcome({ kind: 'captured', task: asked, ...about, body: bomb })).rejects.toMatchObject({
    code: 'QUEUE_MISCONFIGURED',
    message: expect.stringContaining('a queued job cannot be read: Cannot create a Buffer larger than') as string,
  });
});
