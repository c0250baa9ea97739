import { expect, it } from 'vitest';
import { z } from 'zod';
import { judge } from '../../src/sandbox/judge.ts';

const short = z.string().min(3, { error: 'is short' }).regex(/^x/, { error: 'begins otherwise' });

it('a member that is wrong in several ways is told of once, by the first', () => {
  expect(judge(z.object({ a: short, b: z.object({ c: short }) }), { a: 'y', b: { c: 'yyy' } }, '/')).toEqual({
    wrong: ['a: is short', 'b/c: begins otherwise'],
  });
});
