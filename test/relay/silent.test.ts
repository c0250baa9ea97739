// @module-tag slow
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { listen } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SINK_NAME } from '../../src/contract/harness.ts';
import { type Running, startService } from '../support/cli.ts';
import { runHere } from '../support/in-process.ts';
import { place } from '../support/place.ts';
import { ADDRESSES, type Protocol } from './addresses.ts';
import { books, temporaryMirror } from './feeding.ts';
import { PROXIED_KINDS } from './target-kinds.ts';

/** Shorter than the deadline of a call of any of the stores, and longer than a relay takes on a busy machine. */
const LIMIT_MS = 24_000;

function addressOf(kind: Protocol, port: number): string {
  return `${ADDRESSES[kind](port)}${kind === 'webhook' ? '&timeout=110' : ''}`;
}

/** Listens at a port that accepts connections and says nothing. */
async function silentPort(): Promise<number> {
  const sockets = new Set<{ destroy(): unknown }>();
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return await listen(createServer((socket) => sockets.add(socket.on('error', () => {}))));
}

/** Makes a mirror with ten products, and relays of it that feed one sink. */
function mirrorFor(url: string, secret = '') {
  const harness = temporaryMirror();
  harness.change(books(10, 1));
  const env = {
    CATCHWORD_BASE_URL: 'http://service.example',
    CATCHWORD_DB: harness.store.path,
    [`CATCHWORD_SINK_${SINK_NAME.toUpperCase()}`]: url,
    [`CATCHWORD_SINK_${SINK_NAME.toUpperCase()}_SECRET`]: secret,
    LOG_LEVEL: 'info',
  };
  return { harness, startRelay: () => startService(['relay'], env, temporaryDirectory()) };
}

/** @returns how the process ended after SIGTERM */
async function terminated(running: Running) {
  const ended = await Promise.race([running.stop('SIGTERM'), delay(LIMIT_MS, null, { ref: false })]);
  if (ended === null) throw new Error(`it has not ended ${LIMIT_MS} ms after SIGTERM`);
  const { code, signal, stderr } = ended;
  expect(stderr).toContain('"msg":"stopped"');
  return { code, signal };
}

describe.each(PROXIED_KINDS)('a relay ends at SIGTERM although $name', ({ name, start, prepare }) => {
  it('accepts the connection and says nothing', async () => {
    const relay = mirrorFor(addressOf(name, await silentPort())).startRelay();
    await relay.shows('"msg":"started"');
    // Whether it is connecting, or has not begun to, does not matter.
    expect(await terminated(relay)).toEqual({ code: 0, signal: null });
  });

  it('says nothing while it is idle, or while it gets a batch', async () => {
    const server = await start();
    const target = await prepare(server.port, '');
    onTestFinished(async () => {
      await target.remove();
      await server.stop();
    });
    const { harness, startRelay } = mirrorFor(target.url, target.secret);
    const idle = startRelay();
    await harness.caughtUp();
    target.mute();
    expect(await terminated(idle)).toEqual({ code: 0, signal: null });

    const next = startRelay();
    await next.shows('sink is open');
    await harness.deliver(books(10, 2));
    target.mute();
    harness.change(books(10, 3));
    // The relay looks for changes every 200 ms; nothing shows that it has sent these.
    await delay(1_000);
    expect(await terminated(next)).toEqual({ code: 0, signal: null });
    expect(harness.sink().cursor).toBe(20);
  });
});

it('the daemon ends at SIGTERM although no store says anything', async () => {
  const hanging = await listen(createHttpServer(() => {}));
  const port = await silentPort();
  const sinks = PROXIED_KINDS.map(({ name }) => [
    `CATCHWORD_SINK_${name.toUpperCase()}`,
    addressOf(name, name === 'webhook' ? hanging : port),
  ]);
  const { settings, directory } = await place({ items: 300 }, { LOG_LEVEL: 'info', CATCHWORD_HTTP_PORT: 'off' });
  const daemon = startService(['daemon'], { ...settings, ...Object.fromEntries(sinks) }, directory);
  await daemon.shows('run complete');
  expect(await terminated(daemon)).toEqual({ code: 0, signal: null });
});

it('doctor says of each store that accepts a connection and says nothing that there was no answer', async () => {
  const port = await silentPort();
  const silent = { ...ADDRESSES, webhook: () => `s3://books/x?endpoint=http://127.0.0.1:${port}` };
  const settings = Object.entries(silent).map(([name, address]) => [
    `CATCHWORD_SINK_${name}`.toUpperCase(),
    address(port),
  ]);
  const env = { ...Object.fromEntries(settings), CATCHWORD_SINK_WEBHOOK_SECRET: 'id:secret' };
  const { stdout } = await runHere(['doctor', '--json'], env, temporaryDirectory());
  const checks = (JSON.parse(stdout) as readonly { readonly check: string; readonly text: string }[]).filter(
    ({ check }) => check === 'sink',
  );
  expect(checks.map(({ text }) => text)).toEqual(
    checks.map(() => expect.stringMatching(/: no answer within 10 s$/) as string),
  );
  expect(checks).toHaveLength(5);
});
