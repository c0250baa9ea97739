import { Writable } from 'node:stream';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { runHere } from '../support/in-process.ts';
import { settingsFor } from '../support/mirror.ts';

it('a reader that closes stdout is not a failure', async () => {
  const closed = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done(closed) });
  expect(await runHere(['--help'], {}, temporaryDirectory(), { stdout })).toMatchObject({ code: 0, stderr: '' });
});

it('a signal stops a command, which reports that it was interrupted', async () => {
  const sandbox = await startSandbox({ items: 20, latencyMs: 60_000 });
  onTestFinished(() => sandbox.stop());
  const directory = temporaryDirectory();
  const stopping = new AbortController();
  const ended = runHere(['sync'], settingsFor(sandbox.url, 'catalog.db'), directory, { signal: stopping.signal });
  setTimeout(() => stopping.abort(), 100);
  expect(await ended).toMatchObject({ code: 130, stdout: '', stderr: expect.stringMatching(/^error .*interrupted/) });
});

it.each([
  ['a usage error', ['sink', 'skip', 'shop', '--json-not'], false],
  ['a usage error for --json', ['runs', '--limit', 'x', '--json'], true],
  ['a missing mirror for --json', ['status', '--json'], true],
  ['wrong settings for --json', ['export', '--json'], true],
])('%s is printed on stderr in the form that was asked for', async (what, args, isJson) => {
  const env: Record<string, string> = what.startsWith('wrong') ? { CATCHWORD_PER_PAGE: 'many' } : {};
  const { stdout, stderr, code } = await runHere(args, env, temporaryDirectory());
  expect(stdout).toBe('');
  expect(code).not.toBe(0);
  if (!isJson) return expect(stderr).toMatch(/^error .*\[USAGE\]\nhint {2}/);
  const { error } = JSON.parse(stderr) as { error: Record<string, string> };
  expect(Object.keys(error)).toEqual(['code', 'message', 'hint']);
  expect(error.code).toMatch(/^(USAGE|NOT_FOUND|MIRROR_UNUSABLE|CONFIG_INVALID)$/);
});
