import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { listen } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it } from 'vitest';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { httpConfig } from '../../src/cli/roles/http-config.ts';
import { startWebThread } from '../../src/cli/roles/web-worker-client.ts';
import { get, getJson } from '../http/reader.ts';
import { addressOf, startService } from '../support/cli.ts';
import { settingsFor } from '../support/mirror.ts';
import { place } from '../support/place.ts';

/** The program as it is installed. */
const PROGRAM = new URL('../../dist/web-worker.js', import.meta.url);

function dataFor(db: string, more: Record<string, string> = {}) {
  const config = checkedSettings({ ...settingsFor('http://127.0.0.1:1', db), ...more }, 'source');
  return { config: httpConfig(config), port: config.httpPort ?? 0, log: { level: 'silent' }, waitsForPort: false };
}

const programThat = (code: string): URL => new URL(`data:text/javascript,${encodeURIComponent(code)}`);
const START = "import { parentPort } from 'node:worker_threads'; parentPort.postMessage({ type: 'started' });";

it('the thread that serves HTTP fails if the thread ends by itself, whatever ended it', async () => {
  const endings: [string, RegExp][] = [
    [`${START} setTimeout(() => { throw new RangeError('a defect'); }, 10);`, /a defect/],
    [`${START} setTimeout(() => process.exit(0), 10);`, /has ended/],
    [
      `${START} parentPort.postMessage({ type: 'failed', error: { code: 'MIRROR_REPLACED', message: 'gone' } });`,
      /gone/,
    ],
  ];
  for (const [code, message] of endings) {
    const service = await startWebThread(dataFor(''), programThat(code));
    await expect(service.failed, code).rejects.toThrow(message);
    await service.stop();
  }
  await expect(startWebThread(dataFor(''), programThat('process.exit(0)'))).rejects.toThrow('has ended');
});

it('the thread that serves HTTP answers with metrics while the thread of the daemon computes', {
  tags: ['slow'],
}, async () => {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, 'close');
  const data = dataFor(`${temporaryDirectory()}/catalog.db`, { CATCHWORD_HTTP_PORT: String(port) });
  const service = await startWebThread(data, PROGRAM);
  const metrics = `http://127.0.0.1:${port}/metrics`;
  // Waits for another process, and so answers nothing meanwhile.
  const twice = `for (let scrape = 0; scrape < 2; scrape++) console.log(await (await fetch('${metrics}')).text());`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', twice], { encoding: 'utf8' });
  expect(stdout.match(/^nodejs_eventloop_delay_seconds\{percentile="100"\} 2$/gm)).toHaveLength(2);
  expect(stdout.match(/^catchword_products 0$/gm)).toHaveLength(2);
  expect(stdout).not.toMatch(/^nodejs_heap_size_used_bytes /m);
  const { text } = await get(metrics);
  expect(text).toMatch(/^nodejs_heap_size_used_bytes \d/m);
  await service.stop();
});

it('the thread that serves HTTP does not call a daemon healthy whose own thread hangs', {
  tags: ['slow'],
}, async () => {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, 'close');
  const data = dataFor(`${temporaryDirectory()}/catalog.db`, { CATCHWORD_HTTP_PORT: String(port) });
  const service = await startWebThread({ ...data, beatMs: 20 }, PROGRAM);
  const health = `http://127.0.0.1:${port}/healthz`;
  await expect.poll(async () => (await get(health)).status).toBe(200);
  // Waits for another process, and so does nothing meanwhile.
  const until503 = `let text = 'none';
      for (let status = 200; status === 200; ) {
        const response = await fetch('${health}');
        ({ status } = response);
        text = await response.text();
      }
      console.log(text);`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', until503], { encoding: 'utf8' });
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'STALLED' } });
  await expect.poll(async () => (await get(health)).status).toBe(200);
  await service.stop();
});

it('the thread that serves HTTP gets no secret but the token that its clients send', () => {
  const data = dataFor('', { CATCHWORD_HTTP_TOKEN: 'a-token-of-clients', CATCHWORD_SINK_A: 'jsonl:a' });
  const sent = JSON.stringify(data);
  expect(sent).toContain('a-token-of-clients');
  expect(sent).not.toMatch(/SANDBOXKEY|sandboxtoken|jsonl/);
});

it('a daemon shows the figures of its own thread, and the requests that it made', { tags: ['slow'] }, async () => {
  const { settings, directory } = await place({ items: 30 });
  const daemon = startService(['daemon'], { ...settings, CATCHWORD_HTTP_PORT: '0', LOG_LEVEL: 'info' }, directory);
  const url = await addressOf(daemon);
  await daemon.shows('"msg":"run complete"');
  const { text } = await get(`${url}/metrics`);
  expect(text).toMatch(/^catchword_requests_total\{outcome="ok"\} [1-9]/m);
  expect(text).toMatch(/^catchword_apply_duration_seconds_count [1-9]/m);
  expect(text).toMatch(/^nodejs_heap_size_used_bytes [1-9]/m);
  expect(text).toMatch(/^nodejs_eventloop_delay_seconds\{percentile="99"\} /m);
  expect(await getJson<unknown[]>(`${url}/api/products?q=9*`)).not.toHaveLength(0);
  expect(await daemon.stop()).toMatchObject({ code: 0, stdout: '' });
});

it('a daemon ends with the error of its settings if HTTP cannot be served', { tags: ['slow'] }, async () => {
  const { settings, directory } = await place({ items: 30 });
  const server = createServer();
  const taken = String(await listen(server));
  const daemon = startService(['daemon'], { ...settings, CATCHWORD_HTTP_PORT: taken, LOG_LEVEL: 'info' }, directory);
  const { code, stderr } = await daemon.ended;
  expect(code).toBe(2);
  expect(JSON.parse(stderr.trim().split('\n').at(-1) ?? '')).toMatchObject({
    level: 60,
    code: 'CONFIG_INVALID',
    reason: `CATCHWORD_HTTP_PORT: ${taken} cannot be used: another process listens on it`,
    hint: expect.any(String),
  });
});
