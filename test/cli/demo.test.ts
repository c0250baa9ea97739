import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { listen } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { getJson } from '../http/reader.ts';
import { startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';

it('demo --stay keeps a daemon running, and removes its files when it is interrupted', { tags: ['slow'] }, async () => {
  const directory = temporaryDirectory();
  const demo = startService(['demo', '--stay', '--port', '0'], { TMPDIR: directory }, directory);
  let stdout = '';
  demo.child.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  await demo.shows('Press Ctrl-C');
  expect(readdirSync(directory)).toEqual([expect.stringMatching(/^catchword-demo-/)]);
  const [, url = ''] = /^Open (http:\/\/127\.0\.0\.1:\d+)\/$/m.exec(stdout) ?? [];
  await expect.poll(async () => await getJson(`${url}/api/runs`)).toMatchObject([{ kind: 'full', state: 'reading' }]);
  expect(await demo.stop('SIGINT')).toMatchObject({ code: 130, stderr: '' });
  expect(readdirSync(directory)).toEqual([]);
});

it('demo rejects a port that is in use, and options that do not belong together', async () => {
  const taken = String(await listen(createServer()));
  const directory = temporaryDirectory();
  const stderrOf = async (...args: string[]) => {
    const { code, stderr } = await runHere(['demo', ...args], {}, directory);
    expect(code).toBe(2);
    return stderr;
  };
  expect(await stderrOf('--stay', '--port', taken)).toContain(`CATCHWORD_HTTP_PORT: ${taken} cannot be used`);
  expect(await stderrOf('--stay', '--json')).toContain('--json cannot be used with --stay');
  expect(await stderrOf('--port', '8080')).toContain('--port is only for --stay');
  expect(await stderrOf('--stay', '--port', 'x')).toContain('--port: "x" is not a whole number');
});
