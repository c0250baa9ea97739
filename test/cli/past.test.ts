import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { productCommands } from '../../src/cli/commands/product-command.ts';
import type { CommandContext } from '../../src/cli/commands/shared/command-context.ts';
import { syncCommands } from '../../src/cli/commands/sync-command.ts';
import { type Harness, openHarness } from '../../src/contract/harness.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import { runCommand } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { place } from '../support/place.ts';

const productCommand = (context: CommandContext) => productCommands(context)[0];
const syncCommand = (context: CommandContext) => syncCommands(context)[0];

const version = (title: string) => JSON.stringify({ vbid: 'A', title, publisher: `${title} Press` });

let bench: Harness;
const product = (...args: string[]) => runCommand(productCommand, ['A', ...args], { CATCHWORD_DB: bench.store.path });
const productJson = async (...args: string[]) =>
  JSON.parse((await product(...args, '--json')).stdout) as Record<string, unknown>;

/** 1: another product; 2: created; 3: updated; 4: removed; 5: restored, with another title. */
beforeAll(() => {
  bench = openHarness();
  bench.change([{ vbid: 'B', body: '{"vbid":"B"}' }]);
  bench.change([{ vbid: 'A', body: version('Old') }]);
  bench.change([{ vbid: 'A', body: version('New') }]);
  bench.change([{ vbid: 'A', body: null }]);
  bench.change([{ vbid: 'A', body: version('Back') }]);
  return () => bench.close();
});

it('product --at takes a time, too', async () => {
  const all = bench.store.changes.after(0, 9);
  const at = all[2]?.at ?? 0;
  const { seq } = all.findLast((change) => change.at <= at) ?? { seq: 0 };
  expect(await productJson('--at', new Date(at).toISOString())).toEqual(await productJson('--at', String(seq)));
  const begins = `the mirror did not exist at 1999-12-31T00:00:00.000Z: its first change is of ${new Date(all[0]?.at ?? 0).toISOString()}`;
  await expect(product('--at', '1999-12-31')).rejects.toMatchObject({
    code: 'NOT_FOUND',
    message: `--at: ${begins}`,
    hint: expect.stringContaining('Use a later time'),
  });
  const later = '--at: "2199-01-01" is in the future';
  await expect(product('--at', '2199-01-01')).rejects.toMatchObject({ code: 'USAGE', message: later });
  const message = '--at: "soon" is neither the number of a change nor a time';
  await expect(product('--at', 'soon')).rejects.toMatchObject({ code: 'USAGE', message });
});

it.each([
  [2, 2, 'Old'],
  [3, 3, 'New'],
  [5, 5, 'Back'],
])('product --at prints all of the product as of change %i', async (at, seq, title) => {
  const expected = { vbid: 'A', title, publisher: `${title} Press`, changed_seq: seq, removed_at: null };
  expect(await productJson('--at', String(at))).toMatchObject({ ...expected, body: { title } });
  const { stdout } = await product('--at', String(at));
  expect(stdout).toMatch(new RegExp(`^A ${title}\\nfirst seen .*, seq ${seq}\\nas of change ${at}\\n`));
  for (const other of ['Old', 'New', 'Back'].filter((one) => one !== title)) expect(stdout).not.toContain(other);
});

it('product --at prints a product that was removed then', async () => {
  const removed = { title: 'New', changed_seq: 4, removed_at: expect.any(String) as string, body: null };
  expect(await productJson('--at', '4')).toMatchObject(removed);
  const { stdout } = await product('--at', '4');
  expect(stdout).toMatch(/^A New \(removed .* UTC\)\n.*seq 4\nas of change 4\nit is removed\n$/);
});

it('product --at lists only the changes up to then', async () => {
  const { history } = (await productJson('--at', '3', '--history')) as { history: { sequence: string }[] };
  expect(history.map(({ sequence }) => Number(sequence))).toEqual([3, 2]);
});

it.each([
  ['99999', 'USAGE', '--at: 99999 is beyond the newest change, which is 5'],
  ['1', 'NOT_FOUND', 'A did not exist at change 1'],
])('product --at rejects change %s', async (at, code, message) => {
  await expect(product('--at', at)).rejects.toMatchObject({ code, message, hint: expect.any(String) });
});

it('product --at rejects a change, or a time, that the log no longer holds', async () => {
  const pruned = openHarness();
  onTestFinished(() => pruned.close());
  for (const title of ['One', 'Two', 'Three']) pruned.change([{ vbid: 'A', body: version(title) }]);
  writeUnder(pruned.store.keeperLease, Date.now(), ({ changes }) => changes.prune(2));
  const ask = (at: string) => runCommand(productCommand, ['A', '--at', at], { CATCHWORD_DB: pruned.store.path });
  for (const [at, asOf] of [
    ['1', 'A as of change 1'],
    // Whether the mirror existed then is not known any more.
    ['2020-01-01', 'the mirror as of 2020-01-01T00:00:00.000Z'],
  ] as const) {
    await expect(ask(at)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: `the change log no longer holds ${asOf}`,
      hint: 'Changes up to 2 were pruned (CATCHWORD_LOG_RETENTION); use a later change.',
    });
  }
  expect((await ask('2')).stdout).toMatch(/^A Two\n/);
});

it('sync --from rejects a mirror that was never filled, and does not create one', async () => {
  const { sandbox, directory, settings: given } = await place({ items: 20 });
  sandbox.catalog.mutate({ remove: 5, seed: 1 });
  const db = join(directory, 'data', 'catalog.db');
  const settings = { ...given, CATCHWORD_DB: db };
  for (const more of [[], ['--dry-run']]) {
    const ended = runCommand(syncCommand, ['--from', '2020-01-01', ...more], settings);
    await expect(ended).rejects.toMatchObject({ code: 'USAGE', hint: 'Run this first: npx catchword sync.' });
  }
  expect(existsSync(db)).toBe(false);
  await load(settings, 'full');
  const { stdout } = await runCommand(syncCommand, ['--from', '2020-01-01', '--json'], settings);
  const delta = { kind: 'delta', state: 'complete', from_time: '2020-01-01T00:00:00.000Z' };
  expect(JSON.parse(stdout)).toMatchObject(delta);
  const future = runCommand(syncCommand, ['--from', '2099-01-01'], settings);
  const message = '--from: 2099-01-01 00:00:00 UTC is in the future';
  await expect(future).rejects.toMatchObject({ code: 'USAGE', message });
});
