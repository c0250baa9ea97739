import { lookup } from 'node:dns';
import { createServer } from 'node:http';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { isPublic, publicLookup } from '../../src/base/public-address.ts';
import { until } from '../../src/relay/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { listen } from '../support/listen.ts';
import { books, failed, feeding, numbers, stopped } from './feeding.ts';
import { type Reply, webhookTarget } from './targets.ts';

const ok = { status: 204 } as const;

function config(url: string, secret?: string) {
  return sinkConfig({ env: 'CATCHWORD_SINK_HOOK', name: 'hook', url, secret });
}

async function answering(reply: Reply, options = '') {
  return await feeding(webhookTarget(reply, options));
}

it('posts signed batches of CloudEvents', async () => {
  const { harness, target, config: sink } = await feeding(webhookTarget(undefined, '&batch=4'));
  harness.change(books(10, 1));
  harness.start(sink);
  await harness.caughtUp();
  // The receiver verifies each signature.
  expect(target.events.map(({ sequence }) => Number(sequence))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(target.requests).toHaveLength(3);
  expect(new Set(target.requests.map(({ id }) => id)).size).toBe(3);
});

it('retries a batch with the same id', async () => {
  const { harness, target, config: sink } = await answering((number) => (number === 1 ? { status: 500 } : ok));
  harness.change(books(3, 1));
  harness.start(sink);
  await harness.caughtUp();
  expect(target.requests.map(({ id }) => id)).toEqual([target.requests[0]?.id, target.requests[0]?.id]);
});

it('waits as long as the receiver asks, unless the sink is resumed', async () => {
  const { harness, config: sink } = await answering((number) =>
    number === 1 ? { status: 503, headers: { 'retry-after': '3600' } } : ok,
  );
  harness.change(books(3, 1));
  harness.start(sink);
  await until('it waits', () => harness.store.sinks.get('contract')?.retryAt != null);
  const { errorAt, retryAt } = harness.sink();
  expect((retryAt ?? 0) - (errorAt ?? 0)).toBeGreaterThanOrEqual(3_600_000);
  harness.store.request(({ sinks }) => sinks.setState(harness.sink().id, 'running'));
  await harness.caughtUp();
});

it('waits for a day at most, however long the receiver asks', async () => {
  const { harness, config: sink } = await answering(() => ({ status: 503, headers: { 'retry-after': '99999999999' } }));
  harness.change(books(3, 1));
  harness.start(sink);
  await until('it waits', () => harness.store.sinks.get('contract')?.retryAt != null);
  const { errorAt, retryAt } = harness.sink();
  expect((retryAt ?? 0) - (errorAt ?? 0)).toBe(86_400_000);
});

it('takes the status as confirmation, whatever the body does', async () => {
  let requests = 0;
  const dripping = createServer((request, response) => {
    requests++;
    request.resume();
    response.writeHead(200);
    const timer = setInterval(() => response.write('x'), 50);
    response.on('close', () => clearInterval(timer));
  });
  const port = await listen(dripping);
  const { harness } = await feeding(webhookTarget());
  harness.change(books(3, 1));
  const slow = config(`webhook+http://127.0.0.1:${port}/#allow=private`);
  harness.start({ ...slow, name: 'contract' });
  await harness.caughtUp();
  expect(requests).toBe(1);
});

it('stops if the receiver is gone', async () => {
  const { harness, target, config: sink } = await answering(() => ({ status: 410 }));
  harness.change(books(3, 1));
  harness.start(sink);
  await stopped(harness);
  expect(harness.sink().error).toContain('410');
  expect(target.requests).toHaveLength(1);
});

it.each([301, 302, 307, 308])('does not follow a redirect (%i)', async (status) => {
  const elsewhere = await webhookTarget();
  const { harness, config: sink } = await answering(() => ({ status, headers: { location: elsewhere.url } }));
  harness.change(books(1, 1));
  harness.start(sink);
  await failed(harness);
  expect(harness.sink()).toMatchObject({ state: 'running', cursor: 0, error: expect.stringContaining(String(status)) });
  expect(elsewhere.requests).toHaveLength(0);
  await harness.stop();
  await elsewhere.remove();
});

/** Refuses every batch that contains the change `bad`. */
function refusing(bad: number): Reply {
  return (_number, batch) => (batch.some(({ sequence }) => Number(sequence) === bad) ? { status: 422 } : ok);
}

it('finds the refused event, parks it, and delivers the others', async () => {
  const { harness, target, config: sink } = await answering(refusing(37));
  harness.change(books(100, 1));
  harness.start(sink);
  await harness.caughtUp();
  const delivered = target.events.map(({ sequence }) => Number(sequence));
  expect(delivered).toEqual(numbers(1, 100).filter((seq) => seq !== 37));
  expect(harness.store.sinks.parked(harness.sink().id)).toMatchObject([
    { seq: 37, state: 'refused', reason: 'the receiver answered 422' },
  ]);
  // Batches are halved; events are not sent one by one.
  expect(target.requests.length).toBeLessThan(20);
});

it('parks the refused one of two events that fill a batch', async () => {
  const batches: number[] = [];
  const reply: Reply = (number, batch) => {
    batches.push(batch.length);
    return refusing(2)(number, batch);
  };
  const { harness, target, config: sink } = await answering(reply);
  // Together, their texts have a little less than the 4,000,000 characters of a batch.
  const products = ['P0', 'P1'].map((vbid) => {
    const body = JSON.stringify({ vbid, text: '' });
    return { vbid, body: JSON.stringify({ vbid, text: 'x'.repeat(1_999_610 - body.length) }) };
  });
  harness.change(products);
  harness.start(sink);
  await harness.caughtUp();
  expect(batches[0]).toBe(2);
  expect(target.events.map(({ subject }) => subject)).toEqual(['P0']);
  expect(harness.store.sinks.parked(harness.sink().id)).toMatchObject([{ seq: 2, state: 'refused' }]);
});

it('stops before a refused event with refused=stop', async () => {
  const { harness, target, config: sink } = await feeding(webhookTarget(refusing(2), '&refused=stop'));
  harness.change(books(5, 1));
  harness.start(sink);
  await stopped(harness);
  expect(harness.sink()).toMatchObject({ cursor: 1, error: expect.stringContaining('event 2 of product P1') });
  expect(target.events.map(({ subject }) => subject)).toEqual(['P0']);
});

it('stops if every event is refused', async () => {
  const { harness, config: sink } = await answering(() => ({ status: 400 }));
  harness.change(books(500, 1));
  harness.start(sink);
  await stopped(harness);
  expect(harness.sink().error).toContain('20 events in a row');
  expect(harness.store.sinks.parked(harness.sink().id).length).toBeLessThan(20);
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
  await expect(sink.check(AbortSignal.timeout(5_000))).rejects.toThrow('is a private address');
  await sink.close();
});

it('judges the address that the socket connects to', async () => {
  const found = await new Promise<{ message: string }>((resolve) => {
    const check = publicLookup((host) => new Error(`${host} is private`));
    check('localhost', {}, (error) => resolve(error ?? { message: 'connected' }));
  });
  expect(found.message).toContain('localhost is private');
  // The system itself resolves the name.
  const known = await new Promise((resolve) => lookup('localhost', (error) => resolve(error)));
  expect(known).toBeNull();
});

it('rejects http without allow=private, an invalid secret, credentials and invalid options', async () => {
  await expect(config('webhook+http://shop.example/').make()).rejects.toThrow('private addresses only');
  await expect(config('webhook+https://shop.example/', 'whsec_').make()).rejects.toThrow(
    'CATCHWORD_SINK_HOOK: its secret',
  );
  await expect(config('webhook+https://shop.example/#batc=3').make()).rejects.toThrow(
    'the address has an unknown option',
  );
  await expect(config('webhook+https://u:p@shop.example/').make()).rejects.toThrow('contains a user name or password');
  await expect(config('webhook+https://shop.example/#batch=0').make()).rejects.toThrow(
    'the value of batch is not valid',
  );
});

it('accepts the secrets that the library of Standard Webhooks accepts', async () => {
  const secret = fc.stringMatching(/^(whsec_)?[A-Za-z0-9+/]{0,40}={0,4}$/);
  await fc.assert(
    fc.asyncProperty(secret, async (given) => {
      const made = config('webhook+https://shop.example/', given).make();
      const isAccepted = await made.then(
        () => true,
        () => false,
      );
      let isKnown = true;
      try {
        new Webhook(given);
      } catch {
        isKnown = false;
      }
      expect(isAccepted).toBe(isKnown);
    }),
    { numRuns: 300 },
  );
});
