import { hostname } from 'node:os';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { effectiveSettings } from '../../src/operate/effective-settings.ts';
import { serve, serveHarness } from '../http/place.ts';
import { get, getJson } from '../http/reader.ts';
import { runHere } from '../support/in-process.ts';

it('the page and the API show the settings in use as the command does, without secrets', async () => {
  const { store } = await serveHarness();
  const environment = {
    CATCHWORD_DB: store.path,
    CATCHWORD_BASE_URL: 'https://catalog.example',
    CATCHWORD_API_KEY: 'hidden-key',
    CATCHWORD_SINK_SHOP: 'postgres://user:hidden-password@db.example/shop',
    CATCHWORD_NOTIFY_TEAM: 'slack+https://hooks.example/hidden-path',
  };
  const { web } = await serve(store.path, { effective: effectiveSettings({ environment, fromDotEnv: new Set() }) });
  const { stdout } = await runHere(['settings', '--json'], environment, temporaryDirectory());
  const settings = await getJson<readonly object[]>(`${web.url}/api/settings`);
  expect(settings).toEqual(JSON.parse(stdout));
  expect(settings).toContainEqual({ name: 'CATCHWORD_API_KEY', value: '********', from: 'environment' });
  const { text } = await get(`${web.url}/system`);
  expect(text).toMatch(/CATCHWORD_SINK_SHOP<.*postgres db.example.*CATCHWORD_NOTIFY_TEAM</s);
  expect(text + stdout).not.toMatch(/hidden/);
});

it('the page and the API name each process once, with all that it does and since when', async () => {
  const { store, page } = await serveHarness();
  const seen = Date.now();
  const daemon = store.daemonLease.acquire(seen);
  store.relayLease.acquire(seen + 1);
  daemon.renew(seen + 2);
  const at = new Date(seen).toISOString();
  const one = { pid: process.pid, host: hostname(), roles: ['daemon', 'sinks', 'http'], since: at, other_settings: [] };
  expect(JSON.parse((await page('/api/processes')).text)).toEqual([one]);
  expect((await page('/system')).text).toMatch(new RegExp(`${process.pid}<.*daemon, sinks, http.*${at}`, 's'));
});

it('fetchers are listed with the processes, and the page says if Redis does not name them', async () => {
  const { store } = await serveHarness();
  const fetcher = { pid: 7, host: 'far', since: 0, roles: ['fetcher'], other_settings: [] };
  const redis = 'redis.example:6379';
  const known = await serve(store.path, { fetchers: async () => ({ redis, problem: null, fetchers: [fetcher] }) });
  expect((await get(`${known.web.url}/system`)).text).toMatch(
    /Connected to Redis at redis.example:6379.*far.*fetcher/s,
  );
  const processes = await getJson<readonly object[]>(`${known.web.url}/api/processes`);
  expect(processes).toContainEqual({ ...fetcher, since: '1970-01-01T00:00:00.000Z' });
  for (const [problem, said] of [
    ['NOPERM', 'Redis at redis.example:6379 does not name its fetchers: NOPERM.'],
    [null, 'No fetcher is connected to Redis at redis.example:6379.'],
  ] as const) {
    const { web } = await serve(store.path, { fetchers: async () => ({ redis, problem, fetchers: [] }) });
    expect((await get(`${web.url}/system`)).text).toContain(said);
  }
});
