// @module-tag service

import { itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { expect } from 'vitest';
import { errorOf, exchange, outcomes, verify } from './exchange.ts';

const it = itWith({ items: 0 });

// @rule 4.3-7, 8-1
it('8: the sandbox accepts up to 10,000 records in a request, in order', { tags: ['slow'] }, async () => {
  const sandbox = await sandboxFor({ items: 0, users: 20_000 });
  const references = Array.from({ length: 10_000 }, (_, at) => `user-${String(20_000 - at).padStart(7, '0')}`);
  const asked = references.map((reference) => `<credential reference="${reference}"/>`);
  expect(outcomes(await verify(sandbox, asked.join('')))).toEqual(references);
  // End tags double the number of tags.
  const ended = references.map((reference) => `<credential reference="${reference}"></credential>`);
  expect(outcomes(await verify(sandbox, ended.join('')))).toEqual(references);
  expect(errorOf(await verify(sandbox, `${asked.join('')}${asked[0]}`))).toEqual([400, '650']);
});

it('8: the sandbox accepts 10,000 long references of three bytes a character', { tags: ['slow'] }, async ({
  sandbox,
}) => {
  const many = Array.from({ length: 10_000 }, (_, at) => `<credential reference="${String(at).padStart(244, '書')}"/>`);
  const body = `<credentials>${many.join('')}</credentials>`;
  expect(Buffer.byteLength(body)).toBeGreaterThan(6 * 2 ** 20);
  const answer = await exchange(sandbox, 'POST /v3/credentials.xml', body);
  expect([answer.status, answer.text.split('code="603"').length - 1]).toEqual([200, 10_000]);
});
