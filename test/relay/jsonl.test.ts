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
import { books, feeding } from './feeding.ts';
import { jsonlTarget } from './targets.ts';

function numbers(count: number, from = 1): number[] {
  return Array.from({ length: count }, (_, index) => index + from);
}

it('writes what `changes` prints, readable by its owner only', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(3, 1));
  bench.start(config);
  await bench.caughtUp();
  const file = join(target.directory, 'changes.jsonl');
  const [first] = readFileSync(file, 'utf8').split('\n');
  expect(JSON.parse(first ?? '')).toEqual({
    specversion: '1.0',
    id: `${bench.store.incarnation}:1`,
    source: 'http://service.example/v4/products',
    type: 'catchword.product.created',
    subject: 'P0',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    datacontenttype: 'application/json',
    sequence: '00000000000000000001',
    data: {
      op: 'created',
      vbid: 'P0',
      product: {
        vbid: 'P0',
        version: 1,
      },
      before: null,
      changed: [],
      run: 1,
      cause: 'full',
    },
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

it('cuts off a torn last line, and goes on with that event', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(20, 1));
  bench.start(config);
  await bench.caughtUp();
  await bench.stop();
  const file = join(target.directory, 'changes.jsonl');
  // As a machine leaves it that lost its power: the last event is there in part, the one before is whole.
  truncateSync(file, statSync(file).size - 10);
  bench.change(books(1, 2));
  bench.start(config);
  await bench.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(21));
});

it('delivers again what the file lost', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(20, 1));
  bench.start(config);
  await bench.caughtUp();
  await bench.stop();
  const file = join(target.directory, 'changes.jsonl');
  const lines = readFileSync(file, 'utf8').split('\n');
  writeFileSync(file, `${lines.slice(0, 7).join('\n')}\n`);
  bench.start(config);
  bench.change(books(1, 2));
  await until('all is there', async () => (await target.read()).seqs?.length === 21);
  expect((await target.read()).seqs).toEqual(numbers(21));
});

it('goes on in a new file where the old one was taken away', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(20, 1));
  bench.start(config);
  await bench.caughtUp();
  await bench.stop();
  rmSync(join(target.directory, 'changes.jsonl'));
  bench.change(books(5, 2));
  bench.start(config);
  await bench.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(5, 21));
});

it('goes on in a new file where the old one is moved away while it is written', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(20, 1));
  bench.start(config);
  await bench.caughtUp();
  const file = join(target.directory, 'changes.jsonl');
  // As logrotate does.
  renameSync(file, join(target.directory, 'changes-1.jsonl'));
  bench.change(books(5, 2));
  await bench.caughtUp();
  expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(5);
  expect((await target.read()).seqs).toEqual(numbers(25));
});

it('is the same after any number of starts, where a replay was taken away', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(20, 1));
  bench.start(config);
  await bench.caughtUp();
  bench.store.request(({ sinks }) => sinks.replay(bench.sink().id, 15, false));
  await bench.caughtUp();
  await bench.stop();
  rmSync(join(target.directory, 'changes.jsonl'));
  bench.change(books(5, 2));
  for (let start = 0; start < 3; start++) {
    bench.start(config);
    await bench.caughtUp();
    await bench.stop();
  }
  bench.change(books(1, 3));
  bench.start(config);
  await bench.caughtUp();
  expect((await target.read()).seqs).toEqual(numbers(6, 21));
});

it('is sent all that it lost, also from before a replay', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(20, 1));
  bench.start(config);
  await bench.caughtUp();
  bench.store.request(({ sinks }) => sinks.replay(bench.sink().id, 17, false));
  await bench.caughtUp();
  await bench.stop();
  const file = join(target.directory, 'changes.jsonl');
  const lines = readFileSync(file, 'utf8').split('\n');
  writeFileSync(file, `${lines.slice(0, 10).join('\n')}\n`);
  bench.start(config);
  bench.change(books(1, 2));
  await until('all is there', async () => (await target.read()).seqs?.at(-1) === 21);
  expect((await target.read()).seqs).toEqual(numbers(21));
});

it('is looked at without being made', async () => {
  const { target, config } = await feeding(jsonlTarget());
  const sink = await config.make();
  expect(await sink.check(new AbortController().signal)).toMatch(/^can be made, and so can its directory/);
  expect(existsSync(target.directory)).toBe(false);
});

it('names rotated files by what is in them', async () => {
  const { bench, target, config } = await feeding(jsonlTarget('?rotate=1kB&gzip=off'));
  bench.start(config);
  bench.change(books(10, 1));
  await bench.caughtUp();
  bench.store.request(({ sinks }) => sinks.replay(bench.sink().id, 0, true));
  await until('it is delivered again', async () => (await target.read()).seqs?.length === 20);
  await bench.stop();
  for (const file of readdirSync(target.directory).filter((name) => /-\d+\.jsonl$/.test(name))) {
    const [last] = readFileSync(join(target.directory, file), 'utf8').trimEnd().split('\n').slice(-1);
    expect(file).toContain((JSON.parse(last ?? '') as { sequence: string }).sequence);
  }
});

it('rotates by size, and compresses what was rotated', async () => {
  const { bench, target, config } = await feeding(jsonlTarget('?rotate=2kB'));
  bench.start(config);
  for (let round = 1; round <= 4; round++) {
    bench.change(books(10, round));
    await bench.caughtUp();
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

it('leaves rotated files as they are with gzip=off', async () => {
  const { bench, target, config } = await feeding(jsonlTarget('?rotate=1kB&gzip=off'));
  bench.start(config);
  for (let round = 1; round <= 2; round++) {
    bench.change(books(10, round));
    await bench.caughtUp();
  }
  expect(readdirSync(target.directory)).toContain('changes-00000000000000000010.jsonl');
});

it('touches no file that is not its own', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change(books(1, 1));
  bench.start(config);
  await bench.caughtUp();
  await bench.stop();
  const file = join(target.directory, 'changes.jsonl');
  writeFileSync(file, 'shopping list\neggs\n');
  bench.start(config);
  await until('the failure is noted', () => bench.sink().error !== null);
  expect(bench.sink().error).toContain('does not end with an event');
  expect(readFileSync(file, 'utf8')).toBe('shopping list\neggs\n');
});

it('stops at a file of another mirror, until the operator lets it go on', async () => {
  const first = await feeding(jsonlTarget());
  first.bench.change(books(5, 1));
  first.bench.start(first.config);
  await first.bench.caughtUp();
  await first.bench.stop();
  const { bench, config } = await feeding(Promise.resolve({ ...first.target, remove: async () => {} }));
  bench.change(books(3, 2));
  bench.start(config);
  await until('it stops', () => bench.sink().state === 'stopped');
  expect(bench.sink().error).toContain('was fed by another mirror');
  bench.store.request(({ sinks }) => {
    sinks.replay(bench.sink().id, 0, true);
    sinks.setState(bench.sink().id, 'running');
  });
  await bench.caughtUp();
  await bench.stop();
  bench.change(books(1, 3));
  bench.start(config);
  await bench.caughtUp();
  expect((await first.target.read()).seqs).toEqual([1, 2, 3, 4, 5, 1, 2, 3, 4]);
});

it('takes the end of a file whose line is longer than what is read at once', async () => {
  const { bench, target, config } = await feeding(jsonlTarget());
  bench.change([{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(200_000) }) }]);
  bench.start(config);
  await bench.caughtUp();
  await bench.stop();
  appendFileSync(join(target.directory, 'changes.jsonl'), `{"torn":"${'y'.repeat(100_000)}`);
  bench.change(books(1, 1));
  bench.start(config);
  await bench.caughtUp();
  expect((await target.read()).seqs).toEqual([1, 2]);
});

it('keeps so many rotated files, the newest', async () => {
  const { bench, target, config } = await feeding(jsonlTarget('?rotate=1kB&keep=2'));
  bench.start(config);
  for (let round = 1; round <= 6; round++) {
    bench.change(books(10, round));
    await bench.caughtUp();
  }
  const rotated = () => readdirSync(target.directory).filter((file) => /-\d{20}\./.test(file));
  await until('all are compressed', () => rotated().every((file) => file.endsWith('.gz')));
  expect(rotated().sort()).toEqual([40, 50].map((seq) => `changes-${String(seq).padStart(20, '0')}.jsonl.gz`));
  expect((await target.read()).seqs).toEqual(numbers(30, 31));
});

it('needs rotated files to keep some of them', async () => {
  const { config } = await feeding(jsonlTarget('?keep=2'));
  await expect(config.make()).rejects.toThrow('keep needs rotate');
});
