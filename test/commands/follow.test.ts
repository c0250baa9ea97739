import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { openHarness } from '../../src/relay/contract/harness.ts';
import { books } from '../relay/feeding.ts';
import { temporaryDirectory } from '../support/mirror.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

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

it('changes --follow waits for a slow reader, and ends at the next change after its reader went away', async () => {
  const bench = openHarness();
  onTestFinished(() => bench.close());
  bench.change(books(1, 1));
  const ended = pipeline(bench.store.path, '(read -r first; echo ready; read -r second; echo "$second")');
  const timer = setInterval(() => bench.change(books(1, 2)), 2_000);
  onTestFinished(() => clearInterval(timer));
  const { stdout, stderr } = await ended;
  expect(stdout).toMatch(/^ready\n\{.*"op":"updated".*\}\n$/);
  expect(stderr).toBe('exit 0\n');
});
