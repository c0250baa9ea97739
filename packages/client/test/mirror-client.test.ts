// @module-tag service

import { systemClock } from '@catchword/base/clock';
import { createPacer, type Pacer } from '@catchword/pace/pacer';
import { expect, it } from 'vitest';
import { failure, mirrorClient, NEVER, type Reply, serve, TASK } from './connection.ts';
import { FRESH, service } from './stale-token.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

/** A client of the user `me`, and a service that answers with `stale` until the token is reset. */
async function staleCatalog(stale: Reply, pacer?: Pacer) {
  const ofUsers = service();
  const { url, asked } = await serve((one) => {
    if (one.url.startsWith('/v3')) return ofUsers(one);
    return one.headers['x-service-access-token'] === FRESH ? { headers: JSON_TYPE, body: '{}' } : stale;
  });
  return { client: mirrorClient(url, { CATCHWORD_USER_REFERENCE: 'me' }, pacer), asked };
}

it.each([
  [200, '{"errors":["601: the access token has expired"]}', JSON_TYPE],
  [403, '"601 Access token expired"', JSON_TYPE],
  [200, '<error code="601" message="stale"/>', {}],
  [200, '601: the access token has expired', { 'content-type': 'text/plain' }],
  [401, '<error-response><error-code>601</error-code><error-text>stale</error-text></error-response>', {}],
])('a stale token of the catalog is renewed after %i %s', async (status, body, headers) => {
  const { client, asked } = await staleCatalog({ status, headers, body });
  const pages = await Promise.all([client.read(TASK, NEVER), client.read(TASK, NEVER)]);
  expect(pages.map(({ body }) => Buffer.from(body).toString())).toEqual(['{}', '{}']);
  expect(asked.filter((one) => one.url.includes('reset'))).toHaveLength(1);
});

it('every request of a token renewal waits for its turn, and so does the retry', async () => {
  let turns = 0;
  const unlimited = createPacer({ pace: null, clock: systemClock });
  const pacer: Pacer = {
    ...unlimited,
    acquire: (...asking) => {
      turns++;
      return unlimited.acquire(...asking);
    },
  };
  const stale = { status: 401, headers: JSON_TYPE, body: '{"errors":["601: the access token has expired"]}' };
  const { client, asked } = await staleCatalog(stale, pacer);
  await pacer.acquire(NEVER);
  expect(Buffer.from((await client.read(TASK, NEVER)).body).toString()).toBe('{}');
  expect(asked.length).toBeGreaterThan(3);
  expect(turns).toBe(asked.length);
});

/** The client of the mirror, and a service that answers every lookup with this status and body. */
async function lookupClient(status: number, body: string) {
  const { url, asked } = await serve(() => ({ status, headers: JSON_TYPE, body }));
  return { client: mirrorClient(url, { CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid' }), asked };
}

it.each(['.', '..'])(
  'the client of the mirror does not look up a product called %s: its address would be another one',
  async (vbid) => {
    const { client, asked } = await lookupClient(404, '');
    const error = await failure(client.read({ ...TASK, vbid }, NEVER));
    expect(error).toMatchObject({ code: 'SOURCE_REFUSED', retryable: false });
    expect(asked).toEqual([]);
  },
);

it.each([404, 410])(
  'the client of the mirror does not find a product if the lookup is answered with %i',
  async (status) => {
    const { client } = await lookupClient(status, '{"errors":["Product A not found"]}');
    expect(await client.read({ ...TASK, vbid: 'A' }, NEVER)).toMatchObject({ body: new Uint8Array() });
  },
);

it('the client of the mirror does not take a missing catalog for a missing product', async () => {
  const { client } = await lookupClient(404, '{"errors":["Catalog not found"]}');
  expect(await failure(client.read({ ...TASK, vbid: 'A' }, NEVER))).toMatchObject({ code: 'SOURCE_AUTH' });
});
