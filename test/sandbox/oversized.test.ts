import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readJsonBody } from '../../src/sandbox/http/json-body.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { NEW, put, send } from './assets-client.ts';
import { sandboxFor } from './client.ts';

const many = (count: number, element: string) => `[${new Array(count).fill(element).join(',')}]`;

describe('7: a body that holds far too much', () => {
  it.each([
    ['PUT', '/v4/assets/L-1', `{"title":"a","imprint_id":1,"prices":${many(1_200_000, '{}')}}`, 'prices', 10_000],
    ['PUT', '/v4/assets/L-1', `{"identifiers":{"e_isbn_13":${many(200_000, '"x"')}}}`, 'identifiers', 10_000],
    ['PUT', '/v4/assets/L-1', `{"variants":${many(101, `{"channel_ids":${many(100, '{}')}}`)}}`, 'variants', 10_000],
    ['POST', '/v4/packages', `{"name":"a","products":${many(200_000, '"x"')}}`, 'products', 50_000],
  ] as const)('%s %s is refused, the member named, and not kept', async (method, path, body, member, most) => {
    const db = join(temporaryDirectory(), 'journal.ndjson');
    const sandbox = await sandboxFor({ items: 0, db });
    const before = readFileSync(db, 'utf8');
    const { status, errors } = await send(sandbox, method, path, body);
    expect([status, errors]).toEqual([422, [`${member}: at most ${most} values are taken in a body`]]);
    expect(readFileSync(db, 'utf8')).toBe(before);
    expect((await put(sandbox, 'L-2', NEW)).status).toBe(200);
  });

  it('has a hundred of its errors told, and how many more there are', async () => {
    const sandbox = await sandboxFor({ items: 0 });
    const { status, errors } = await put(sandbox, 'L-1', { ...NEW, prices: new Array(1000).fill({}) });
    expect([status, errors.length, errors[0], errors.at(-1)]).toEqual([
      ...[422, 101, 'prices/0/currency: a currency code is needed', '… and 2900 more'],
    ]);
  });

  it('may hold thousands of products', async () => {
    const sandbox = await sandboxFor({ items: 0 });
    await put(sandbox, 'L-1', NEW);
    const { status, body } = await send(
      sandbox,
      'POST',
      '/v4/packages',
      `{"name":"a","products":${many(40_000, '"L-1"')}}`,
    );
    expect([status, body.products]).toEqual([200, ['L-1']]);
  });
});

describe('the gate in front of the schemas', () => {
  const read = (json: string) => readJsonBody(Buffer.from(json), 10);

  it('counts elements and members at every level', () => {
    const body = (inner: string) => `{"a":[1,2,3,4],"b":{"c":1,"d":${inner}}}`;
    expect(read(body('[2,3]'))).toEqual({ json: JSON.parse(body('[2,3]')) as unknown });
    expect(read(body('[2,3,4]'))).toEqual({ wrong: ['b: at most 10 values are taken in a body'] });
    expect(read(`{"__proto__":${many(11, '1')}}`)).toEqual({ wrong: [expect.stringMatching(/^__proto__: /)] });
  });

  it('takes 64 levels, the body itself among them', () => {
    const nested = (levels: number) => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`;
    const deep = (levels: number) => readJsonBody(Buffer.from(nested(levels)), 1000);
    expect(deep(63)).toHaveProperty('json');
    expect(deep(64)).toEqual({ wrong: ['a: at most 64 levels are taken'] });
  });

  it.each(['[]', '[[1,2,3,4,5,6,7,8,9,10,11]]', 'null', '7'])('leaves %s to the schema', (json) => {
    expect(read(json)).toEqual({ json: JSON.parse(json) as unknown });
  });
});
