// @module-tag slow
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { systemClock } from '@catchword/base/clock';
import { makeSigned } from '@catchword/testing/certificate';
import { natsAvailable, startNats } from '@catchword/testing/nats';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { start } from '../support/cli.ts';
import { ADDRESSES } from './addresses.ts';

/** Listens, but accepts nothing until it may go on; then posts the port of each connection, and ends it. */
const BUSY_SERVER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:net').createServer((socket) => {
    parentPort.postMessage(socket.remotePort);
    socket.on('error', () => {}).end('-ERR reached\\r\\n');
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    Atomics.wait(workerData, 0, 0);
  });`;

/** Listens, but accepts nothing. */
const SILENT_SERVER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:net').createServer();
  server.listen({ port: workerData, host: '127.0.0.2', backlog: 1 }, () => {
    parentPort.postMessage('listens');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;

/** Gives each name this machine, and an address that leads nowhere: Node.js tries the last one without a limit. */
const RESOLVER = `
  import dns from 'node:dns';
  dns.lookup = (host, options, found) => {
    process.stderr.write('looked up ' + host);
    found(null, [{ address: '127.0.0.1', family: 4 }, { address: '2001:db8::1', family: 6 }]);
  };`;

it.each(['postgres', 'mysql', 'redis'] as const)(
  'doctor reaches a slow store of %s whose address of IPv6 leads nowhere',
  async (kind) => {
    const mayGoOn = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(BUSY_SERVER, { eval: true, workerData: mayGoOn });
    onTestFinished(async () => void (await worker.terminate()));
    const [port] = (await once(worker, 'message')) as [number];
    // They fill the queue of connections that are not accepted yet.
    const fillers = Array.from({ length: 4 }, () => connect(port, '127.0.0.1').on('error', () => {}));
    await Promise.all(fillers.slice(0, 2).map((filler) => once(filler, 'connect')));
    const own = new Set(fillers.map(({ localPort }) => localPort));
    const reached: number[] = [];
    worker.on('message', (from: number) => own.has(from) || reached.push(from));
    const directory = temporaryDirectory();
    const resolver = join(directory, 'resolver.mjs');
    writeFileSync(resolver, RESOLVER);
    const url = ADDRESSES[kind](port).replace('127.0.0.1', 'two-addresses.example');
    const settings = {
      NODE_OPTIONS: `--import=${resolver}`,
      CATCHWORD_BASE_URL: 'http://127.0.0.1:1',
      CATCHWORD_SINK_SHOP: url,
      LOG_LEVEL: 'silent',
    };
    const doctor = start(['doctor'], settings, directory);
    await doctor.shows('looked up two-addresses.example');
    for (const filler of fillers) filler.destroy();
    await systemClock.sleep(400);
    Atomics.store(mayGoOn, 0, 1);
    Atomics.notify(mayGoOn, 0);
    const { stdout } = await doctor.ended;
    expect(reached.length, stdout).toBeGreaterThan(0);
  },
);

it.skipIf(!natsAvailable)('doctor reaches a NATS server whose first address does not answer', async () => {
  const directory = temporaryDirectory();
  const certificate = await makeSigned(directory, 'DNS:two-addresses.example');
  const server = await startNats({ certificate });
  onTestFinished(() => server.stop());
  const { port } = server;
  const worker = new Worker(SILENT_SERVER, { eval: true, workerData: port });
  onTestFinished(async () => void (await worker.terminate()));
  await once(worker, 'message');
  const fillers = Array.from({ length: 4 }, () => connect(port, '127.0.0.2').on('error', () => {}));
  onTestFinished(() => {
    for (const filler of fillers) filler.destroy();
  });
  await Promise.all(fillers.slice(0, 2).map((filler) => once(filler, 'connect')));
  const resolver = join(directory, 'resolver.mjs');
  // The driver of NATS puts addresses in an order by chance, if it looks them up itself.
  const found = RESOLVER.replace('127.0.0.1', '127.0.0.2')
    .replace('2001:db8::1', '127.0.0.1')
    .replace('family: 6', 'family: 4');
  writeFileSync(resolver, `${found}; Math.random = () => 0.9;`);
  const settings = {
    NODE_OPTIONS: `--import=${resolver}`,
    CATCHWORD_BASE_URL: 'http://127.0.0.1:1',
    NODE_EXTRA_CA_CERTS: certificate.ca,
    CATCHWORD_SINK_SHOP: `tls://two-addresses.example:${port}?subject=shop.books&stream=SHOP`,
  };
  const { stdout } = await start(['doctor'], settings, directory).ended;
  expect(stdout).toContain('stream SHOP does not exist; the first delivery creates it');
});
