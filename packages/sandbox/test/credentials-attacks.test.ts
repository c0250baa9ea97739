// @module-tag service
import { Readable } from 'node:stream';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { CREDENTIALS, itWith } from '@catchword/testing/sandbox-for';
import { ATTACKS, GOOD } from '@catchword/testing/xml-attacks';
import { request } from 'undici';
import { expect } from 'vitest';
import { errorOf, exchange, outcomes } from './exchange.ts';

const it = itWith({ items: 0 });

async function isServing(sandbox: Sandbox): Promise<boolean> {
  const answer = await exchange(sandbox, 'POST /v3/credentials.xml', GOOD);
  return answer.status === 200 && outcomes(answer)[0] === 'user-0000001';
}

it.for(ATTACKS)(
  'POST /v3/credentials.xml rejects %s with 650, and continues to serve',
  async ([, body], { sandbox }) => {
    const answer = await exchange(sandbox, 'POST /v3/credentials.xml', body);
    expect(errorOf(answer)).toEqual([400, '650']);
    expect(answer.text.length).toBeLessThan(500);
    expect(answer.text).not.toMatch(/root:|lollol/);
    expect(await isServing(sandbox)).toBe(true);
  },
);

it.for([
  ['with its length', true],
  ['in chunks', false],
] as const)('POST /v3/credentials.xml rejects 100 MB %s because of their size', async ([, withLength], { sandbox }) => {
  const piece = Buffer.alloc(2 ** 20, 'x');
  const start = Buffer.from('<credentials><credential reference="');
  const pieces = (function* () {
    yield start;
    for (let sent = 0; sent < 100; sent++) yield piece;
  })();
  const length = { 'content-length': String(start.length + 100 * piece.length) };
  const response = await request(`${sandbox.url}/v3/credentials.xml`, {
    method: 'POST',
    body: Readable.from(pieces),
    headers: { ...CREDENTIALS, ...(withLength && length) },
  });
  expect(response.statusCode).toBe(413);
  expect(await response.body.text()).toContain('\n<error-response><error-code>413</error-code>');
  expect(await isServing(sandbox)).toBe(true);
});

it('POST /v3/credentials.xml accepts XML that only looks like an attack', async ({ sandbox }) => {
  const harmless = [
    `<?xml version="1.0" encoding="utf-8" standalone="yes"?>${GOOD}`,
    GOOD.replace('user', '&#117;ser'),
    GOOD.replace('<credential ', '<![CDATA[ & < ]]><credential '),
    `${GOOD}<!-- ]]> &x; -->`,
  ];
  for (const body of harmless) {
    expect(outcomes(await exchange(sandbox, 'POST /v3/credentials.xml', body))).toEqual(['user-0000001']);
  }
});
