import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { expect, it, onTestFinished } from 'vitest';
import { type Running, startWaiting } from '../support/cli.ts';
import { csvOf, HEAD, place } from './credential-service.ts';

/** More bytes than a pipe holds: once they are written, most of them have been read. */
const MORE = 2 ** 19;

async function write({ child }: Running, text: string): Promise<void> {
  const whole = text.padEnd(MORE, '\n');
  await new Promise<void>((resolve, reject) => {
    child.stdin?.write(whole, (error) => (error == null ? resolve() : reject(error)));
  });
}

const NAMES = ['--first-name', 'Ada', '--last-name', 'Abernathy'];

/** Writes to a pipe once it has a reader, and leaves it open. */
async function writeTo(pipe: string, text: string): Promise<void> {
  const writer = await open(pipe, 'w');
  onTestFinished(() => writer.close());
  await writer.write(text.padEnd(MORE, '\n'));
}

/** Expects that it stopped cleanly with the code of the signal, and left no file. */
async function expectInterrupted(running: Running, directory: string, code: number): Promise<void> {
  const ended = await running.ended;
  expect(ended).toMatchObject({ code, signal: null, stdout: '' });
  expect(ended.stderr).toMatch(/^error interrupted [^\n]+\n$/);
  expect(readdirSync(directory).filter((name) => name !== 'pipe')).toEqual([]);
}

it.each<[string[], string, NodeJS.Signals, number]>([
  [['credentials', 'verify', 'pipe', '--out', 'r.csv'], 'reference\nr0\n', 'SIGINT', 130],
  [['credentials', 'verify', 'pipe'], '', 'SIGTERM', 143],
  [['asset', 'put', 'A', '--file', 'pipe'], '{"title":', 'SIGTERM', 143],
])('a command that waits for a pipe is interrupted: %j', { tags: ['slow'] }, async (args, input, signal, code) => {
  const { server, directory, env, path } = await place();
  execFileSync('mkfifo', [path('pipe')]);
  const running = startWaiting(args, env, directory);
  await writeTo(path('pipe'), input);
  running.child.kill(signal);
  await expectInterrupted(running, directory, code);
  expect(server.asked).toEqual([]);
});

it('a command that waits for a pipe reads from a writer that comes later', async () => {
  const { directory, env, path } = await place();
  execFileSync('mkfifo', [path('pipe')]);
  const running = startWaiting(['credentials', 'verify', 'pipe'], env, directory);
  await writeFile(path('pipe'), 'reference\nr0\n');
  expect(await running.ended).toMatchObject({ code: 0, stdout: `${HEAD}\nr0,G,t-r0,a@b.example,,\n` });
});

it.each<[string[], string, NodeJS.Signals, number]>([
  [['credentials', 'verify', '-'], '', 'SIGINT', 130],
  [['credentials', 'verify', '-', '--out', 'r.csv'], csvOf(1), 'SIGTERM', 143],
  [['asset', 'put', 'A', '--file', '-'], '', 'SIGINT', 130],
  [['package', 'create', 'A', '--file', '-'], '', 'SIGTERM', 143],
  [['user', 'create', '--email', 'a@b.example', '--password-stdin', ...NAMES], '', 'SIGINT', 130],
])('a command that waits for stdin is interrupted: %j', { tags: ['slow'] }, async (args, input, signal, code) => {
  const { server, directory, env } = await place();
  const running = startWaiting(args, env, directory);
  await write(running, input);
  running.child.kill(signal);
  await expectInterrupted(running, directory, code);
  expect(server.asked).toEqual([]);
});

it.each<string[]>([
  ['credentials', 'verify', '-'],
  ['credentials', 'verify', '-', '--out', 'r.csv'],
  ['asset', 'put', 'A', '--file', '-'],
])(
  'a command that waits for stdin is interrupted even if the same signal ends the input: %s %s %s %s',
  { tags: ['slow'] },
  async (...args) => {
    const { directory, env } = await place();
    const running = startWaiting(args, env, directory);
    await write(running, 'reference\n');
    running.child.kill('SIGINT');
    running.child.stdin?.end();
    await expectInterrupted(running, directory, 130);
  },
);

it('a command that waits for stdin ends when the reader of its output ends', { tags: ['slow'] }, async () => {
  const { server, directory, env } = await place();
  const running = startWaiting(['credentials', 'verify', '-'], env, directory);
  running.child.stdout?.destroy();
  running.child.stdin?.write(csvOf(10_001));
  expect(await running.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
  expect(server.asked).toHaveLength(1);
});
