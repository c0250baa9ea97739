import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';

const LOG = new URL('../../../dist/base/log.js', import.meta.url).href;

/** Writes more than the disk and the log can hold, frees space, and writes lines that no longer fit in what waits. */
const FILLS = `
import { truncateSync } from 'node:fs';
import { createLog } from '${LOG}';
const log = createLog('info');
for (let line = 0; line < 10_000; line++) log.info({ pad: 'x'.repeat(1_000) }, 'fills');
truncateSync('log', 0);
for (let line = 0; line < 3; line++) log.info({ line, pad: 'y'.repeat(2_000) }, 'has room');
`;

it('the log resumes when a full disk has space again', async () => {
  const cwd = temporaryDirectory();
  // A limit of file size acts like a full disk: 2 MB, or 4 MB if the shell counts in larger blocks.
  const command = ['-c', 'ulimit -f 4096 && exec "$0" --input-type=module -e "$1" 2>> log', process.execPath, FILLS];
  await promisify(execFile)('sh', command, { cwd });
  const lines = readFileSync(join(cwd, 'log'), 'utf8').trimEnd().split('\n');
  // The first line was cut off by truncateSync.
  const seen = lines.slice(1).map((line) => JSON.parse(line) as { line?: number; msg: string });
  // Lines that waited, then new ones; the line that found the free space may be lost.
  expect(seen.filter(({ msg }) => msg === 'fills').length).toBeGreaterThan(500);
  expect(seen.slice(-3)).toMatchObject([
    { line: 1, msg: 'has room' },
    { line: 2, msg: 'has room' },
    { dropped: expect.any(Number) as number, msg: 'log lines were dropped, because the log could not be written' },
  ]);
});

/** Writes more than a pipe and the log can hold, and only then lets its reader begin. */
const OUTPACES = `
import { setTimeout } from 'node:timers/promises';
import { createLog } from '${LOG}';
// As every command does.
void process.stderr;
const log = createLog('info');
for (let line = 0; line < 5_000; line++) log.info({ line, pad: 'x'.repeat(1_000) }, 'outpaces');
process.stdout.write('all lines are logged');
await setTimeout(2_000);
log.info({}, 'is read again');
`;

/** What reads the log once stdout shows that no line waits for it. */
type Reader = (cwd: string) => Promise<string>;

const pipe: Reader = async (cwd) => {
  const reader = 'while [ ! -s shown ]; do sleep 0.1; done; cat';
  const command = `"$0" --input-type=module -e "$1" 2>&1 >shown | { ${reader}; }`;
  const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, OUTPACES], {
    cwd,
    maxBuffer: 2 ** 26,
  });
  return stdout;
};

/** Node connects a process that it starts by sockets, as systemd does. */
const socket: Reader = async () => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', OUTPACES], { stdio: ['ignore', 'pipe', 'pipe'] });
  await once(child.stdout, 'data');
  return await text(child.stderr);
};

it.each([
  ['pipe', pipe],
  ['socket', socket],
])('the log of a process waits for no reader of a %s, and tells how many lines were dropped', async (_, read) => {
  const lines = (await read(temporaryDirectory())).trimEnd().split('\n');
  const seen = lines.map((line) => JSON.parse(line) as { line?: number; dropped?: number; msg: string });
  const outpacing = seen.filter(({ msg }) => msg === 'outpaces');
  // Node reads the first part of a socket before it is asked to, so lines may go on for a while after some were dropped.
  const numbers = outpacing.map(({ line = -1 }) => line);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  const dropped = seen.reduce((sum, line) => sum + (line.dropped ?? 0), 0);
  expect(dropped).toBeGreaterThan(0);
  expect(outpacing.length + dropped).toBe(5_000);
  expect(seen.at(-1)?.msg).toBe('is read again');
});

/** Two threads that log more than their pipe holds, as a daemon and its web server do. */
const TOGETHER = `
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { createLog } from '${LOG}';
void process.stderr;
const fills = (log) => {
  for (let line = 0; line < 500; line++) log.info({ line, pad: 'x'.repeat(500 + (line % 7)) }, 'fills');
};
const thread = "import { createLog } from '${LOG}'; (" + fills + ")(createLog('info'));";
const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(thread + 'setTimeout(() => {}, 10_000);')));
worker.unref();
fills(createLog('info'));
await setTimeout(1_000);
process.stdout.write('all lines are logged');
await setTimeout(4_000);
`;

it('lines of two threads that waited for a slow reader are not written into each other', {
  tags: ['slow'],
}, async () => {
  const wait = 'while [ ! -s shown ]; do sleep 0.1; done';
  const reader = `${wait}; while head -c 30000 > part && [ -s part ]; do cat part; sleep 0.05; done`;
  const command = `"$0" --input-type=module -e "$1" 2>&1 >shown | { ${reader}; }`;
  const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, TOGETHER], {
    cwd: temporaryDirectory(),
    maxBuffer: 2 ** 26,
  });
  const lines = stdout.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(500);
  expect(() => lines.map((line) => JSON.parse(line) as unknown)).not.toThrow();
});
