import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { golden, type Reply, serve } from '../../packages/client/test/connection.ts';
import { CLI, runRedirected, start } from '../support/cli.ts';
import { csvOf, HEAD, place, rows, settings } from './credential-service.ts';

const NAMES = ['--first-name', 'Ada', '--last-name', 'Abernathy'];
const FRESH = 'freshtokenthatmustnotshow';
const PUPIL = golden('user-reference-response.xml');

function json(body: object): Reply {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

it('a full disk behind stderr does not change the result or the exit code of a command', {
  tags: ['slow'],
}, async () => {
  const { directory, env } = await place(csvOf(1));
  const args = ['credentials', 'verify', 'users.csv', '--out', 'r.csv'];
  const ended = await runRedirected(args, '2> /dev/full', env, directory);
  expect(ended).toMatchObject({ code: 0, signal: null });
  expect(rows(directory, 'r.csv')).toEqual([HEAD, 'r0,G,t-r0,a@b.example,,']);
  const wrong = await runRedirected(['asset'], '2> /dev/full', env, directory);
  expect(wrong).toMatchObject({ code: 2, signal: null });
});

it('a full disk behind stderr does not stop a daemon', { tags: ['slow'] }, async () => {
  const server = await serve(() => ({ status: 503 }));
  const cwd = temporaryDirectory();
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const env = { ...settings(server), PATH: process.env.PATH ?? '', CATCHWORD_DB: 'catalog.db', LOG_LEVEL: 'info' };
  const child = spawn(process.execPath, [CLI, 'daemon'], {
    cwd,
    env: { ...env, CATCHWORD_HTTP_PORT: '0' },
    stdio: ['ignore', 'ignore', full, 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  // It reports that it started, or ends.
  await Promise.race([once(child, 'message'), ended]);
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

const put = ['asset', 'put', '--set', 'title=A'];
it.each<[string, string[], Reply | string]>([
  ['created 9781402894626', [...put, '--set', 'imprint_id=5'], json({ vbid: '9781402894626', title: 'A' })],
  ['saved A-1', [...put, 'A-1', '--json'], json({ vbid: 'A-1', title: 'A' })],
  ['created the user 5N8C3DGK7Q2M9XW4TZ1B', ['user', 'create', '--reference', 'pupil-7', ...NAMES], PUPIL],
  ['created package B-1', ['package', 'create', 'B-1', '--set', 'name=B'], json({ sku: 'B-1' })],
  ['sent the deletion of package B-1', ['package', 'delete', 'B-1'], ''],
])('a full disk behind stdout does not hide what was written: %s', async (done, args, answer) => {
  const { env, directory } = await place('', () => answer);
  const ended = await runRedirected(args, '> /dev/full', env, directory);
  expect(ended).toMatchObject({ code: 1, signal: null });
  const isJson = args.includes('--json');
  expect(ended.stderr).toMatch(isJson ? /^\{"error":[^\n]+\}\n$/ : /^error [^\n]+\nhint {2}[^\n]+\n$/);
  const said = isJson ? '"message":"' : 'error ';
  expect(ended.stderr).toContain(`${said}${done}, but the output cannot be written: ENOSPC`);
});

it('a full disk behind stdout does not hide the error of a command that failed', async () => {
  const { env, directory } = await place();
  const ended = await runRedirected(['user', 'reset-access'], '> /dev/full', env, directory);
  expect(ended.code).toBe(2);
  expect(ended.stderr).toMatch(/^error no access token is set, [^\n]+\nhint [^\n]+\n$/);
});

it('a full disk behind stdout does not show the token', async () => {
  const verified = `<credentials><credential reference="me" guid="G" access-token="${FRESH}"/></credentials>`;
  const { env, directory } = await place('', ({ url }) => (url.includes('reset_access') ? '' : verified));
  const more = { CATCHWORD_ACCESS_TOKEN: 'stale', CATCHWORD_USER_REFERENCE: 'me' };
  const ended = await runRedirected(['user', 'reset-access'], '> /dev/full', { ...env, ...more }, directory);
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain('error reset the access token of me, but the output cannot be written: ENOSPC');
  expect(ended.stderr).not.toContain(FRESH);
});

it.each([
  [['asset', 'put', '--set', 'title=A', '--set', 'imprint_id=1'], /^Retry; [^\n]*check whether it was done[^\n]*$/],
  [['licenses'], /^Retry the call\.$/],
])('Ctrl-C during %j says what to do', async (args, hint) => {
  const { server, env, directory } = await place('', () => null);
  const running = start(args, { ...env, CATCHWORD_ACCESS_TOKEN: 'token' }, directory);
  await expect.poll(() => server.asked.length, { timeout: 30_000 }).toBe(1);
  const ended = await running.stop('SIGINT');
  expect(ended).toMatchObject({ code: 130, signal: null, stdout: '' });
  const [error, told = '', ...others] = ended.stderr.split('\n');
  expect([error, others]).toEqual(['error the request was aborted', ['']]);
  expect(told.replace(/^hint {2}/, '')).toMatch(hint);
});
