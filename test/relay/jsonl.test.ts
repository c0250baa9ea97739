import {
  appendFileSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { eventText } from '@catchword/catalog/event';
import { expect, it, onTestFinished } from 'vitest';
import { until } from '../../src/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { arrived, books, fed, fedBefore, feederAt, feeding, NEVER, numbers } from './feeding.ts';
import { jsonlTarget } from './targets.ts';

it('writes what `changes` prints, into a file that only its owner can read', async () => {
  const { harness, target } = await fed(jsonlTarget(), 3);
  const { file } = target;
  const [first] = readFileSync(file, 'utf8').split('\n');
  expect(JSON.parse(first ?? '')).toEqual({
    specversion: '1.0',
    id: expect.stringMatching(new RegExp(`^${harness.store.incarnation}_[0-9a-f]{12}:1$`)),
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

it('delivers again what a power failure has damaged before the last line', async () => {
  const { harness, target, config } = await fedBefore(jsonlTarget(), 20);
  harness.change(books(5, 2));
  // The file has the events; the mirror has not written that they are confirmed.
  await harness.crash(config);
  const { file } = target;
  const lines = readFileSync(file, 'utf8').split('\n');
  expect(lines).toHaveLength(26);
  const at = Buffer.byteLength(lines.slice(0, 21).join('\n')) + 40;
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0, at, at + 300));
  await harness.resume(config);
  expect((await target.read()).seqs).toEqual(numbers(1, 25));
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
  harness.replay(15, false);
  await harness.caughtUp();
  await harness.stop();
  rmSync(target.file);
  harness.change(books(5, 2));
  for (let start = 0; start < 3; start++) {
    await harness.resume(config);
    await harness.stop();
  }
  await harness.resume(config, books(1, 3));
  expect((await target.read()).seqs).toEqual(numbers(21, 26));
});

it('redelivers everything that the file lost, also from before a replay', async () => {
  const { harness, target, config } = await fed(jsonlTarget(), 20);
  harness.replay(17, false);
  await harness.caughtUp();
  await harness.stop();
  target.keepLines(10);
  harness.start(config);
  harness.change(books(1, 2));
  await until('all events are there', async () => (await target.read()).seqs?.at(-1) === 21);
  expect((await target.read()).seqs).toEqual(numbers(1, 21));
});

it('names rotated files by their last event, and does not compress them with gzip=off', async () => {
  const { harness, target } = await fed(jsonlTarget('?rotate=1kB&gzip=off'), 10);
  harness.replay(0, true);
  await arrived(target, 20);
  await harness.stop();
  const rotated = readdirSync(target.directory).filter((name) => /-\d+\.jsonl/.test(name));
  expect(rotated.length).toBeGreaterThan(0);
  for (const file of rotated) {
    const [last] = readFileSync(join(target.directory, file), 'utf8').trimEnd().split('\n').slice(-1);
    expect(file).toContain((JSON.parse(last ?? '') as { sequence: string }).sequence);
  }
});

it('rotates by size, and compresses rotated files', async () => {
  const { harness, target, config } = await feeding(jsonlTarget('?rotate=2kB'));
  harness.start(config);
  for (let round = 1; round <= 4; round++) await harness.deliver(books(10, round));
  const rotated = [10, 20, 30].map((seq) => `changes-${String(seq).padStart(20, '0')}.jsonl.gz`);
  await until(
    'all are compressed',
    () => !readdirSync(target.directory).some((file) => /-\d+\.jsonl$|new$/.test(file)),
  );
  const files = readdirSync(target.directory).filter((file) => !/\.(state|lock)$/.test(file));
  expect(files.sort()).toEqual([...rotated, 'changes.jsonl']);
  expect((await target.read()).seqs).toEqual(numbers(1, 40));
});

it('finds a last line that is longer than one read', async () => {
  const { harness, target, config } = await feeding(jsonlTarget());
  await harness.resume(config, [{ vbid: 'L', body: JSON.stringify({ vbid: 'L', long: 'x'.repeat(200_000) }) }]);
  await harness.stop();
  appendFileSync(target.file, `{"specversion":"1.0","id":"${'y'.repeat(100_000)}`);
  await harness.resume(config, books(1, 1));
  expect((await target.read()).seqs).toEqual([1, 2]);
});

it('keeps only the newest rotated files', async () => {
  const { harness, target, config } = await feeding(jsonlTarget('?rotate=1kB&keep=2'));
  harness.start(config);
  for (let round = 1; round <= 6; round++) await harness.deliver(books(10, round));
  const rotated = () => readdirSync(target.directory).filter((file) => /-\d{20}\./.test(file));
  await until('all are compressed', () => rotated().every((file) => file.endsWith('.gz')));
  expect(rotated().sort()).toEqual([40, 50].map((seq) => `changes-${String(seq).padStart(20, '0')}.jsonl.gz`));
  expect((await target.read()).seqs).toEqual(numbers(31, 60));
});

/** A sink that has opened its file, which has three events; and a delivery of the fourth. */
async function openSink() {
  const { harness, target, config } = await fedBefore(jsonlTarget(), 3);
  const sink = await config.make();
  onTestFinished(() => sink.close());
  const { signal } = new AbortController();
  const mark = { incarnation: feederAt(harness), generation: 1, cursor: 3, at: 0, late: 0 };
  await sink.open(mark, 3, signal);
  harness.change(books(1, 2));
  const [change] = harness.events(3);
  if (change === undefined) throw new Error('event 4 does not exist');
  const event = { ...change, id: '4', text: eventText(change, mark.incarnation, 's') };
  const deliver = () => sink.deliver([event], { ...mark, cursor: 4 }, signal);
  return { harness, target, config, sink, deliver };
}

it.each<[string, (file: string) => void, string]>([
  ['has appended to it', (file) => appendFileSync(file, '{"specversion"'), 'another process has written to'],
  ['has emptied it', (file) => truncateSync(file), 'another process has written to'],
  [
    'has written another last event of the same size',
    (file) => writeFileSync(file, readFileSync(file, 'utf8').replace(/:3","source"/, ':9","source"')),
    'another process has written to',
  ],
  [
    'has replaced it',
    (file) => {
      copyFileSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
    'another process has replaced',
  ],
  ['has removed its lock file', (file) => rmSync(`${file}.lock`), 'the lock file of'],
])(
  'a sink does not write to its file after a program that does not ask for the lock %s',
  async (_, interfere, message) => {
    const { target, sink, deliver } = await openSink();
    interfere(target.file);
    const text = readFileSync(target.file, 'utf8');
    await expect(sink.recheck?.(NEVER)).rejects.toThrow(message);
    await expect(deliver()).rejects.toThrow(message);
    expect(readFileSync(target.file, 'utf8')).toBe(text);
  },
);

it('lets one sink at a time write the file, whatever its path is called', async () => {
  const { harness, target, config, sink, deliver } = await openSink();
  symlinkSync(target.directory, `${target.directory}.link`);
  onTestFinished(() => rmSync(`${target.directory}.link`));
  const other = await sinkConfig({
    env: 'SINK',
    name: 'other',
    url: target.url.replace('/out/', '/out.link/'),
    secret: undefined,
  }).make();
  const mark = { incarnation: feederAt(harness), generation: 1, cursor: 3, at: 0, late: 0 };
  const open = () => other.open(mark, 3, NEVER);
  await expect(open()).rejects.toThrow('this process already writes');
  await deliver();
  await sink.close();
  expect((await open())?.cursor).toBe(4);
  await other.close();
  expect(readdirSync(target.directory)).not.toContain('changes.jsonl.lock');
  await harness.resume(config, books(1, 3));
  expect((await target.read()).seqs).toEqual(numbers(1, 5));
});
