// @module-tag service

import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { CREDENTIALS, firstItem, getJson, getPage, itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { request } from 'undici';
import { expect } from 'vitest';
import { FIELDS } from '../../../test/service/fields.ts';
import { put, send } from './asset-requests.ts';

const it = itWith({ items: 0 });

interface Schemed {
  readonly schema: object;
}
interface Described {
  readonly parameters: readonly ({ readonly name: string } & Schemed)[];
  readonly requestBody: { readonly content: { readonly 'application/json': Schemed } };
  readonly responses: { readonly 200: { readonly content: { readonly 'application/json': Schemed } } };
}
type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>> };

// The patterns are stricter than the formats.
const ajv = new Ajv2020({ strict: false, validateFormats: false });

async function described(sandbox: Sandbox, operation: string): Promise<Described> {
  const [method = '', path = ''] = operation.split(' ');
  const document = await getJson<Document>(sandbox, '/openapi.json');
  const found = document.paths[path]?.[method.toLowerCase()];
  if (found === undefined) throw new Error(`${operation} is not described`);
  return found;
}

/** Returns whether the document describes a body, whether the sandbox accepts it, and whether the reply is described. */
async function tried(sandbox: Sandbox, operation: string, at: string, body: object) {
  const { requestBody, responses } = await described(sandbox, operation);
  const response = await request(sandbox.url + at, {
    method: operation.split(' ')[0] as 'PUT',
    headers: CREDENTIALS,
    body: JSON.stringify(body),
  });
  const answer: unknown = await response.body.json();
  const taken = response.statusCode === 200;
  return {
    described: ajv.validate(requestBody.content['application/json'].schema, body),
    taken,
    answered: !taken || ajv.validate(responses[200].content['application/json'].schema, answer),
  };
}

const NEW = { title: 'Tides', imprint_id: 1 };

it.for(FIELDS)('the OpenAPI document describes the values of $names that are accepted', async (field, { sandbox }) => {
  const put = await described(sandbox, 'PUT /v4/assets/{vbid}');
  const post = await described(sandbox, 'POST /vital_books');
  const { names, taken, refused, byClient = [] } = field;
  const fits = (body: object) =>
    [put, post].map(({ requestBody }) => ajv.validate(requestBody.content['application/json'].schema, body));
  for (const name of names.split(' ')) {
    const answers = (values: readonly unknown[]) => values.map((value) => [value, ...fits({ ...NEW, [name]: value })]);
    expect(answers([...taken, ...byClient])).toEqual([...taken, ...byClient].map((value) => [value, true, true]));
    expect(answers(refused)).toEqual(refused.map((value) => [value, false, false]));
  }
  // A PUT may create or update, so its description does not require the two members that a creation needs.
  for (const body of [{ title: 'Tides' }, { imprint_id: 1 }]) expect(fits(body)).toEqual([true, false]);
});

const SHELF = { name: 'First year', products: [] };

it.for([
  { list_price: -1 },
  { list_price: '-1' },
  { list_price: '1.50' },
  { list_price: null },
  { library_id: 1.5 },
  { library_id: '1e3' },
  { library_id: '7' },
  ...['.', '..', '...', '', 'a b/ü', 'x'.repeat(256)].map((sku) => ({ sku })),
  ...[0, 1, '0', '30', null, undefined].map((num_days) => ({ online_license: { type: 'numdays', num_days } })),
  ...['2030-01-31', '2030-02-30', null].map((details) => ({ download_license: { type: 'absdate', details } })),
  { download_license: { type: 'perpetual' } },
  { download_license: { type: 'forever' } },
  { tags: [1] },
  { name: '' },
  { name: undefined },
  { own_field: { a: 1 } },
])('the OpenAPI document describes which packages are accepted: %j', async (more, { sandbox }) => {
  const { described, taken, answered } = await tried(sandbox, 'POST /v4/packages', '/v4/packages', {
    ...SHELF,
    ...more,
  });
  expect([described, answered]).toEqual([taken, true]);
});

it.each(['', '?include_details=metadata,subjects,identifiers,accessibility', '?from=2020-01-01'])(
  'the OpenAPI document describes the pages of products%s',
  async (query) => {
    const sandbox = await sandboxFor({ items: 1000 });
    sandbox.catalog.mutate({ remove: 3 });
    const { responses } = await described(sandbox, 'GET /v4/products');
    expect(ajv.validate(responses[200].content['application/json'].schema, await getPage(sandbox, query))).toBe(true);
  },
);

it.each([
  ['2030-01-01', 200],
  ['2030-01-01T10:00', 200],
  ['2030-01-01T10:00+02:00', 200],
  ['2030-01-01T10:00:00.5Z', 200],
  ['2030-01-01T10:00:00+02:00', 200],
  ['2030-02-30', 422],
  ['tomorrow', 422],
])('the OpenAPI document describes that the time %s gets status %i', async (from, status) => {
  const sandbox = await sandboxFor({ items: 1 });
  const { parameters } = await described(sandbox, 'GET /v4/products');
  const schema = parameters.find(({ name }) => name === 'from')?.schema ?? {};
  const response = await request(`${sandbox.url}/v4/products?from=${encodeURIComponent(from)}`, {
    headers: CREDENTIALS,
  });
  await response.body.dump();
  expect([response.statusCode, ajv.validate(schema, from)]).toEqual([status, status === 200]);
});

it('the OpenAPI document describes which identifiers of an asset are accepted', async ({ sandbox }) => {
  const { parameters } = await described(sandbox, 'PUT /v4/assets/{vbid}');
  const schema = parameters.find(({ name }) => name === 'vbid')?.schema ?? {};
  for (const vbid of ['L-1', '9780306406157', '-1', 'a b', 'x'.repeat(65)]) {
    const { taken } = await tried(sandbox, 'PUT /v4/assets/{vbid}', `/v4/assets/${encodeURIComponent(vbid)}`, NEW);
    expect([vbid, ajv.validate(schema, vbid)]).toEqual([vbid, taken]);
  }
});

it.each([
  ['PUT /v4/assets/{vbid}', 'PUT'],
  ['GET /vital_books/{vbid}', 'GET'],
] as const)('the OpenAPI document describes every member of an asset in the reply to %s', async (operation, method) => {
  const sandbox = await sandboxFor({ items: 1 });
  const { responses } = await described(sandbox, operation);
  const { schema } = responses[200].content['application/json'];
  const { vbid: own } = await firstItem(sandbox);
  for (const vbid of ['L-1', own]) {
    const written = await put(sandbox, vbid, NEW);
    const { body } = method === 'PUT' ? written : await send(sandbox, 'GET', `/vital_books/${vbid}`);
    expect(Object.keys((schema as { properties: object }).properties).sort()).toEqual(Object.keys(body).sort());
    expect(ajv.validate(schema, body)).toBe(true);
  }
});

it('GET /openapi.json answers HEAD, too', async () => {
  const { url } = await sandboxFor({ items: 0 });
  const response = await request(`${url}/openapi.json`, { method: 'HEAD' });
  expect([response.statusCode, await response.body.text()]).toEqual([200, '']);
});
