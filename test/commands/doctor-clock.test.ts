import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runHere } from '../support/in-process.ts';
import { settingsFor, temporaryDirectory } from '../support/mirror.ts';
import { startRawSource } from '../support/raw-source.ts';

const HOUR = 3_600_000;
const EMPTY = '{"num_items":0,"page":1,"per_page":1,"total_pages":0,"items":[]}';

/** What doctor says about a source whose `Date` is off. */
async function examined(aheadMs: number, headers: Readonly<Record<string, string>>): Promise<string> {
  const source = await startRawSource([]);
  const date = () => new Date(Date.now() + aheadMs).toUTCString();
  source.instead = () => ({ status: 200, headers: { date: date(), ...headers }, body: EMPTY });
  const directory = temporaryDirectory();
  return (await runHere(['doctor'], settingsFor(source.url, join(directory, 'a.db')), directory)).stdout;
}

it.each<[number, Readonly<Record<string, string>>, string]>([
  [HOUR, {}, "ahead of this machine's clock\n"],
  [-HOUR, { age: '3600' }, "behind this machine's clock; a proxy or a cache passed it on (Age)\n"],
  [HOUR, { age: '0', via: '1.1 edge' }, "ahead of this machine's clock; a proxy or a cache passed it on (Age, Via)\n"],
])('doctor compares a Date that is %i ms ahead, with %j, and promises nothing', async (aheadMs, headers, text) => {
  const stdout = await examined(aheadMs, headers);
  expect(stdout).toMatch(/note {3}source {5}0 products, answered in [^;]*; its Date is (60|59) min \d+ s /);
  expect(stdout).toContain(text);
  expect(stdout).toContain('If the clock that notes changes is behind it');
  expect(stdout).not.toMatch(/nothing is lost/i);
});

it('doctor does not mention a Date that is right', async () => {
  expect(await examined(0, { via: '1.1 edge' })).toMatch(/ok {5}source {5}0 products, answered in [^;]*\n/);
});
