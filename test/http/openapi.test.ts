import { execute } from '@catchword/testing/sqlite';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, it } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { load } from '../support/load.ts';
import { filled } from '../support/place.ts';
import { emptyMirror, serve } from './place.ts';
import { get, getJson } from './reader.ts';

type Schema = Readonly<Record<string, unknown>>;

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { name: string; in: string; schema: Schema }[];
  readonly responses: Readonly<Record<string, { description: string; content: Record<string, { schema: Schema }> }>>;
}

interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const SOURCE_FIELDS = ['Product', 'ChangedFields'];

/** The same schema, which accepts no field that it does not name. The fields of products are the source's. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  // The one that describes any object has no properties.
  const isNamed = 'properties' in schema && Object.keys(schema.properties as object).length > 0;
  const entries = Object.entries(schema).map(([key, value]) => [key, key === 'examples' ? value : closed(value)]);
  return { ...Object.fromEntries(entries), ...(isNamed && { additionalProperties: false }) };
}

function createChecks({ paths, components }: Described) {
  const schemas = Object.entries(components.schemas).map(([name, schema]) => [
    name,
    SOURCE_FIELDS.includes(name) ? schema : closed(schema),
  ]);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({
    $id: 'https://catchword.example/api',
    components: { schemas: Object.fromEntries(schemas) as object },
  });
  const resolved = (schema: unknown): object =>
    JSON.parse(
      JSON.stringify(closed(schema)).replaceAll('"#/components/', '"https://catchword.example/api#/components/'),
    ) as object;

  /** Expects an answer to be what the document says about its path and status. */
  return async (url: string, address: string, path: string) => {
    const { status, headers, text } = await get(`${url}${address}`);
    const answer = paths[path]?.get?.responses[status];
    const [type = ''] = (headers['content-type'] ?? '').split(';');
    const schema = answer?.content[type]?.schema;
    expect(schema, `${address} ${status} ${type}`).toBeDefined();
    const value: unknown = type.endsWith('json') ? JSON.parse(text) : text;
    const validate = ajv.compile(resolved(schema));
    expect([address, validate(value), validate.errors]).toEqual([address, true, null]);
    return { status, value };
  };
}

it('the description has no finding of the linter, and names every route of the API', async () => {
  const { web } = await serve(emptyMirror());
  const { status, headers, text } = await get(`${web.url}/openapi.json`);
  expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: 'application/json; charset=utf-8' });
  const config = await createConfig({ extends: ['recommended'] });
  const problems = await lintFromString({ source: text, absoluteRef: '/openapi.json', config });
  expect(problems.map(({ ruleId, message, location }) => ({ ruleId, message, at: location[0]?.pointer }))).toEqual([]);

  const { paths } = JSON.parse(text) as Described;
  expect(Object.entries(paths).map(([path, { get: read }]) => [path, read?.operationId])).toEqual([
    ['/healthz', 'getHealth'],
    ['/readyz', 'getReadiness'],
    ['/api/status', 'getStatus'],
    ['/api/settings', 'listSettings'],
    ['/api/processes', 'listProcesses'],
    ['/api/sinks', 'listSinks'],
    ['/api/decisions', 'listDecisions'],
    ['/api/problems', 'listProblems'],
    ['/api/runs', 'listRuns'],
    ['/api/sinks/{name}/parked', 'listParkedEvents'],
    ['/api/rejected', 'listRejectedItems'],
    ['/api/products', 'searchProducts'],
    ['/api/products/{vbid}', 'getProduct'],
    ['/api/changes', 'listChanges'],
    ['/metrics', 'getMetrics'],
    ['/api/changes/stream', 'streamChanges'],
    ['/openapi.json', 'getDescription'],
    ['/schemas/event.json', 'getEventSchema'],
  ]);
  // The same document again, and no further routes.
  expect((await get(`${web.url}/openapi.json`)).text).toBe(text);
});

it('the description has the parameters as the routes take them', async () => {
  const { web } = await serve(emptyMirror());
  const { paths } = await getJson<Described>(`${web.url}/openapi.json`);
  const of = (path: string) => paths[path]?.get?.parameters?.map(({ name, schema }) => ({ name, ...schema }));
  expect(of('/api/changes')).toEqual([
    { name: 'after', type: 'string', default: '0' },
    { name: 'since', type: 'string' },
    { name: 'op', title: 'What', type: 'string' },
    { name: 'field', title: 'Fields', type: 'string' },
    { name: 'where', type: 'string' },
    { name: 'fields', type: 'string' },
    { name: 'approved', type: 'string', enum: ['true'] },
    { name: 'limit', type: 'integer', minimum: 1, maximum: 10_000, default: 1000 },
  ]);
  expect(of('/api/status')).toBeUndefined();
  expect(of('/api/products')?.at(-1)).toMatchObject({ name: 'limit', maximum: 1_000 });
  expect(of('/api/changes/stream')?.map(({ name }) => name)).toEqual(['after', 'where', 'fields', 'approved']);
});

it('the description has every answer of a server exactly', { tags: ['slow'] }, async () => {
  const { db, settings, sandbox } = await filled({ items: 3_000, details: true, withdrawnForMs: 0 });
  sandbox.catalog.mutate({ update: 5, remove: 2, seed: 1 });
  await load(settings, 'full');
  const store = openStore(db);
  const removed = store.changes.after(3_000, 100).find(({ op }) => op === 'removed')?.vbid;
  const [living] = [...store.products.all()];
  store.close();
  const { web } = await serve(db);
  const check = createChecks(await getJson<Described>(`${web.url}/openapi.json`));

  const { value: status } = await check(web.url, '/api/status', '/api/status');
  expect(status).toMatchObject({ last_run: { evidence: { lists: [expect.anything()] } } });
  await check(web.url, '/api/runs', '/api/runs');
  await check(web.url, '/api/products?q=history', '/api/products');
  await check(web.url, '/api/products?where=true&fields=vbid,title', '/api/products');
  await check(web.url, '/api/changes?after=2990&where=true&fields=title', '/api/changes');
  await check(web.url, `/api/products/${living?.vbid}`, '/api/products/{vbid}');
  const gone = await check(web.url, `/api/products/${removed}`, '/api/products/{vbid}');
  expect(gone.value).toMatchObject({ body: null, removed_at: expect.any(String) as string });
  const { value: page } = await check(web.url, '/api/changes?after=2990', '/api/changes');
  const ops = (page as { events: { data: { op: string } }[] }).events.map(({ data }) => data.op);
  expect(new Set(ops)).toEqual(new Set(['created', 'updated', 'removed']));
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/schemas/event.json'])
    await check(web.url, path, path);

  const failing: [string, string, number][] = [
    ['/api/runs?limit=0', '/api/runs', 400],
    ['/api/products', '/api/products', 400],
    ['/api/changes?after=99999', '/api/changes', 400],
    ['/api/changes/stream?after=x', '/api/changes/stream', 400],
    ['/api/products/unknown', '/api/products/{vbid}', 404],
  ];
  for (const [address, path, expected] of failing) {
    expect((await check(web.url, address, path)).status, address).toBe(expected);
  }
  execute(db, 'DROP VIEW change_log; DROP TABLE changes');
  expect((await check(web.url, '/api/changes', '/api/changes')).status).toBe(500);

  const { web: fresh } = await serve(emptyMirror());
  await check(fresh.url, '/api/status', '/api/status');
  expect((await check(fresh.url, '/readyz', '/readyz')).status).toBe(503);
  const { web: closedToOthers } = await serve(emptyMirror(), { token: 'secret' });
  for (const path of ['/api/status', '/openapi.json', '/schemas/event.json'])
    expect((await check(closedToOthers.url, path, path)).status, path).toBe(401);
});

it('the description has examples that fit their schemas', async () => {
  const { web } = await serve(emptyMirror());
  const { components } = await getJson<Described>(`${web.url}/openapi.json`);
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'https://catchword.example/api', components });
  let checked = 0;
  for (const [name, { examples = [] }] of Object.entries(components.schemas)) {
    for (const example of examples as unknown[]) {
      const validate = ajv.getSchema(`https://catchword.example/api#/components/schemas/${name}`);
      expect([name, validate?.(example), validate?.errors]).toEqual([name, true, null]);
      checked++;
    }
  }
  expect(checked).toBeGreaterThan(1);
});
