import { lookup } from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { isPublic } from '../../src/public-address.ts';
import { until } from '../../src/relay/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { lookupPublic } from '../../src/relay/sinks/public-address.ts';
import { books, feeding } from './feeding.ts';
import { type Reply, webhookTarget } from './targets.ts';

const ok = { status: 204 } as const;

function config(url: string, secret?: string) {
  return sinkConfig({ env: 'CATCHWORD_SINK_HOOK', name: 'hook', url, secret });
}

async function answering(reply: Reply, options = '') {
  return await feeding(webhookTarget(reply, options));
}

it('posts signed batches of CloudEvents', async () => {
  const { bench, target, config: sink } = await feeding(webhookTarget(undefined, '&batch=4'));
  bench.change(books(10, 1));
  bench.start(sink);
  await bench.caughtUp();
  // The receiver checks each signature with the library of the standard.
  expect(target.events.map(({ sequence }) => Number(sequence))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(target.requests).toHaveLength(3);
  expect(new Set(target.requests.map(({ id }) => id)).size).toBe(3);
});

it('repeats a batch under the same id', async () => {
  const { bench, target, config: sink } = await answering((number) => (number === 1 ? { status: 500 } : ok));
  bench.change(books(3, 1));
  bench.start(sink);
  await bench.caughtUp();
  expect(target.requests.map(({ id }) => id)).toEqual([target.requests[0]?.id, target.requests[0]?.id]);
});

it('waits as long as it is told to, unless it is resumed', async () => {
  const { bench, config: sink } = await answering((number) =>
    number === 1 ? { status: 503, headers: { 'retry-after': '3600' } } : ok,
  );
  bench.change(books(3, 1));
  bench.start(sink);
  await until('it waits', () => bench.store.sinks.get('contract')?.retryAt != null);
  const { errorAt, retryAt } = bench.sink();
  expect((retryAt ?? 0) - (errorAt ?? 0)).toBeGreaterThanOrEqual(3_600_000);
  bench.store.request(({ sinks }) => sinks.setState(bench.sink().id, 'running'));
  await bench.caughtUp();
});

it('takes the status for the confirmation, whatever becomes of the rest', async () => {
  let requests = 0;
  const dripping = createServer((request, response) => {
    requests++;
    request.resume();
    response.writeHead(200);
    const timer = setInterval(() => response.write('x'), 50);
    response.on('close', () => clearInterval(timer));
  }).listen(0, '127.0.0.1');
  await once(dripping, 'listening');
  onTestFinished(() => {
    dripping.closeAllConnections();
    dripping.close();
  });
  const { port } = dripping.address() as AddressInfo;
  const { bench } = await feeding(webhookTarget());
  bench.change(books(3, 1));
  const slow = config(`webhook+http://127.0.0.1:${port}/#allow=private`);
  bench.start({ ...slow, name: 'contract' });
  await bench.caughtUp();
  expect(requests).toBe(1);
});

it('stops where the receiver is gone', async () => {
  const { bench, target, config: sink } = await answering(() => ({ status: 410 }));
  bench.change(books(3, 1));
  bench.start(sink);
  await until('it stops', () => bench.store.sinks.get('contract')?.state === 'stopped');
  expect(bench.sink().error).toContain('410');
  expect(target.requests).toHaveLength(1);
});

it.each([301, 302, 307, 308])('follows no redirect (%i)', async (status) => {
  const elsewhere = await webhookTarget();
  const { bench, config: sink } = await answering(() => ({ status, headers: { location: elsewhere.url } }));
  bench.change(books(1, 1));
  bench.start(sink);
  await until('it fails', () => bench.store.sinks.get('contract')?.error != null);
  expect(bench.sink()).toMatchObject({ state: 'running', cursor: 0, error: expect.stringContaining(String(status)) });
  expect(elsewhere.requests).toHaveLength(0);
  await bench.stop();
  await elsewhere.remove();
});

/** Refuses every batch that holds the change `bad`. */
function refusing(bad: number): Reply {
  return (_number, batch) => (batch.some(({ sequence }) => Number(sequence) === bad) ? { status: 422 } : ok);
}

it('finds the event that is refused, parks it, and delivers the others', async () => {
  const { bench, target, config: sink } = await answering(refusing(37));
  bench.change(books(100, 1));
  bench.start(sink);
  await bench.caughtUp();
  const delivered = target.events.map(({ sequence }) => Number(sequence));
  expect(delivered).toEqual(Array.from({ length: 100 }, (_, index) => index + 1).filter((seq) => seq !== 37));
  expect(bench.store.sinks.parked(bench.sink().id)).toMatchObject([
    { seq: 37, state: 'refused', reason: 'the receiver answered 422' },
  ]);
  // Halving, not one by one.
  expect(target.requests.length).toBeLessThan(20);
});

it('stops before it with refused=stop, and goes on behind it when it is skipped', async () => {
  const { bench, target, config: sink } = await feeding(webhookTarget(refusing(2), '&refused=stop'));
  bench.change(books(5, 1));
  bench.start(sink);
  await until('it stops', () => bench.store.sinks.get('contract')?.state === 'stopped');
  expect(bench.sink()).toMatchObject({ cursor: 1, error: expect.stringContaining('event 2 of product P1') });
  expect(target.events.map(({ subject }) => subject)).toEqual(['P0']);
});

it('stops where everything is refused: then it is not the events', async () => {
  const { bench, config: sink } = await answering(() => ({ status: 400 }));
  bench.change(books(500, 1));
  bench.start(sink);
  await until('it stops', () => bench.store.sinks.get('contract')?.state === 'stopped');
  expect(bench.sink().error).toContain('20 events in a row');
  expect(bench.store.sinks.parked(bench.sink().id).length).toBeLessThan(20);
});

it.each([
  ['127.0.0.1', false],
  ['10.1.2.3', false],
  ['172.16.0.1', false],
  ['192.168.1.1', false],
  ['169.254.169.254', false],
  ['100.64.0.1', false],
  ['0.0.0.0', false],
  ['224.0.0.1', false],
  ['::1', false],
  ['::', false],
  ['::10.0.0.1', false],
  ['::a00:1', false],
  ['fe80::1', false],
  ['fd00::1', false],
  ['::ffff:127.0.0.1', false],
  ['::ffff:10.0.0.1', false],
  ['64:ff9b::7f00:1', false],
  ['93.184.216.34', true],
  ['2606:2800:220:1:248:1893:25c8:1946', true],
])('%s is public: %s', (address, expected) => {
  expect(isPublic(address)).toBe(expected);
});

it.each([
  'https://127.0.0.1:1/',
  'https://[::1]:1/',
  'https://[::ffff:10.0.0.1]/',
  'https://0x7f.1/',
  'https://localhost:1/',
])('does not connect to %s', async (address) => {
  const sink = await config(`webhook+${address}`).make();
  await expect(sink.check(AbortSignal.timeout(5_000))).rejects.toThrow('is in the own network');
  await sink.close();
});

it('judges the address that is connected to, not one that was looked up before', async () => {
  const found = await new Promise<{ message: string }>((resolve) => {
    lookupPublic('localhost', {}, (error) => resolve(error ?? { message: 'connected' }));
  });
  expect(found.message).toContain('localhost is in the own network');
  // The same call of the system knows the name, so it is not for that.
  const known = await new Promise((resolve) => lookup('localhost', (error) => resolve(error)));
  expect(known).toBeNull();
});

it('takes no unencrypted address outside the own network, no bad secret, no unknown option', async () => {
  await expect(config('webhook+http://shop.example/').make()).rejects.toThrow('own network only');
  await expect(config('webhook+https://shop.example/', 'whsec_').make()).rejects.toThrow(
    'CATCHWORD_SINK_HOOK: its secret',
  );
  await expect(config('webhook+https://shop.example/#batc=3').make()).rejects.toThrow(
    'its address has an option that is not known',
  );
  await expect(config('webhook+https://u:p@shop.example/').make()).rejects.toThrow('no user name or password');
  await expect(config('webhook+https://shop.example/#batch=0').make()).rejects.toThrow(
    'batch has a value that cannot be used',
  );
});
