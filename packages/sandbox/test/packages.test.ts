// @module-tag service

import { createNumbering } from '@catchword/sandbox/catalog/product-numbers';
import type { Sandbox } from '@catchword/sandbox/sandbox-server';
import { itWith, sandboxFor } from '@catchword/testing/sandbox-for';
import { expect } from 'vitest';
import { callerHeaders, exchange } from './exchange.ts';

const it = itWith({ items: 10 });

const vbid = (index: number) => createNumbering(1).vbid(index);

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

async function send(sandbox: Sandbox, operation: `${Method} /${string}`, body?: unknown) {
  const text = body === undefined ? null : JSON.stringify(body);
  const answer = await exchange(sandbox, operation, text, callerHeaders(null));
  expect(answer.contentType).toBe('application/json');
  return { status: answer.status, json: JSON.parse(answer.text) as Record<string, unknown> };
}

const SHELF = { sku: 'SHELF-1', name: 'First year', products: [vbid(0)] };

it('the sandbox generates a different SKU for each package', async ({ sandbox }) => {
  const skus = [];
  for (const name of ['a', 'b']) skus.push((await send(sandbox, 'POST /v4/packages', { name })).json.sku);
  expect(new Set(skus).size).toBe(2);
});

it('the sandbox answers only at the path of the options', async () => {
  const sandbox = await sandboxFor({ items: 10, booksPath: '/v4/vital_books', packagesPath: '/packages' });
  expect(await send(sandbox, 'POST /packages', SHELF)).toMatchObject({ status: 200 });
  expect((await send(sandbox, `GET /v4/vital_books/${vbid(0)}`)).status).toBe(200);
  for (const path of ['/v4/packages/SHELF-1', `/vital_books/${vbid(0)}`, `/v3/vital_books/${vbid(0)}`] as const) {
    expect([path, (await send(sandbox, `GET ${path}`)).status]).toEqual([path, 404]);
  }
});

it('the sandbox accepts a package of tens of thousands of products', { tags: ['slow'] }, async ({ sandbox }) => {
  const products = new Array(40_000).fill(vbid(0));
  const { status, json } = await send(sandbox, 'POST /v4/packages', { name: 'a', products });
  expect([status, json.products]).toEqual([200, [vbid(0)]]);
});

it('the sandbox rejects a package that is not UTF-8', async ({ sandbox }) => {
  const body = Buffer.from('{"name":"Caf\xe9","products":[]}', 'latin1');
  const { status, text } = await exchange(sandbox, 'POST /v4/packages', body);
  expect([status, text]).toEqual([422, '{"errors":["body: is not UTF-8"]}']);
});

it.for(['[', '{"a":'])('the sandbox does not keep a package with deep JSON of %s', async (open, { sandbox }) => {
  const deep = open.repeat(100_000) + (open === '[' ? ']'.repeat(100_000) : `1${'}'.repeat(100_000)}`);
  const body = `{"sku":"DEEP","name":"Deep","products":[],"more":${deep}}`;
  const answer = await exchange(sandbox, 'POST /v4/packages', body, callerHeaders(null));
  expect(answer).toMatchObject({ status: 500, text: expect.stringContaining('call stack') });
  expect((await send(sandbox, 'GET /v4/packages/DEEP')).status).toBe(404);
  const more = JSON.parse('['.repeat(60) + ']'.repeat(60)) as unknown;
  expect(await send(sandbox, 'POST /v4/packages', { ...SHELF, more })).toMatchObject({ status: 200, json: { more } });
});
