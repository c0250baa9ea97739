// @module-tag service

import { validate } from '@catchword/sandbox/http/validate';
import { expect, it } from 'vitest';
import { z } from 'zod';

const short = z.string().min(3, { error: 'is short' }).regex(/^x/, { error: 'begins otherwise' });

it('the check of a body names each unknown member with its place, and the known members', () => {
  const schema = z.strictObject({ a: short.optional(), b: z.strictObject({ c: short.optional() }) });
  expect(() => validate(schema, { a: 'y', b: { d: 1 }, e: 2, f: 3 })).toThrow(
    expect.objectContaining({
      errors: ['a: is short', 'b/d: is unknown; use c', 'e: is unknown; use a, b', 'f: is unknown; use a, b'],
    }),
  );
});

it('the check of a body reports only the first problem of a member', () => {
  const schema = z.object({ a: short, b: z.object({ c: short }) });
  expect(() => validate(schema, { a: 'y', b: { c: 'yyy' } })).toThrow(
    expect.objectContaining({ status: 422, errors: ['a: is short', 'b/c: begins otherwise'] }),
  );
});
