import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { directoryOfFile } from '../package/fresh-project.ts';
import { start } from '../support/cli.ts';
import { type Printed, runHere } from '../support/in-process.ts';
import { catalogOf, settingsFor, standIn } from '../support/mirror.ts';
import { place } from '../support/place.ts';
import { expectFailure } from './failure.ts';

const EVENT = z.strictObject({
  specversion: z.literal('1.0'),
  id: z.string().regex(/^[0-9a-f-]{36}_[0-9a-f]{12}:\d+$/),
  source: z.url(),
  type: z.enum(['catchword.product.created', 'catchword.product.updated']),
  subject: z.string(),
  time: z.iso.datetime({ precision: 3 }),
  datacontenttype: z.literal('application/json'),
  sequence: z.string().regex(/^\d{20}$/),
  data: z.strictObject({
    op: z.enum(['created', 'updated']),
    vbid: z.string(),
    product: z.looseObject({ vbid: z.string() }),
    before: z.record(z.string(), z.unknown()).nullable(),
    changed: z.array(z.string().startsWith('/')),
    run: z.int(),
    cause: z.enum(['full', 'delta']),
  }),
});

const directory = directoryOfFile('read');
const db = join(directory, 'catalog.db');
let settings: Record<string, string>;

/** One mirror for all tests: 300 products, 5 of them updated once. */
beforeAll(async () => {
  const sandbox = await startSandbox({ items: 300, details: true });
  settings = { ...settingsFor(sandbox.url, db), LOG_LEVEL: '' };
  expect((await runHere(['sync'], settings, directory)).code).toBe(0);
  sandbox.catalog.mutate({ update: 5, seed: 1 });
  expect((await runHere(['sync'], settings, directory)).code).toBe(0);
  await sandbox.stop();
});

async function catchword(...args: string[]): Promise<Printed> {
  const ended = await runHere(args, settings, directory);
  expect(ended).toMatchObject({ code: 0, stderr: '' });
  return ended;
}

function lines(text: string): unknown[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);
}

it.each([['status'], ['runs'], ['run', '1'], ['search', 'history'], ['doctor']])(
  '%s --json prints one document',
  async (...args) => {
    const ended = await runHere([...args, '--json'], settings, directory);
    expect(lines(ended.stdout)).toHaveLength(1);
    expect(ended.stderr).toBe('');
  },
);

it('catchword prints status and runs for people', async () => {
  expect((await catchword('status')).stdout).toMatch(/products +300\nchanges +305\n/);
  const { stdout } = await catchword('runs');
  expect(stdout).toMatch(/^run +kind +state/);
  expect(stdout).toMatch(/2 +delta +complete/);
  expect(stdout).not.toContain('\u001b');
  expect((await catchword('run', '1')).stdout).toContain('300 products');
});

it('catchword prints changes as CloudEvents, in order', async () => {
  const events = lines((await catchword('changes')).stdout).map((event) => EVENT.parse(event));
  expect(events.map(({ sequence }) => Number(sequence))).toEqual(Array.from({ length: 305 }, (_, index) => index + 1));
  const updated = events.filter(({ data }) => data.op === 'updated');
  expect(updated).toHaveLength(5);
  for (const { data } of updated) {
    expect(data).toMatchObject({ run: 2, cause: 'delta' });
    const created = events.find((event) => event.subject === data.vbid);
    // The older event carries the older state of the product.
    for (const pointer of data.changed) {
      const key = pointer.slice(1);
      expect(created?.data.product[key]).toEqual(data.before?.[key]);
      expect(data.product[key]).not.toEqual(data.before?.[key]);
    }
  }
  const some = lines((await catchword('changes', '--after', '300', '--limit', '2')).stdout);
  expect(some.map((event) => EVENT.parse(event).sequence.slice(-3))).toEqual(['301', '302']);
});

it('changes prints those since a time, of some kinds, and of some fields', async () => {
  const events = lines((await catchword('changes')).stdout).map((event) => EVENT.parse(event));
  const updates = events.filter(({ data }) => data.op === 'updated');
  const printed = async (...args: string[]) => lines((await catchword('changes', ...args)).stdout);
  expect(await printed('--since', updates[0]?.time ?? '')).toEqual(updates);
  expect(await printed('--since', '2000-01-01')).toEqual(events);
  expect(await printed('--since', '2999-01-01')).toEqual([]);
  expect(await printed('--op', 'updated')).toEqual(updates);
  expect(await printed('--op', 'removed', '--op', 'updated', '--limit', '2')).toEqual(updates.slice(0, 2));
  expect(await printed('--op', 'created', '--after', '298')).toEqual(events.slice(298, 300));
  const priced = updates.filter(({ data }) => data.changed.includes('/variants'));
  expect(priced.length).toBeGreaterThan(0);
  for (const field of ['variants', '/variants']) expect(await printed('--field', field)).toEqual(priced);
  expect(await printed('--field', 'shelf', 'variants', '--op', 'updated')).toEqual(priced);
  expect(await printed('--field', 'shelf')).toEqual([]);
  for (const args of [
    ['--op', 'gone'],
    ['--since', 'yesterday'],
  ]) {
    expect(await runHere(['changes', ...args], settings, directory)).toMatchObject({ code: 2, stdout: '' });
  }
});

it('catchword rejects changes after one that does not exist yet', async () => {
  const ended = await runHere(['changes', '--follow', '--after', '9000'], settings, directory);
  expectFailure(ended, 2, '--after: 9000 is beyond the newest change, which is 305');
});

it('changes --follow runs until a signal', async () => {
  const following = start(['changes', '--follow', '--after', '304'], settings, directory);
  await following.shows('"sequence"');
  const ended = await following.stop();
  expect(ended.code).toBe(143);
  expect(lines(ended.stdout)).toHaveLength(1);
});

it('changes --follow ends without an error when its reader goes away', { tags: ['slow'] }, async () => {
  const following = start(['changes', '--follow'], settings, directory);
  await following.shows('"sequence"');
  following.child.stdout?.destroy();
  // The next change cannot be written.
  const sandbox = await startSandbox({ items: 2_000, details: true, seed: 9 });
  onTestFinished(() => sandbox.stop());
  const grown = { ...settings, CATCHWORD_BASE_URL: sandbox.url };
  standIn(db, sandbox.url);
  // Another catalog, of which no delta told: nothing of the previous one is removed that night.
  expect((await runHere(['sync', '--full'], grown, directory)).code).toBe(0);
  expect(await following.ended).toMatchObject({ code: 0, stderr: '' });
});

it('product prints a product as it is, as it was, and its changes', async () => {
  const event = EVENT.parse(lines((await catchword('changes', '--after', '300', '--limit', '1')).stdout)[0]);
  const vbid = event.subject;
  const product = async (...args: string[]) => {
    return JSON.parse((await catchword('product', vbid, '--json', ...args)).stdout) as Record<string, unknown>;
  };
  const now = await product('--history');
  expect(now).toMatchObject({ vbid, changed_seq: 301, removed_at: null, body: event.data.product });
  expect((now.history as unknown[]).map((change) => EVENT.parse(change).data.op)).toEqual(['updated', 'created']);
  const then = await product('--at', '300');
  expect(then.body).toMatchObject(event.data.before ?? {});
  expect(then.body).not.toEqual(now.body);
  expect((await catchword('product', vbid, '--history')).stdout).toMatch(
    /\nchange 301: updated at .* UTC, run 2\n( {2}.* → .*\n)* {2}variants › 1 › prices › 1 › value: \S+ → \S+\n[\s\S]*\nchange \d+: created at .* UTC, run 1\n {2}The product was seen for the first time\.\n$/,
  );
});

it('search finds words, identifiers and prefixes, and accepts any character', async () => {
  const [vbid = '', body = '{}'] = [...catalogOf(db)][0] ?? [];
  const item = JSON.parse(body) as { title: string; identifiers: { eisbn_canonical: string | null } };
  const found = async (...words: string[]) => {
    const { stdout } = await catchword('search', '--limit', '300', '--json', ...words);
    return (JSON.parse(stdout) as { vbid: string }[]).map((hit) => hit.vbid);
  };
  expect(await found(vbid)).toEqual([vbid]);
  expect(await found(`${vbid.slice(0, 3)}-${vbid.slice(3, 9)}-${vbid.slice(9)}`)).toEqual([vbid]);
  expect(await found(`${vbid.slice(0, 11)}*`)).toContain(vbid);
  expect(await found(...item.title.split(' '))).toContain(vbid);
  expect(await found('thewordthatisnot')).toEqual([]);
  for (const odd of ['"', "'", '*', 'AND', 'title:', '(', '-', 'NEAR(', 'a"b', '^', '%']) await found('--', odd);
});

it('secrets do not appear in any output, at any log level', async () => {
  const faults = '5xx@2,reset@3,429@4';
  const keys = { apiKey: 'SECRETKEY', accessToken: 'secrettoken' };
  const { directory: own, settings: given } = await place({ items: 3_000, ...keys, faults });
  writeFileSync(join(own, 'key'), 'SECRETKEY\n');
  const { CATCHWORD_API_KEY: _key, ...rest } = given;
  const secrets = { CATCHWORD_API_KEY_FILE: 'key', CATCHWORD_ACCESS_TOKEN: 'secrettoken', LOG_LEVEL: 'trace' };
  for (const [verb, code, more] of [
    ['sync', 0, {}],
    ['sync', 2, { CATCHWORD_ACCESS_TOKEN: 'secretbutwrong' }],
    ['doctor', 0, {}],
    ['sync', 2, { CATCHWORD_API_KEY: 'SECRET KEY' }],
  ] as const) {
    const ended = await runHere([verb], { ...rest, ...secrets, ...more }, own);
    expect(ended.code).toBe(code);
    expect(ended.stdout + ended.stderr).not.toMatch(/secret ?(key|token|but)/i);
  }
});

it('demo ends with every product identical', { tags: ['slow'] }, async () => {
  const { stdout, ...ended } = await runHere(['demo', '--json'], {}, temporaryDirectory());
  expect(ended).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ compared: 20_001, different: 0, onlyHere: 2, changes: 9 });
});
