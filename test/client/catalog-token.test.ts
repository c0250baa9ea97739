import { expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createPacer, type Pacer } from '../../src/pace/pacer.ts';
import { mirrorClient, NEVER, serve, TASK } from './connection.ts';
import { FRESH, service } from './stale-token.ts';

it.each([
  [200, '{"errors":["601: the access token has expired"]}'],
  [403, '"601 Access token expired"'],
  [200, '<error code="601" message="stale"/>'],
  [200, '601: the access token has expired'],
  [401, '<error-response><error-code>601</error-code><error-text>stale</error-text></error-response>'],
])('reads the catalog with a new token after %i %s', async (status, body) => {
  const json = { 'content-type': 'application/json' };
  const ofUsers = service();
  const { url, asked } = await serve((one) => {
    if (one.url.startsWith('/v3')) return ofUsers(one);
    return one.headers['x-service-access-token'] === FRESH
      ? { headers: json, body: '{}' }
      : {
          status,
          headers: body.startsWith('<') ? {} : /^6/.test(body) ? { 'content-type': 'text/plain' } : json,
          body,
        };
  });
  const client = mirrorClient(url, { CATCHWORD_USER_REFERENCE: 'me' });
  const pages = await Promise.all([client.read(TASK, NEVER), client.read(TASK, NEVER)]);
  expect(pages.map(({ body }) => Buffer.from(body).toString())).toEqual(['{}', '{}']);
  expect(asked.filter((one) => one.url.includes('reset'))).toHaveLength(1);
});

it('every request of a token renewal waits for its turn, and so does the retry', async () => {
  const ofUsers = service();
  const { url, asked } = await serve((one) => {
    if (one.url.startsWith('/v3')) return ofUsers(one);
    const isFresh = one.headers['x-service-access-token'] === FRESH;
    const headers = { 'content-type': 'application/json' };
    return isFresh
      ? { headers, body: '{}' }
      : { status: 401, headers, body: '{"errors":["601: the access token has expired"]}' };
  });
  let turns = 0;
  const unlimited = createPacer({ pace: null, clock: systemClock });
  const pacer: Pacer = {
    ...unlimited,
    acquire: (...asking) => {
      turns++;
      return unlimited.acquire(...asking);
    },
  };
  const client = mirrorClient(url, { CATCHWORD_USER_REFERENCE: 'me' }, pacer);
  await pacer.acquire(NEVER);
  expect(Buffer.from((await client.read(TASK, NEVER)).body).toString()).toBe('{}');
  expect(asked.length).toBeGreaterThan(3);
  expect(turns).toBe(asked.length);
});
