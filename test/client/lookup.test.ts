import { expect, it } from 'vitest';
import { failure, mirrorClient, NEVER, serve, TASK } from './connection.ts';

/** The client of the mirror, and a service that answers every lookup with this status and body. */
async function lookupClient(status: number, body: string) {
  const { url, asked } = await serve(() => ({ status, headers: { 'content-type': 'application/json' }, body }));
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
