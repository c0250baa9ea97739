import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { holdFile } from '@catchword/base/file-lock';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';

/** Prints whether it holds the file, and holds it until stdin ends. */
const HOLDER = `
const { holdFile } = await import(process.argv[1]);
const release = holdFile(process.argv[2]);
console.log(release === null ? 'refused' : 'held');
process.stdin.resume().on('end', () => release?.());`;

/** Holds and releases the file repeatedly; prints how often, and how often another process held it too. */
const TAKER = `
const { closeSync, openSync, rmSync } = await import('node:fs');
const { holdFile } = await import(process.argv[1]);
let [held, shared] = [0, 0];
process.stdin.resume();
console.log('here');
await new Promise((resolve) => process.stdin.once('end', resolve));
while (held < 1000) {
  const release = holdFile(process.argv[2]);
  if (release === null) continue;
  held++;
  try { closeSync(openSync(process.argv[2], 'wx')); } catch { shared++; }
  rmSync(process.argv[2], { force: true });
  release();
}
console.log(held, shared);`;

function fileIn(directory = temporaryDirectory()): string {
  return join(directory, 'file');
}

function startProcesses(source: string, path: string, count: number) {
  const script = new URL('../../../dist/base/file-lock.js', import.meta.url).href;
  const args = ['--input-type=module', '-e', source, script, path];
  return Array.from({ length: count }, () => {
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill());
    return child;
  });
}

async function said({ stdout }: { readonly stdout: Readable }): Promise<string> {
  return String((await once(stdout, 'data'))[0]).trim();
}

/** The error thrown to an unprivileged user, because root may write anywhere. */
function thrownUnprivileged(directory: string, work: () => unknown): unknown {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) chmodSync(directory, statSync(directory).mode | 0o055);
  if (isRoot) process.seteuid?.(65534);
  try {
    return work();
  } catch (error) {
    return error;
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

it('a file is held until it is released', () => {
  const path = fileIn();
  const release = holdFile(path);
  expect(release).not.toBeNull();
  expect(holdFile(path)).toBeNull();
  release?.();
  const again = holdFile(path);
  expect(again).not.toBeNull();
  release?.();
  expect(holdFile(path)).toBeNull();
  again?.();
  expect(readdirSync(dirname(path))).toEqual([]);
});

it('a file is held by one of several processes, and free after that one is killed', { tags: ['slow'] }, async () => {
  const path = fileIn();
  const children = startProcesses(HOLDER, path, 6);
  const first = await Promise.all(children.map(said));
  expect(first.filter((line) => line === 'held')).toHaveLength(1);
  expect(holdFile(path)).toBeNull();
  await Promise.all(
    children.map(async (child) => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }),
  );
  expect(readdirSync(dirname(path))).toEqual(['file.lock']);
  const release = holdFile(path);
  expect(release).not.toBeNull();
  expect(holdFile(path)).toBeNull();
  expect(await Promise.all(startProcesses(HOLDER, path, 1).map(said))).toEqual(['refused']);
  release?.();
});

it('a file is never held by two processes at once', { tags: ['slow'] }, async () => {
  const path = fileIn();
  const children = startProcesses(TAKER, path, 3);
  await Promise.all(children.map(said));
  const ends = children.map(said);
  for (const { stdin } of children) stdin.end();
  expect(await Promise.all(ends)).toEqual(children.map(() => '1000 0'));
  expect(readdirSync(dirname(path))).toEqual([]);
});

it('a file is released without removing a lock file that another process created since', {
  tags: ['slow'],
}, async () => {
  const path = fileIn();
  const release = holdFile(path);
  rmSync(`${path}.lock`);
  const [other] = startProcesses(HOLDER, path, 1);
  expect(other && (await said(other))).toBe('held');
  release?.();
  expect(holdFile(path)).toBeNull();
});

it.each(['my notes', '1'])('a file is not held if its lock file has content: %j', (there) => {
  const path = fileIn();
  writeFileSync(`${path}.lock`, there);
  expect(() => holdFile(path)).toThrow(`${path}.lock cannot be locked: it is not empty`);
  expect(readFileSync(`${path}.lock`, 'utf8')).toBe(there);
});

it.each([
  ['it is a folder', (lock: string) => mkdirSync(lock)],
  ['it can only be read', (lock: string) => writeFileSync(lock, '', { mode: 0o444 })],
  ['its folder can only be read', (lock: string) => chmodSync(dirname(lock), 0o555)],
])('a file is not held if its lock file cannot be written: %s', (_name, prepare) => {
  const path = fileIn();
  prepare(`${path}.lock`);
  const refused = {
    code: 'CONFIG_INVALID',
    message: expect.stringContaining(`${path}.lock cannot be locked`),
    hint: expect.stringMatching(
      /empty lock file may be removed while catchword is not running.*use a file on a local disk/,
    ),
  };
  expect(thrownUnprivileged(dirname(path), () => holdFile(path))).toMatchObject(refused);
});
