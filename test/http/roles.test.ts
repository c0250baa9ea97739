import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { listen } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { addressOf, type Running, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { filled, place } from '../support/place.ts';
import { get, getJson, openReader, seqOf } from './reader.ts';

const LISTENING = { CATCHWORD_HTTP_PORT: '0', LOG_LEVEL: 'info' };

async function stop(running: Running): Promise<void> {
  const ended = await running.stop();
  expect(ended).toMatchObject({ code: 0, stdout: '' });
  expect(ended.stderr).toContain('"msg":"stopped"');
}

it('catchword web needs no API key, and ends its streams when it stops', { tags: ['slow'] }, async () => {
  const { db, directory, sandbox } = await filled({ items: 30 });
  const web = startService(['web'], { CATCHWORD_BASE_URL: sandbox.url, CATCHWORD_DB: db, ...LISTENING }, directory);
  const url = await addressOf(web);
  const reader = await openReader(`${url}/api/changes/stream`);
  const [first] = await reader.events(30);
  expect(JSON.parse(first?.data ?? '')).toMatchObject({ source: `${sandbox.url}/v4/products` });
  const code = reader.endCode();
  await stop(web);
  expect(await code).toBe('SHUTDOWN');
});

it('catchword web names the setting that is wrong', async () => {
  const taken = String(await listen(createServer()));
  const directory = temporaryDirectory();
  const base = { CATCHWORD_BASE_URL: 'http://127.0.0.1:1', CATCHWORD_API_KEY: 'K', LOG_LEVEL: 'warn' };
  const refusals: [string, Record<string, string>, RegExp][] = [
    ['web', { CATCHWORD_HTTP_PORT: taken }, new RegExp(`CATCHWORD_HTTP_PORT: ${taken} cannot be used`)],
    ['daemon', { CATCHWORD_HTTP_PORT: taken }, new RegExp(`CATCHWORD_HTTP_PORT: ${taken} cannot be used`)],
    ['relay', { CATCHWORD_METRICS_PORT: taken, CATCHWORD_SINK_A: 'jsonl:a' }, /CATCHWORD_METRICS_PORT: \d+ cannot be/],
    ['web', { CATCHWORD_HTTP_PORT: 'off' }, /CATCHWORD_HTTP_PORT is off/],
    ['web', { CATCHWORD_HTTP_PORT: '65536' }, /CATCHWORD_HTTP_PORT: "65536"/],
    ['daemon', { CATCHWORD_HTTP_PORT: 'http' }, /CATCHWORD_HTTP_PORT: "http"/],
    ['daemon', { CATCHWORD_HTTP_HOST: '0.0.0.0', CATCHWORD_HTTP_PORT: '0' }, /CATCHWORD_HTTP_TOKEN is not set/],
    [
      'web',
      { CATCHWORD_HTTP_HOST: '::', CATCHWORD_HTTP_TOKEN: 'x' },
      /CATCHWORD_HTTP_TOKEN: .* fewer than 16 characters/,
    ],
    ['web', { CATCHWORD_HTTP_TOKEN: 'two words' }, /CATCHWORD_HTTP_TOKEN: its value/],
    ['web', { CATCHWORD_READY_MAX_AGE: 'a day' }, /CATCHWORD_READY_MAX_AGE: "a day"/],
    ['web', { CATCHWORD_BASE_URL: '' }, /CATCHWORD_BASE_URL is not set/],
  ];
  for (const [verb, settings, message] of refusals) {
    const { code, stdout, stderr } = await runHere([verb], { ...base, ...settings }, directory);
    expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: '' });
    const line = JSON.parse(stderr) as { reason: string };
    expect(line).toMatchObject({ level: 60, code: 'CONFIG_INVALID', hint: expect.any(String) });
    expect(line.reason).toMatch(message);
    expect(stderr).not.toContain('two words');
  }
});

it.each([
  ['relay', '0'],
  ['web', '0'],
  ['daemon', 'off'],
])('catchword %s answers with its own figures at a port of its own', { tags: ['slow'] }, async (role, port) => {
  const { directory, settings } = await filled({ items: 3 });
  const own = { CATCHWORD_SINK_A: 'jsonl:a', CATCHWORD_HTTP_PORT: port, LOG_LEVEL: 'info' };
  const http = { CATCHWORD_METRICS_PORT: '0', CATCHWORD_HTTP_TOKEN: 'a-token' };
  const relay = startService([role], { ...settings, ...own, ...http }, directory);
  const url = await addressOf(relay);
  const headers = { authorization: 'Bearer a-token' };
  expect((await get(`${url}/metrics`)).status).toBe(401);
  const { text } = await get(`${url}/metrics`, { headers });
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m);
  // The figures of the mirror come from daemon and web only: several roles would count it twice.
  expect(text).not.toContain('catchword_products');
  // Readers connect to another thread, or to another port.
  expect(text).not.toContain('connections_closed_total{');
  expect(await getJson(`${url}/healthz`)).toEqual({ alive: true });
  expect(JSON.parse((await get(`${url}/api/status`, { headers })).text)).toMatchObject({
    error: { hint: 'Use /metrics or /healthz.' },
  });
  await stop(relay);
});

it('catchword daemon serves new changes, with a token from a file', { tags: ['slow'] }, async () => {
  const { directory, settings, sandbox } = await place(
    { items: 500 },
    { ...LISTENING, CATCHWORD_DELTA_CRON: '* * * * * *' },
  );
  writeFileSync(join(directory, 'token'), 'from-a-file\n');
  const daemon = startService(['daemon'], { ...settings, CATCHWORD_HTTP_TOKEN_FILE: 'token' }, directory);
  const url = await addressOf(daemon);
  expect((await get(`${url}/api/status`)).status).toBe(401);
  const headers = { authorization: 'Bearer from-a-file' };
  const reader = await openReader(`${url}/api/changes/stream`, headers);
  await reader.events(500);
  sandbox.catalog.mutate({ create: 2, seed: 1 });
  expect((await reader.events(2)).map(seqOf)).toEqual([501, 502]);
  expect(await getJson(`${url}/api/status`, { headers })).toMatchObject({ last_seq: 502 });
  await expect.poll(async () => (await get(`${url}/readyz`, { headers })).status).toBe(200);
  await stop(daemon);
  expect((await daemon.ended).stderr).not.toContain('from-a-file');
});

it('catchword daemon serves no HTTP if the port is off', { tags: ['slow'] }, async () => {
  const { directory, settings } = await place({ items: 5 }, { CATCHWORD_HTTP_PORT: 'off', LOG_LEVEL: 'info' });
  const daemon = startService(['daemon'], settings, directory);
  await daemon.shows('run complete');
  await stop(daemon);
  expect((await daemon.ended).stderr).not.toContain('listening');
});
