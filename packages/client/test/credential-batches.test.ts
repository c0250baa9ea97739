// @module-tag service

import { readXml } from '@catchword/xml/read';
import { writeXml } from '@catchword/xml/write';
import { verifyCredentials, verifyInBatches } from 'catchword-client/credentials/credentials';
import { expect, it } from 'vitest';
import { connectTo, failure, golden, NEVER, serve } from './connection.ts';

/** Answers each submitted reference. */
function answerFor(body: string): string {
  const submitted = readXml(body)[0]?.children ?? [];
  return writeXml({
    name: 'credentials',
    content: submitted.map(({ attributes }) => {
      const reference = attributes.get('reference') ?? '';
      return {
        name: 'credential',
        attributes: { reference, guid: `G-${reference}`, 'access-token': `t-${reference}` },
      };
    }),
  });
}

// @rule 4.3-7, 8-1
it('many credentials are sent 10,000 a request, and their results joined in order', { tags: ['slow'] }, async () => {
  const { url, asked } = await serve(({ body }) => answerFor(body));
  const references = Array.from({ length: 20_001 }, (_, index) => `r${index}`);
  const results = await verifyCredentials(connectTo(url).caller, references, NEVER);
  expect(results.map(({ reference }) => reference)).toEqual(references);
  expect(asked.map(({ body }) => readXml(body)[0]?.children.length)).toEqual([10_000, 10_000, 1]);
  const { url: second, asked: askedThere } = await serve(({ body }) => answerFor(body));
  await verifyCredentials(connectTo(second).caller, references.slice(0, 10_000), NEVER);
  expect(askedThere).toHaveLength(1);
  expect(await verifyCredentials(connectTo(second).caller, [], NEVER)).toEqual([]);
  expect(askedThere).toHaveLength(1);
});

it('many credentials with long keys are split so that each answer can be read', async () => {
  const { url, asked } = await serve(({ body }) => answerFor(body).replaceAll(/"([Gt]-\d+-)x*"/g, '"$1"'));
  const references = Array.from({ length: 300 }, (_, index) => `${index}-`.padEnd(10_000, 'x'));
  const { caller } = connectTo(url);
  expect(await failure(verifyCredentials(caller, references, NEVER))).toMatchObject({ code: 'USAGE' });
  const results = await verifyCredentials(caller, references, NEVER, true);
  expect(results.map(({ reference }) => reference)).toEqual(references);
  expect(asked).toHaveLength(2);
});

it('many credentials are counted from the end of an earlier run', async () => {
  const { url } = await serve(() => '<credentials></credentials>');
  const batches = verifyInBatches(connectTo(url).caller, ['a'], NEVER, { before: 10_000 });
  expect((await failure(batches.next())).message).toContain('credentials 10001 to 10001');
});

it('many credentials are named by position if a request is refused', async () => {
  const { url, asked } = await serve(({ body }) => (asked.length === 2 ? golden('error-650.xml') : answerFor(body)));
  const references = Array.from({ length: 10_003 }, (_, index) => `r${index}`);
  const error = await failure(verifyCredentials(connectTo(url).caller, references, NEVER));
  expect(error).toMatchObject({ code: 'SERVICE_INVALID', serviceCode: 650, status: 200 });
  expect(error.message).toMatch(/^credentials 10001 to 10003: /);
  expect(error.hint).toMatch(/\.$/);
});

it('many credentials of a stream are read one batch at a time', async () => {
  const { url, asked } = await serve(({ body }) => answerFor(body));
  let read = 0;
  async function* source() {
    for (; ; read++) yield `r${read}`;
  }
  for await (const batch of verifyInBatches(connectTo(url).caller, source(), NEVER)) {
    expect(batch).toHaveLength(10_000);
    if (asked.length === 2) break;
  }
  expect(read).toBe(19_999);
});
