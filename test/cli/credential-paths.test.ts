import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { run, runRedirected, start } from '../support/cli.ts';
import { csvOf, HEAD, place, rows, verify } from './credential-service.ts';
import { expectFailure } from './failure.ts';

/** Leaves the socket of a killed process. Its path must be short, so the process runs in its directory. */
function leaveSocket(path: string): void {
  const leave = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 9))`;
  spawnSync(process.execPath, ['-e', leave, basename(path)], { cwd: dirname(path) });
  expect(statSync(path).isSocket()).toBe(true);
}

it.each<[string, (path: string) => void]>([
  ['a missing file', () => {}],
  ['a directory', (path) => mkdirSync(path)],
  // Unlike a file of another user, root cannot open it either.
  ['a file that cannot be opened', leaveSocket],
  ['a file that cannot be read', (path) => symlinkSync('/proc/self/mem', path)],
])('credentials verify rejects %s as input, and leaves no file', async (_name, prepare) => {
  const { server, directory, verified, path } = await place();
  prepare(path('none.csv'));
  const before = readdirSync(directory);
  for (const more of [[], ['--out', 'r.csv']]) {
    expectFailure(await verified('none.csv', ...more), 2, /^error cannot read none.csv \(E[^\n]+\nhint {2}[^\n]+\n$/);
  }
  expect(readdirSync(directory)).toEqual(before);
  expect(server.asked).toEqual([]);
});

it.each<[string, string, string, (from: string, to: string) => void, string]>([
  ['the same path', 'users.csv', './users.csv', () => {}, ''],
  ['a symbolic link', 'users.csv', 'r.csv', symlinkSync, ''],
  ['a hard link', 'users.csv', 'r.csv', linkSync, ''],
  ['a link of the same name with .part', 'users.csv', 'r.csv', (from, to) => symlinkSync(from, `${to}.part`), ''],
  ['stdin', '-', 'r.csv', linkSync, '< users.csv'],
])('credentials verify does not write over its input by %s', async (_name, input, out, link, redirection) => {
  const { server, directory, env, path } = await place(csvOf(2));
  chmodSync(path('users.csv'), 0o644);
  link(path('users.csv'), path(out));
  for (const more of [[], ['--restart']]) {
    const args = ['credentials', 'verify', input, '--out', out, ...more];
    const ended = await runRedirected(args, redirection, env, directory);
    expectFailure(ended, 2, `--out ${out} would overwrite the input`);
  }
  expect(readFileSync(path('users.csv'), 'utf8')).toBe(csvOf(2));
  expect(statSync(path('users.csv')).mode & 0o777).toBe(0o644);
  expect(server.asked).toEqual([]);
});

it('credentials verify does not write a file that another run writes', { tags: ['slow'] }, async () => {
  const { server, directory, env, path } = await place(csvOf(2), ({ body }, index) =>
    index === 0 ? null : verify(body),
  );
  writeFileSync(path('r.csv'), '');
  symlinkSync('r.csv', path('link.csv'));
  const args = ['credentials', 'verify', 'users.csv', '--out'];
  const first = start([...args, 'r.csv'], env, directory);
  await expect.poll(() => server.asked.length, { timeout: 30_000 }).toBe(1);
  for (const more of [['r.csv'], ['r.csv', '--restart'], ['link.csv']]) {
    expectFailure(await run([...args, ...more], env, directory), 2, `${more[0]} is in use by another run`);
  }
  expect(server.asked).toHaveLength(1);
  await first.stop('SIGKILL');
  expect(await run([...args, 'r.csv'], env, directory)).toMatchObject({ code: 0 });
  expect(rows(directory, 'r.csv')).toHaveLength(3);
  expect(readdirSync(directory).toSorted()).toEqual(['link.csv', 'r.csv', 'users.csv']);
});

it.each([
  ['--out is empty', ['--out', ''], 'reference\nr0\n', '--out is empty'],
  ['--out is a directory', ['--out', '.'], 'reference\nr0\n', 'is not a regular file'],
  ['the header is wrong', [], 'name\nAda\n', 'no column is named'],
  ['a line is wrong', [], 'reference\nr0\n"\u0007"\nr1\n', 'line 3'],
])('credentials verify ends although stdin stays open if %s', async (_name, more, input, message) => {
  const { directory, env, path } = await place();
  execFileSync('mkfifo', [path('pipe')]);
  const writer = openSync(path('pipe'), 'r+');
  onTestFinished(() => closeSync(writer));
  writeSync(writer, input);
  expectFailure(await runRedirected(['credentials', 'verify', '-', ...more], '< pipe', env, directory), 2, message);
});

it.each(['', 'reference\n'])('credentials verify writes a header for an input without accounts: %j', async (input) => {
  const { server, verified, path } = await place(input);
  expect(await verified('users.csv')).toMatchObject({ code: 0, stdout: `${HEAD}\n` });
  expect(await verified('users.csv', '--json')).toMatchObject({ code: 0, stdout: '' });
  expect(await verified('users.csv', '--out', 'r.csv')).toMatchObject({ code: 0 });
  expect(readFileSync(path('r.csv'), 'utf8')).toBe(`${HEAD}\n`);
  expect(server.asked).toEqual([]);
});
