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
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serve } from '../client/connection.ts';
import { run, runRedirected, start } from '../support/cli.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { csvOf, HEAD, rows, settings, verified, verify } from './credential-service.ts';

/** A process that is killed leaves the file of its socket, whose path must be short: it is told from where it stands. */
function leaveSocket(path: string): void {
  const leave = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 9))`;
  spawnSync(process.execPath, ['-e', leave, basename(path)], { cwd: dirname(path) });
  expect(statSync(path).isSocket()).toBe(true);
}

describe('the files of credentials verify', () => {
  it.each<[string, (path: string) => void]>([
    ['a file that is not there', () => {}],
    ['a directory', (path) => mkdirSync(path)],
    // As a file of somebody else's: it is there, and cannot be opened. This holds for root too.
    ['a file that cannot be opened', leaveSocket],
    ['what cannot be read once it is open', (path) => symlinkSync('/proc/self/mem', path)],
  ])('refuses %s, and leaves nothing behind', async (_name, prepare) => {
    const server = await serve(() => '');
    const directory = temporaryDirectory();
    prepare(join(directory, 'none.csv'));
    const before = readdirSync(directory);
    for (const more of [[], ['--out', 'r.csv']]) {
      const ended = await verified(server, directory, ['none.csv', ...more]);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toMatch(/^error none.csv cannot be read: E[^\n]+\nhint {2}[^\n]+\n$/);
    }
    expect(readdirSync(directory)).toEqual(before);
    expect(server.asked).toEqual([]);
  });

  it.each<[string, string, string, (from: string, to: string) => void, string]>([
    ['the same path', 'users.csv', './users.csv', () => {}, ''],
    ['a symbolic link', 'users.csv', 'r.csv', symlinkSync, ''],
    ['a hard link', 'users.csv', 'r.csv', linkSync, ''],
    ['a link that stands beside it', 'users.csv', 'r.csv', (from, to) => symlinkSync(from, `${to}.state`), ''],
    ['stdin', '-', 'r.csv', linkSync, '< users.csv'],
  ])('does not write over its input by %s', async (_name, path, out, link, redirection) => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    chmodSync(join(directory, 'users.csv'), 0o644);
    link(join(directory, 'users.csv'), join(directory, out));
    for (const more of [[], ['--restart']]) {
      const args = ['credentials', 'verify', path, '--out', out, ...more];
      const ended = await runRedirected(args, redirection, settings(server), directory);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toContain('is the file that is read');
    }
    expect(readFileSync(join(directory, 'users.csv'), 'utf8')).toBe(csvOf(2));
    expect(statSync(join(directory, 'users.csv')).mode & 0o777).toBe(0o644);
    expect(server.asked).toEqual([]);
  });

  it('does not write where another run does', async () => {
    const server = await serve(({ body }, index) => (index === 0 ? null : verify(body)));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    symlinkSync('r.csv', join(directory, 'link.csv'));
    const args = ['credentials', 'verify', 'users.csv', '--out'];
    const first = start([...args, 'r.csv'], settings(server), directory);
    await expect.poll(() => server.asked.length, { timeout: 30_000 }).toBe(1);
    for (const more of [['r.csv'], ['r.csv', '--restart'], ['link.csv']]) {
      const second = await run([...args, ...more], settings(server), directory);
      expect(second).toMatchObject({ code: 2, stdout: '' });
      expect(second.stderr).toContain(`${more[0]} is in use by another run`);
    }
    expect(server.asked).toHaveLength(1);
    first.child.kill('SIGKILL');
    await first.ended;
    // What a killed one left holds nothing.
    expect(await run([...args, 'r.csv'], settings(server), directory)).toMatchObject({ code: 0 });
    expect(rows(directory, 'r.csv')).toHaveLength(3);
    expect(readdirSync(directory).toSorted()).toEqual(['link.csv', 'r.csv', 'r.csv.state', 'users.csv']);
  });

  it.each([
    ['its file has no name', ['--out', ''], 'reference\nr0\n', 'without a name is no regular file'],
    ['it may not write', ['--out', '.'], 'reference\nr0\n', 'is no regular file'],
    ['the header is wrong', [], 'name\nAda\n', 'names no column'],
    ['a line is wrong', [], 'reference\nr0\n"\u0007"\n', 'line 3'],
  ])('ends although stdin does not, where %s', async (_name, more, input, said) => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    const pipe = join(directory, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const writer = openSync(pipe, 'r+');
    onTestFinished(() => closeSync(writer));
    writeSync(writer, input);
    const args = ['credentials', 'verify', '-', ...more];
    const ended = await runRedirected(args, '< pipe', settings(server), directory);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toContain(said);
  });

  it('throws no results away for an input without accounts', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    await verified(server, directory, ['users.csv', '--out', 'r.csv']);
    for (const none of ['', 'reference\n']) {
      writeFileSync(join(directory, 'none.csv'), none);
      const ended = await verified(server, directory, ['none.csv', '--out', 'r.csv', '--restart']);
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(ended.stderr).toMatch(/^error the input names no account[^\n]+\nhint {2}[^\n]+\n$/);
      expect(rows(directory, 'r.csv')).toHaveLength(3);
    }
    expect(server.asked).toHaveLength(1);
  });

  it('throws no results away for an input whose header is wrong', async () => {
    const server = await serve(({ body }) => verify(body));
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), csvOf(2));
    writeFileSync(join(directory, 'wrong.csv'), 'name\nAda\n');
    await verified(server, directory, ['users.csv', '--out', 'r.csv']);
    const ended = await verified(server, directory, ['wrong.csv', '--out', 'r.csv', '--restart']);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(rows(directory, 'r.csv')).toHaveLength(3);
  });

  it.each(['', 'reference\n'])('has a header for no results as well: %j', async (input) => {
    const server = await serve(() => '');
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'users.csv'), input);
    expect(await verified(server, directory, ['users.csv'])).toMatchObject({ code: 0, stdout: `${HEAD}\n` });
    expect(await verified(server, directory, ['users.csv', '--json'])).toMatchObject({ code: 0, stdout: '' });
    await verified(server, directory, ['users.csv', '--out', 'r.csv']);
    expect(readFileSync(join(directory, 'r.csv'), 'utf8')).toBe(`${HEAD}\n`);
    expect(server.asked).toEqual([]);
  });
});
