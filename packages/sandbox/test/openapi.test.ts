// @module-tag service

import { CREDENTIALS, firstItem, sandboxFor } from '@catchword/testing/sandbox-for';
import { request } from 'undici';
import { expect, it } from 'vitest';
import { NEW, put } from './asset-requests.ts';

interface Described {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly security: readonly Readonly<Record<string, unknown>>[];
}

interface Description {
  readonly openapi: string;
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: { readonly securitySchemes: Readonly<Record<string, unknown>> };
}

/** Interface, section 4, and additional paths of services. */
const INTERFACE = [
  'put /v4/assets',
  'put /v4/assets/{vbid}',
  'get /v3/licenses.xml',
  'post /v3/credentials.xml',
  'get /v4/products',
  'get /v4/products/{vbid}',
  'post /vital_books',
  'put /vital_books/{vbid}',
  'get /vital_books/{vbid}',
  'post /v4/packages',
  'put /v4/packages/{sku}',
  'get /v4/packages/{sku}',
  'delete /v4/packages/{sku}/assets',
  'post /v3/users',
  'post /v3/users/reset_access',
];

async function described() {
  const sandbox = await sandboxFor({ items: 2 });
  const response = await request(`${sandbox.url}/openapi.json`);
  const description = (await response.body.json()) as Description;
  const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  );
  return { sandbox, description, operations };
}

function* refsIn(value: unknown): Iterable<string> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key === '$ref') yield String(inner);
    else yield* refsIn(inner);
  }
}

// @rule 9-1
it('GET /openapi.json has every operation of section 4, with its parameters, headers and a unique name', async () => {
  const { sandbox, description, operations } = await described();
  expect(description).toMatchObject({ openapi: '3.1.0', servers: [{ url: sandbox.url }] });
  expect(operations.map(({ method, path }) => `${method} ${path}`)).toEqual(expect.arrayContaining(INTERFACE));
  expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
  for (const { path, operation } of operations) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const inPath = operation.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
    expect([path, inPath]).toEqual([path, named]);
    expect(Object.keys(description.components.securitySchemes)).toEqual(
      expect.arrayContaining(Object.keys(operation.security[0] ?? {})),
    );
  }
  expect(description.paths['/v4/products']?.get?.parameters.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['page', 'per_page', 'from', 'until', 'include_details', 'currency']),
  );
});

it('GET /openapi.json has schemas of requests and replies, and valid references', async () => {
  const { description } = await described();
  const refs = [...new Set(refsIn(description))];
  expect(refs).not.toEqual([]);
  for (const ref of refs) {
    const found = ref
      .replace(/^#\//, '')
      .split('/')
      .reduce<unknown>((at, name) => (at as Readonly<Record<string, unknown>> | undefined)?.[name], description);
    expect([ref, found]).toEqual([ref, expect.any(Object)]);
  }
  expect(description.paths['/v4/assets/{vbid}']?.put).toMatchObject({
    requestBody: {
      content: {
        'application/json': {
          schema: { properties: { title: { type: 'string' }, edition: { anyOf: expect.any(Array) } } },
        },
      },
    },
    responses: { 200: { content: { 'application/json': { schema: { properties: { vbid: { type: 'string' } } } } } } },
  });
});

it('GET /openapi.json describes only existing operations', async () => {
  const { sandbox, operations } = await described();
  const { vbid } = await firstItem(sandbox);
  await put(sandbox, 'L-1', NEW);
  for (const { method, path } of operations) {
    const at = path.replace('{vbid}', vbid).replace(/\{\w+\}/, 'x');
    const response = await request(sandbox.url + at, {
      method: method.toUpperCase() as 'GET',
      headers: CREDENTIALS,
      ...(method !== 'get' && { body: '{}' }),
    });
    const text = await response.body.text();
    expect([method, path, response.statusCode, text]).not.toEqual([method, path, 405, expect.any(String)]);
    expect(text).not.toContain(`${at} not found`);
    if (path.includes('{vbid}')) expect([path, response.statusCode]).not.toEqual([path, 404]);
  }
});
