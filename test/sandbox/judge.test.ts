import { expect, it } from 'vitest';
import { z } from 'zod';
import { judge } from '../../src/sandbox/http/validate.ts';

const short = z.string().min(3, { error: 'is short' }).regex(/^x/, { error: 'begins otherwise' });

it('each member that is not known is named with its place, and with those that are', () => {
  const schema = z.strictObject({ a: short.optional(), b: z.strictObject({ c: short.optional() }) });
  expect(judge(schema, { a: 'y', b: { d: 1 }, e: 2, f: 3 }, '.')).toEqual({
    wrong: ['a: is short', 'b.d: is none of c', 'e: is none of a, b', 'f: is none of a, b'],
  });
});

it('a member that is wrong in several ways is told of once, by the first', () => {
  expect(judge(z.object({ a: short, b: z.object({ c: short }) }), { a: 'y', b: { c: 'yyy' } }, '/')).toEqual({
    wrong: ['a: is short', 'b/c: begins otherwise'],
  });
});
