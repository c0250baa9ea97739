import { lookup } from 'node:dns';
import { createServer } from 'node:http';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { expect, it } from 'vitest';
import { isPublic, publicLookup } from '../../src/base/public-address.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { listen } from '../support/listen.ts';
import { books, feeding, numbers } from './feeding.ts';
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
  await harness.resume(sink, books(10, 1));
  // The receiver verifies each signature.
  expect(target.events.map(({ sequence }) => Number(sequence))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(target.requests).toHaveLength(3);
  expect(new Set(target.requests.map(({ id }) => id)).size).toBe(3);
});

it('retries a batch with the same id', async () => {
  const { harness, target, config: sink } = await answering((number) => (number === 1 ? { status: 500 } : ok));
  await harness.resume(sink, books(3, 1));
  expect(target.requests.map(({ id }) => id)).toEqual([target.requests[0]?.id, target.requests[0]?.id]);
});

it.each([
  ['3600', 3_600_000],
  ['99999999999', 86_400_000],
])('waits the %s seconds that the receiver asks for, a day at most, unless the sink is resumed', async (asked, ms) => {
  const { harness, config: sink } = await answering((number) =>
    number === 1 ? { status: 503, headers: { 'retry-after': asked } } : ok,
  );
  harness.change(books(3, 1));
  await harness.failed(sink);
  const { errorAt, retryAt } = harness.sink();
  expect((retryAt ?? 0) - (errorAt ?? 0)).toBe(ms);
  harness.store.request(({ sinks }) => sinks.setState(harness.sink().id, 'running'));
  await harness.caughtUp();
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
  await harness.stopped(sink);
  expect(harness.sink().error).toContain('410');
  expect(target.requests).toHaveLength(1);
});

it.each([301, 302, 307, 308])('a webhook does not follow a redirect (%i)', async (status) => {
  const elsewhere = await webhookTarget();
  const { harness, config: sink } = await answering(() => ({ status, headers: { location: elsewhere.url } }));
  harness.change(books(1, 1));
  await harness.failed(sink);
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
  await harness.resume(sink, books(100, 1));
  const delivered = target.events.map(({ sequence }) => Number(sequence));
  expect(delivered).toEqual(numbers(1, 100).filter((seq) => seq !== 37));
  expect(harness.parked()).toMatchObject([{ seq: 37, state: 'refused', reason: 'the receiver answered 422' }]);
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
  await harness.resume(sink, products);
  expect(batches[0]).toBe(2);
  expect(target.events.map(({ subject }) => subject)).toEqual(['P0']);
  expect(harness.parked()).toMatchObject([{ seq: 2, state: 'refused' }]);
});

it('stops before a refused event with refused=stop', async () => {
  const { harness, target, config: sink } = await feeding(webhookTarget(refusing(2), '&refused=stop'));
  harness.change(books(5, 1));
  await harness.stopped(sink);
  expect(harness.sink()).toMatchObject({ cursor: 1, error: expect.stringContaining('event 2 of product P1') });
  expect(target.events.map(({ subject }) => subject)).toEqual(['P0']);
});

it('stops if every event is refused', async () => {
  const { harness, config: sink } = await answering(() => ({ status: 400 }));
  harness.change(books(500, 1));
  await harness.stopped(sink);
  expect(harness.sink().error).toContain('20 events in a row');
  expect(harness.store.sinks.parked(harness.sink().id).length).toBeLessThan(20);
});

it('an address is public unless it is loopback, private, link-local or otherwise special', () => {
  const v4 = '127.0.0.1 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1'.split(' ');
  const v6 = '::1 :: ::10.0.0.1 ::a00:1 fe80::1 fd00::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::7f00:1'.split(' ');
  expect([...v4, ...v6].filter(isPublic)).toEqual([]);
  expect(['93.184.216.34', '2606:2800:220:1:248:1893:25c8:1946'].map(isPublic)).toEqual([true, true]);
});

it.each([
  'https://127.0.0.1:1/',
  'https://[::1]:1/',
  'https://[::ffff:10.0.0.1]/',
  'https://0x7f.1/',
  'https://localhost:1/',
])('a webhook does not connect to %s', async (address) => {
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
