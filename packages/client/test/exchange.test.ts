// @module-tag service

import { prepare, type Request } from 'catchword-client/http/exchange';
import { expect, it } from 'vitest';

const GET: Omit<Request, 'path'> = { method: 'GET', format: 'json', token: false, repeatable: true };

it('a path whose value is missing is an error, not a request', () => {
  for (const given of [{}, { values: {} }, { values: { vbid: undefined } }]) {
    expect(() => prepare({ ...GET, ...given, path: '/v4/assets/:vbid' })).toThrow('the vbid is not a text');
  }
});

it('a colon within a segment of a configured path stays', () => {
  const path = '/v4/products:lookup/isbn-:vbid';
  expect(prepare({ ...GET, path, values: { vbid: 'a/b' } }).path).toBe('/v4/products:lookup/isbn-a%2Fb');
});

it('an identifier may be long', () => {
  const id = 'r'.repeat(2_000);
  expect(prepare({ ...GET, path: '/v3/users/:user_id', values: { user_id: id } }).path).toBe(`/v3/users/${id}`);
});
