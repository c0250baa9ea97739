import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../support/mirror.ts';

const LOG = new URL('../../dist/base/log.js', import.meta.url).href;

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
  expect(seen.slice(-2)).toMatchObject([
    { line: 1, msg: 'has room' },
    { line: 2, msg: 'has room' },
  ]);
});
