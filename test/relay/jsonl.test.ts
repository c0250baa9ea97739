import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { until } from '../../src/relay/contract/harness.ts';
import { arrived, books, fed, feeding, numbers, replay, resume, stopped } from './feeding.ts';
import { jsonlTarget } from './targets.ts';

it('writes what `changes` prints, into a file that only its owner can read', async () => {
  const { harness, target } = await fed(jsonlTarget(), 3);
  const { file } = target;
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
  const { harness, target, config } = await fed(jsonlTarget(), 20);
  await harness.stop();
  const { file } = target;
  // As after a power failure: the last event is incomplete.
  truncateSync(file, statSync(file).size - 10);
  await resume(harness, config, books(1, 2));
  expect((await target.read()).seqs).toEqual(numbers(1, 21));
});

it('redelivers events that the file lost', async () => {
  const { harness, target, config } = await fed(jsonlTarget(), 20);
  await harness.stop();
  target.keepLines(7);
  harness.start(config);
  harness.change(books(1, 2));
  await arrived(target, numbers(1, 21));
});

it('continues in a new file if the old one was removed', async () => {
  const { harness, target, config } = await fed(jsonlTarget(), 20);
  await harness.stop();
  rmSync(target.file);
  await resume(harness, config, books(5, 2));
  expect((await target.read()).seqs).toEqual(numbers(21, 25));
});

it('continues in a new file if the old one is moved away during delivery', async () => {
  const { harness, target } = await fed(jsonlTarget(), 20);
  const { file } = target;
  // As logrotate does.
  renameSync(file, join(target.directory, 'changes-1.jsonl'));
  await harness.deliver(books(5, 2));
  expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(5);
  expect((await target.read()).seqs).toEqual(numbers(1, 25));
});

it('resumes alike at every start after a replay was removed', async () => {
  const { harness, target, config } = await fed(jsonlTarget(), 20);
  replay(harness, 15, false);
  await harness.caughtUp();
  await harness.stop();
  rmSync(target.file);
  harness.change(books(5, 2));
  for (let start = 0; start < 3; start++) {
    await resume(harness, config);
    await harness.stop();
  }
  await resume(harness, config, books(1, 3));
  expect((await target.read()).seqs).toEqual(numbers(21, 26));
});

it('redelivers everything that the file lost, also from before a replay', async () => {
  const { harness, target, config } = await fed(jsonlTarget(), 20);
  replay(harness, 17, false);
  await harness.caughtUp();
  await harness.stop();
  target.keepLines(10);
  harness.start(config);
  harness.change(books(1, 2));
  await until('all events are there', async () => (await target.read()).seqs?.at(-1) === 21);
  expect((await target.read()).seqs).toEqual(numbers(1, 21));
});

it('names rotated files by their last event', async () => {
  const { harness, target } = await fed(jsonlTarget('?rotate=1kB&gzip=off'), 10);
  replay(harness, 0, true);
  await arrived(target, 20);
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
    await harness.deliver(books(10, round));
  }
  const rotated = [10, 20, 30].map((seq) => `changes-${String(seq).padStart(20, '0')}.jsonl.gz`);
  await until(
    'all are compressed',
    () => !readdirSync(target.directory).some((file) => /-\d+\.jsonl$|new$/.test(file)),
  );
  const files = readdirSync(target.directory).filter((file) => !file.endsWith('.state'));
  expect(files.sort()).toEqual([...rotated, 'changes.jsonl']);
  expect((await target.read()).seqs).toEqual(numbers(1, 40));
});

it('does not compress rotated files with gzip=off', async () => {
  const { harness, target, config } = await feeding(jsonlTarget('?rotate=1kB&gzip=off'));
  harness.start(config);
  for (let round = 1; round <= 2; round++) {
    await harness.deliver(books(10, round));
  }
  expect(readdirSync(target.directory)).toContain('changes-00000000000000000010.jsonl');
});

it('does not change a file without events', async () => {
  const { harness, target, config } = await fed(jsonlTarget(), 1);
  await harness.stop();
  const { file } = target;
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
  await stopped(harness);
  expect(harness.sink().error).toContain('was fed by another mirror');
  harness.store.request(({ sinks }) => {
    sinks.replay(harness.sink().id, 0, true);
    sinks.setState(harness.sink().id, 'running');
  });
  await harness.caughtUp();
  await harness.stop();
  await resume(harness, config, books(1, 3));
  expect((await first.target.read()).seqs).toEqual([1, 2, 3, 4, 5, 1, 2, 3, 4]);
});

it('finds a last line that is longer than one read', async () => {
  const { harness, target, config } = await feeding(jsonlTarget());
  await resume(harness, config, [{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(200_000) }) }]);
  await harness.stop();
  appendFileSync(target.file, `{"specversion":"1.0","id":"${'y'.repeat(100_000)}`);
  await resume(harness, config, books(1, 1));
  expect((await target.read()).seqs).toEqual([1, 2]);
});

it.each(['a file of another program', '{"other":1}\n{"another'])('leaves %j unchanged', async (text) => {
  const { harness, target, config } = await feeding(jsonlTarget());
  mkdirSync(dirname(target.file), { recursive: true });
  writeFileSync(target.file, text);
  harness.change(books(1, 1));
  harness.start(config);
  await until('it is rejected', () => (harness.sink().error ?? '').includes('does not end with an event of catchword'));
  expect(readFileSync(target.file, 'utf8')).toBe(text);
});

it('keeps only the newest rotated files', async () => {
  const { harness, target, config } = await feeding(jsonlTarget('?rotate=1kB&keep=2'));
  harness.start(config);
  for (let round = 1; round <= 6; round++) {
    await harness.deliver(books(10, round));
  }
  const rotated = () => readdirSync(target.directory).filter((file) => /-\d{20}\./.test(file));
  await until('all are compressed', () => rotated().every((file) => file.endsWith('.gz')));
  expect(rotated().sort()).toEqual([40, 50].map((seq) => `changes-${String(seq).padStart(20, '0')}.jsonl.gz`));
  expect((await target.read()).seqs).toEqual(numbers(31, 60));
});

it('rejects keep without rotate', async () => {
  const { config } = await feeding(jsonlTarget('?keep=2'));
  await expect(config.make()).rejects.toThrow('keep needs rotate');
});
