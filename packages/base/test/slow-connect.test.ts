import { once } from 'node:events';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import { systemClock } from '@catchword/base/clock';
import { httpConnector } from '@catchword/base/http-connector';
import { Agent, request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';

/** Listens, but accepts nothing until it may go on. Then the system completes a connection when it tries again, after a second. */
const BUSY_SERVER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const server = require('node:http').createServer((_, response) => response.end('ok'));
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    parentPort.postMessage(server.address().port);
    Atomics.wait(workerData, 0, 0);
  });`;

/** An address of IPv6 that is for documents only: it fails at once, without a route, or does not answer. */
const NOWHERE = { address: '2001:db8::1', family: 6 };
const HERE = { address: '127.0.0.1', family: 4 };

it.each([
  ['first', [NOWHERE, HERE]],
  ['last', [HERE, NOWHERE]],
])(
  'httpConnector waits for a slow host whose address of IPv6 leads nowhere and comes %s',
  {
    tags: ['slow'],
  },
  async (_where, addresses) => {
    const mayGoOn = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(BUSY_SERVER, { eval: true, workerData: mayGoOn });
    onTestFinished(async () => void (await worker.terminate()));
    const [port] = (await once(worker, 'message')) as [number];
    // They fill the queue of connections that are not accepted yet.
    const fillers = Array.from({ length: 4 }, () => connect(port, HERE.address).on('error', () => {}));
    onTestFinished(() => {
      for (const filler of fillers) filler.destroy();
    });
    await Promise.all(fillers.slice(0, 2).map((filler) => once(filler, 'connect')));
    const agent = new Agent({ connect: httpConnector({ lookup: (_host, _options, found) => found(null, addresses) }) });
    onTestFinished(() => agent.destroy());
    const answer = request(`http://two-addresses.example:${port}`, { dispatcher: agent });
    answer.catch(() => {});
    await systemClock.sleep(400);
    Atomics.store(mayGoOn, 0, 1);
    Atomics.notify(mayGoOn, 0);
    expect(await (await answer).body.text()).toBe('ok');
  },
);
