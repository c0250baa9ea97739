import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { holdFile } from '../src/hold-file.ts';
import { temporaryDirectory } from './support/mirror.ts';

/** Above the highest number of a process. */
const GONE = '4194305';

/** Says what came of it, and holds the file until stdin ends. */
const HOLDER = `
const { holdFile } = await import(process.argv[1]);
try {
  const release = holdFile(process.argv[2]);
  console.log('held');
  process.stdin.resume().on('end', release);
} catch (error) {
  console.log(error.message);
}`;

function fileIn(directory = temporaryDirectory()): string {
  return join(directory, 'file');
}

describe('a file', () => {
  it('is held until it is given back', () => {
    const path = fileIn();
    const release = holdFile(path);
    expect(() => holdFile(path)).toThrow(`is in use by process ${process.pid}`);
    release();
    expect(readdirSync(dirname(path))).toEqual([]);
    const again = holdFile(path);
    release();
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe(String(process.pid));
    again();
  });

  it('is taken over by one of several processes that find its holder gone', async () => {
    const path = fileIn();
    writeFileSync(`${path}.lock`, GONE);
    // Left in the middle of an earlier take-over.
    writeFileSync(`${path}.lock.turn`, GONE);
    const script = new URL('../dist/hold-file.js', import.meta.url).href;
    const args = ['--input-type=module', '-e', HOLDER, script, path];
    const children = Array.from({ length: 6 }, () =>
      spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'ignore'] }),
    );
    const said = children.map(({ stdout }) => text(stdout));
    // The one that holds it says so, and stays; all others end.
    const first = await Promise.all(children.map(async ({ stdout }) => String((await once(stdout, 'data'))[0])));
    expect(first.filter((line) => line === 'held\n')).toHaveLength(1);
    const holder = children[first.indexOf('held\n')];
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe(String(holder?.pid));
    for (const { stdin } of children) stdin.end();
    await Promise.all(said);
    expect(readdirSync(dirname(path))).toEqual([]);
  });

  it.each(['my notes', '123\n', '-1'])('is not held over a lock that is none: %j', (there) => {
    const path = fileIn();
    writeFileSync(`${path}.lock`, there);
    expect(() => holdFile(path)).toThrow(`${path}.lock is in the way`);
    expect(readFileSync(`${path}.lock`, 'utf8')).toBe(there);
    expect(existsSync(`${path}.lock.turn`)).toBe(false);
  });
});
