import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { exportedNames } from './exported-names.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

it('both packages export the names of test/golden/exported-names.json: programs may rely on each', async () => {
  const expected = JSON.parse(readFileSync(join(ROOT, 'test/golden/exported-names.json'), 'utf8')) as unknown;
  const whole = await exportedNames(ROOT, ROOT);
  expect({ ...whole, ...(await exportedNames(join(ROOT, 'packages/client'), ROOT)) }).toEqual(expected);
});
