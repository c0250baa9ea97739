import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../../src/relay/contract/harness.ts';
import { books, fed, feeding, paused } from './feeding.ts';
import { jsonlTarget } from './targets.ts';

function numbers(count: number, from = 1): number[] {
  return Array.from({ length: count }, (_, index) => index + from);
}

it('writes what `changes` prints, into a file that only its owner can read', async () => {
  const { harness, target } = await fed(jsonlTarget(), 3);
  const file = join(target.directory, 'changes.jsonl');
  const [first] = readFileSync(file, 'utf8').split('\n');
  expect(JSON.parse(first ?? '')).toEqual({
    specversion: '1.0',
    id: `${harness.store.incarnation}:1`,
    source: 'http://service.example/v4/products',
    type: 'catchword.product.created',
    subject: 'P0',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    datacontenttype: 'application/json',
    sequence: '00000000000000000001',
    data: {
      op: 'created',
      vbid: 'P0',
      product: { vbid: 'P0', version: 1 },
      before: null,
      changed: [],
      run: 1,
      cause: 'full',
    },
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

it('cuts off an incomplete last line, and delivers its event again', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 20);
  const file = join(target.directory, 'changes.jsonl');
  // As after a power failure: the last event is incomplete.
  truncateSync(file, statSync(file).size - 10);
  harness.change(books(1, 2));
  harness.start(config);
  await harness.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(21));
});

it('redelivers events that the file lost', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 20);
  const file = join(target.directory, 'changes.jsonl');
  const lines = readFileSync(file, 'utf8').split('\n');
  writeFileSync(file, `${lines.slice(0, 7).join('\n')}\n`);
  harness.start(config);
  harness.change(books(1, 2));
  await until('all events are there', async () => (await target.read()).seqs?.length === 21);
  expect((await target.read()).seqs).toEqual(numbers(21));
});

it('continues in a new file if the old one was removed', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 20);
  rmSync(join(target.directory, 'changes.jsonl'));
  harness.change(books(5, 2));
  harness.start(config);
  await harness.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(5, 21));
});

it('continues in a new file if the old one is moved away during delivery', async () => {
  const { harness, target } = await fed(jsonlTarget(), 20);
  const file = join(target.directory, 'changes.jsonl');
  // As logrotate does.
  renameSync(file, join(target.directory, 'changes-1.jsonl'));
  harness.change(books(5, 2));
  await harness.caughtUp();
  expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(5);
  expect((await target.read()).seqs).toEqual(numbers(25));
});

it('resumes alike at every start after a replay was removed', async () => {
  const { harness, target, config } = await fed(jsonlTarget(), 20);
  harness.store.request(({ sinks }) => sinks.replay(harness.sink().id, 15, false));
  await harness.caughtUp();
  await harness.stop();
  rmSync(join(target.directory, 'changes.jsonl'));
  harness.change(books(5, 2));
  for (let start = 0; start < 3; start++) {
    harness.start(config);
    await harness.caughtUp();
    await harness.stop();
  }
  harness.change(books(1, 3));
  harness.start(config);
  await harness.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(6, 21));
});

it('redelivers everything that the file lost, also from before a replay', async () => {
  const { harness, target, config } = await fed(jsonlTarget(), 20);
  harness.store.request(({ sinks }) => sinks.replay(harness.sink().id, 17, false));
  await harness.caughtUp();
  await harness.stop();
  const file = join(target.directory, 'changes.jsonl');
  const lines = readFileSync(file, 'utf8').split('\n');
  writeFileSync(file, `${lines.slice(0, 10).join('\n')}\n`);
  harness.start(config);
  harness.change(books(1, 2));
  await until('all events are there', async () => (await target.read()).seqs?.at(-1) === 21);
  expect((await target.read()).seqs).toEqual(numbers(21));
});

it('is checked without being created', async () => {
  const { target, config } = await feeding(jsonlTarget());
  const sink = await config.make();
  expect(await sink.check(new AbortController().signal)).toMatch(/^can be created, with its directory/);
  expect(existsSync(target.directory)).toBe(false);
});

it('names rotated files by their last event', async () => {
  const { harness, target, config } = await feeding(jsonlTarget('?rotate=1kB&gzip=off'));
  harness.start(config);
  harness.change(books(10, 1));
  await harness.caughtUp();
  harness.store.request(({ sinks }) => sinks.replay(harness.sink().id, 0, true));
  await until('all events are delivered again', async () => (await target.read()).seqs?.length === 20);
  await harness.stop();
  for (const file of readdirSync(target.directory).filter((name) => /-\d+\.jsonl$/.test(name))) {
    const [last] = readFileSync(join(target.directory, file), 'utf8').trimEnd().split('\n').slice(-1);
    expect(file).toContain((JSON.parse(last ?? '') as { sequence: string }).sequence);
  }
});

it('rotates by size, and compresses rotated files', async () => {
  const { harness, target, config } = await feeding(jsonlTarget('?rotate=2kB'));
  harness.start(config);
  for (let round = 1; round <= 4; round++) {
    harness.change(books(10, round));
    await harness.caughtUp();
  }
  const rotated = [10, 20, 30].map((seq) => `changes-${String(seq).padStart(20, '0')}.jsonl.gz`);
  await until(
    'all are compressed',
    () => !readdirSync(target.directory).some((file) => /-\d+\.jsonl$|new$/.test(file)),
  );
  const files = readdirSync(target.directory).filter((file) => !file.endsWith('.state'));
  expect(files.sort()).toEqual([...rotated, 'changes.jsonl']);
  expect((await target.read()).seqs).toEqual(numbers(40));
});

it('does not compress rotated files with gzip=off', async () => {
  const { harness, target, config } = await feeding(jsonlTarget('?rotate=1kB&gzip=off'));
  harness.start(config);
  for (let round = 1; round <= 2; round++) {
    harness.change(books(10, round));
    await harness.caughtUp();
  }
  expect(readdirSync(target.directory)).toContain('changes-00000000000000000010.jsonl');
});

it('does not change a file without events', async () => {
  const { harness, target, config } = await paused(jsonlTarget(), 1);
  const file = join(target.directory, 'changes.jsonl');
  writeFileSync(file, 'shopping list\neggs\n');
  harness.start(config);
  await until('the failure is recorded', () => harness.sink().error !== null);
  expect(harness.sink().error).toContain('does not end with an event');
  expect(readFileSync(file, 'utf8')).toBe('shopping list\neggs\n');
});

it('stops at a file of another mirror until the operator resumes it', async () => {
  const first = await feeding(jsonlTarget());
  first.harness.change(books(5, 1));
  first.harness.start(first.config);
  await first.harness.caughtUp();
  await first.harness.stop();
  const { harness, config } = await feeding(Promise.resolve({ ...first.target, remove: async () => {} }));
  harness.change(books(3, 2));
  harness.start(config);
  await until('it stops', () => harness.sink().state === 'stopped');
  expect(harness.sink().error).toContain('was fed by another mirror');
  harness.store.request(({ sinks }) => {
    sinks.replay(harness.sink().id, 0, true);
    sinks.setState(harness.sink().id, 'running');
  });
  await harness.caughtUp();
  await harness.stop();
  harness.change(books(1, 3));
  harness.start(config);
  await harness.caughtUp();
  expect((await first.target.read()).seqs).toEqual([1, 2, 3, 4, 5, 1, 2, 3, 4]);
});

it('finds a last line that is longer than one read', async () => {
  const { harness, target, config } = await feeding(jsonlTarget());
  harness.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(200_000) }) }]);
  harness.start(config);
  await harness.caughtUp();
  await harness.stop();
  appendFileSync(join(target.directory, 'changes.jsonl'), `{"torn":"${'y'.repeat(100_000)}`);
  harness.change(books(1, 1));
  harness.start(config);
  await harness.caughtUp();
  expect((await target.read()).seqs).toEqual([1, 2]);
});

it('keeps only the newest rotated files', async () => {
  const { harness, target, config } = await feeding(jsonlTarget('?rotate=1kB&keep=2'));
  harness.start(config);
  for (let round = 1; round <= 6; round++) {
    harness.change(books(10, round));
    await harness.caughtUp();
  }
  const rotated = () => readdirSync(target.directory).filter((file) => /-\d{20}\./.test(file));
  await until('all are compressed', () => rotated().every((file) => file.endsWith('.gz')));
  expect(rotated().sort()).toEqual([40, 50].map((seq) => `changes-${String(seq).padStart(20, '0')}.jsonl.gz`));
  expect((await target.read()).seqs).toEqual(numbers(30, 31));
});

it('rejects keep without rotate', async () => {
  const { config } = await feeding(jsonlTarget('?keep=2'));
  await expect(config.make()).rejects.toThrow('keep needs rotate');
});
