import { type Clock, systemClock } from '@catchword/base/clock';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { serveHttp } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { runHere } from '../support/in-process.ts';
import { load } from '../support/load.ts';
import { standIn } from '../support/mirror.ts';
import { place } from '../support/place.ts';
// Loaded before the runs, which are short: a beat that is late gives way to the next one.
import '@catchword/sink-kit/http-target';
import { receiver } from './scene.ts';

/** A sandbox, and settings with a heartbeat. */
function withHeartbeat(url: string) {
  const address = `${url}/ping/secret-uuid?tag=secret-tag#allow=private`;
  return place({ items: 300 }, { CATCHWORD_HEARTBEAT_URL: address });
}

const START = '/ping/secret-uuid/start?tag=secret-tag';
const COMPLETE = '/ping/secret-uuid?tag=secret-tag';
const FAIL = '/ping/secret-uuid/fail?tag=secret-tag';

/** A receiver that knows one path, and answers 404 at any other. */
async function kuma() {
  const received: string[] = [];
  const url = await serveHttp(({ url: path = '' }, response) => {
    received.push(path);
    response.writeHead(path === COMPLETE ? 200 : 404).end();
  });
  return { url, received };
}

it('a heartbeat is sent when a run starts and when it is complete', async () => {
  const { url, received } = await receiver(() => ({ status: 200 }));
  const { settings } = await withHeartbeat(url);
  await load(settings, 'full');
  await load(settings, 'delta');
  expect(received.map(({ path }) => path)).toEqual([START, COMPLETE, START, COMPLETE]);
});

it('a heartbeat is sent when a run fails, and none by commands that only compare', async () => {
  const { url, received } = await receiver(() => ({ status: 200 }));
  const { sandbox, directory, settings } = await withHeartbeat(url);
  expect((await runHere(['sync'], settings, directory)).code).toBe(0);
  received.length = 0;
  expect((await runHere(['verify'], settings, directory)).code).toBe(0);
  expect((await runHere(['sync', '--dry-run'], settings, directory)).code).toBe(0);
  expect(received).toEqual([]);
  await sandbox.stop();
  const { code, stderr } = await runHere(['sync'], settings, directory);
  expect(code).not.toBe(0);
  expect(stderr).not.toContain('secret');
  expect(received.map(({ path }) => path)).toEqual([START, FAIL]);
});

it('counts a run that holds removals as complete', async () => {
  const { url, received } = await receiver(() => ({ status: 200 }));
  const { db, settings } = await withHeartbeat(url);
  await load(settings, 'full');
  const empty = await startSandbox({ items: 0 });
  onTestFinished(() => empty.stop());
  standIn(db, empty.url);
  const run = await load({ ...settings, CATCHWORD_BASE_URL: empty.url }, 'full');
  expect(run.state).toBe('held');
  expect(received.map(({ path }) => path).slice(-2)).toEqual([START, COMPLETE]);
});

it('delays and fails no run if it does not answer', { tags: ['slow'] }, async () => {
  const { url, received } = await receiver(() => null);
  const { directory, settings } = await withHeartbeat(url);
  const ended = await runHere(['sync', '--json'], settings, directory);
  expect(ended.code).toBe(0);
  expect(JSON.parse(ended.stdout)).toMatchObject({ state: 'complete' });
  const paths = received.map(({ path }) => path);
  expect([paths[0], paths.at(-1)]).toEqual([START, COMPLETE]);
});

it('warns once if the address answers with an error, without showing the address', async () => {
  const { url, received } = await receiver(() => ({ status: 404 }));
  const { directory, settings } = await withHeartbeat(url);
  // The tries of the last beat end long before the process stops waiting for them.
  const sleep: Clock['sleep'] = (ms, signal) => systemClock.sleep(Math.min(ms, 10), signal);
  const ended = await runHere(['sync'], settings, directory, { clock: { ...systemClock, sleep } });
  expect(ended.code).toBe(0);
  // A start that fails is not tried again once the run has ended.
  const paths = received.map(({ path }) => path);
  expect(paths.slice(-3)).toEqual([COMPLETE, COMPLETE, COMPLETE]);
  expect(new Set(paths.slice(0, -3))).toEqual(new Set([START]));
  const { stderr } = ended;
  expect(stderr.match(/CATCHWORD_HEARTBEAT_URL does not take heartbeats/g)).toHaveLength(1);
  expect(stderr).toContain('the receiver answered 404');
  expect(stderr).not.toContain('secret');
});

it.each([
  ['http://hc.example/ping', /must be an https address, or http:\/\/…#allow=private/],
  ['https://shop:secret-word@hc.example/ping', /must not contain a user name or password/],
  ['ftp://hc.example/secret-word', /must be an https address/],
  ['https://hc.example/ping#secret-word', /must not contain a # other than #allow=private/],
])('rejects the address %s', async (address, hint) => {
  const environment = { CATCHWORD_HEARTBEAT_URL: address };
  const { code, stdout, stderr } = await runHere(['settings'], environment, temporaryDirectory());
  expect(code).toBe(2);
  expect(stderr).toMatch(hint);
  expect(stdout + stderr).not.toContain('secret-word');
});

it('a heartbeat goes to an address with a single path, as that of Uptime Kuma, without a warning', async () => {
  const { url, received } = await kuma();
  const { sandbox, directory, settings } = await withHeartbeat(url);
  const ended = await runHere(['sync'], settings, directory);
  expect(ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining('HEARTBEAT') as string });
  await sandbox.stop();
  const failed = await runHere(['sync'], settings, directory);
  expect(failed.stderr).not.toContain('HEARTBEAT');
  // Each is sent once: the answer says that another try would not help.
  expect(received).toEqual([START, COMPLETE, START, FAIL]);
});
