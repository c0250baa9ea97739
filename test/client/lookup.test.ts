import { expect, it, onTestFinished } from 'vitest';
import { createCatalogClient } from '../../src/client/catalog-client.ts';
import { systemClock } from '../../src/clock.ts';
import { loadConfig, requireSource } from '../../src/config.ts';
import { failure, KEY, NEVER, serve, TOKEN } from './connection.ts';

const task = { mirror: '', runId: 0, pass: 0, window: { page: 1, perPage: 1 }, from: null, maxAttempts: 1 };

/** The client of the mirror, and a service that answers every lookup with this status and body. */
async function mirrorClient(status: number, body: string) {
  const { url, asked } = await serve(() => ({ status, headers: { 'content-type': 'application/json' }, body }));
  const config = loadConfig({
    CATCHWORD_BASE_URL: url,
    CATCHWORD_API_KEY: KEY,
    CATCHWORD_ACCESS_TOKEN: TOKEN,
    CATCHWORD_LOOKUP_PATH: '/v4/products/:vbid',
  });
  const client = createCatalogClient(requireSource(config), systemClock);
  onTestFinished(() => client.close());
  return { client, asked };
}

it.each(['.', '..'])('does not look up a product called %s: its address would be another one', async (vbid) => {
  const { client, asked } = await mirrorClient(404, '');
  const error = await failure(client.read({ ...task, vbid }, NEVER));
  expect(error).toMatchObject({ code: 'SOURCE_REFUSED', retryable: false });
  expect(asked).toEqual([]);
});

it.each([404, 410])('does not find a product if the lookup is answered with %i', async (status) => {
  const { client } = await mirrorClient(status, '{"errors":["Product A not found"]}');
  expect(await client.read({ ...task, vbid: 'A' }, NEVER)).toMatchObject({ text: '' });
});

it('does not take a missing catalog for a missing product', async () => {
  const { client } = await mirrorClient(404, '{"errors":["Catalog not found"]}');
  expect(await failure(client.read({ ...task, vbid: 'A' }, NEVER))).toMatchObject({ code: 'SOURCE_AUTH' });
});
