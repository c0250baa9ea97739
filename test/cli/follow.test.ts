import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { systemClock } from '@catchword/base/clock';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { changesCommand } from '../../src/cli/commands/changes-command.ts';
import { openHarness } from '../../src/contract/harness.ts';
import { books } from '../relay/feeding.ts';
import { CLI } from '../support/cli.ts';
import { contextWith } from '../support/in-process.ts';
import { filled } from '../support/place.ts';
import { unusualRun, usualRun } from '../view/unusual-run.ts';

/** Runs a shell pipeline; stderr shows the exit code of `changes`. */
async function pipeline(db: string, reader: string): Promise<{ stdout: string; stderr: string }> {
  const script = `( "$0" "$1" changes --follow; echo "exit $?" >&2 ) | ${reader}`;
  const child = spawn('sh', ['-c', script, process.execPath, CLI], {
    cwd: temporaryDirectory(),
    env: { PATH: process.env.PATH ?? '', CATCHWORD_DB: db },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { stdout, stderr };
}

it.each([['head -1'], ['(head -1; sleep 1)'], ['(read -r line; echo "$line"; exec <&-; sleep 1)']])(
  'changes --follow ends when its reader goes away, without a new change: %s',
  { tags: ['slow'] },
  async (reader) => {
    const bench = openHarness();
    onTestFinished(() => bench.close());
    bench.change(books(3, 1));
    const { stdout, stderr } = await pipeline(bench.store.path, reader);
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
    expect(JSON.parse(stdout)).toMatchObject({ type: 'catchword.product.created' });
    expect(stderr).toBe('exit 0\n');
  },
);

it('changes --follow keeps running while its reader is slow', async () => {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  bench.change(books(1, 1));
  const ended = pipeline(bench.store.path, '(read -r first; echo ready; read -r second; echo "$second")');
  // Long enough for several checks of the reader.
  const timer = setTimeout(() => bench.change(books(1, 2)), 3_000);
  onTestFinished(() => clearTimeout(timer));
  const { stdout, stderr } = await ended;
  expect(stdout).toMatch(/^ready\n\{.*"op":"updated".*\}\n$/);
  expect(stderr).toBe('exit 0\n');
});

it('changes --follow --approved counts what it printed towards --limit, not what waits for a decision', async () => {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  bench.change(books(1, 1));
  unusualRun(bench, books(5, 2));
  let pauses = 0;
  const sleep = async (): Promise<void> => {
    pauses++;
    usualRun(bench);
  };
  const stdout = new PassThrough();
  const environment = { CATCHWORD_DB: bench.store.path };
  const command = changesCommand(contextWith({ stdout, environment, clock: { ...systemClock, sleep } }));
  await command.parseAsync(['--follow', '--approved', '--limit', '3'], { from: 'user' });
  stdout.end();
  const seqs = (await text(stdout))
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { sequence: string }).sequence);
  expect(seqs.map(Number)).toEqual([1, 2, 3]);
  expect(pauses).toBe(1);
});

it('changes --follow stops on a signal even if stdout is blocked', async () => {
  const { settings: environment } = await filled({ items: 300 });
  const stopping = new AbortController();
  let written = 0;
  // Takes one line, and never drains.
  const stdout = new Writable({
    highWaterMark: 1,
    write: () => {
      written++;
      stdout.emit('taken');
    },
  });
  const context = contextWith({ stdout, stderr: stdout, environment, signal: stopping.signal });
  const ended = changesCommand(context).parseAsync(['--follow'], { from: 'user' });
  if (written === 0) await once(stdout, 'taken');
  expect(stdout.writableNeedDrain).toBe(true);
  stopping.abort();
  await ended;
  expect(written).toBe(1);
  expect(stdout.writableLength).toBeLessThan(2_000);
});

it('changes stops on a signal while stdout takes everything at once', async () => {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  bench.change(books(1_200, 1));
  const stopping = new AbortController();
  let lines = 0;
  const stdout = new Writable({
    highWaterMark: 1e9,
    write: (_chunk, _encoding, done) => {
      if (lines === 0) setImmediate(() => stopping.abort());
      lines++;
      done();
    },
  });
  const environment = { CATCHWORD_DB: bench.store.path };
  const context = contextWith({ stdout, stderr: stdout, environment, signal: stopping.signal });
  await changesCommand(context).parseAsync([], { from: 'user' });
  expect(lines).toBeLessThan(1_200);
});
