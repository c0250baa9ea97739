import { expect, it, onTestFinished } from 'vitest';
import { openHarness, until } from '../../src/relay/contract/harness.ts';
import type { Mark } from '../../src/relay/sink.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { serveEngine } from './engine.ts';
import { createKafka } from './fake-kafka.ts';

const START: Mark = { incarnation: 'mirror-1', generation: 1, cursor: 0, at: 0, late: 0 };

async function serve(change = (url: string): string => url) {
  const broker = createKafka();
  const served = await serveEngine(broker);
  onTestFinished(() => served.remove());
  const configOf = (secret?: string) => sinkConfig({ env: 'SINK', name: 'contract', url: change(served.url), secret });
  return { broker, served, configOf, config: configOf(served.secret) };
}

function harnessOf() {
  const harness = openHarness();
  onTestFinished(() => harness.close());
  return harness;
}

const event = (seq: number) =>
  ({
    id: `${seq}`,
    seq,
    at: seq,
    op: 'updated',
    vbid: 'P',
    body: `{"vbid":"P","seq":${seq}}`,
    text: `{"id":${seq}}`,
  }) as const;

it('the example for kafka parks an event that is larger than a broker takes', async () => {
  const { broker, config } = await serve();
  const harness = harnessOf();
  harness.start(config);
  const large = { vbid: 'LARGE', body: JSON.stringify({ vbid: 'LARGE', text: 'x'.repeat(1_100_000) }) };
  await harness.deliver([large, ...['A', 'B'].map((vbid) => ({ vbid, body: JSON.stringify({ vbid }) }))]);
  expect([...broker.products().keys()]).toEqual(['A', 'B']);
  const parked = harness.store.sinks.parked(harness.sink().id).map(({ vbid, reason }) => [vbid, reason]);
  expect(parked).toEqual([['LARGE', 'Kafka failed with MESSAGE_TOO_LARGE']]);
});

it('the example for kafka writes no value for a removed product, if messages are products', async () => {
  const { broker, config } = await serve((url) => `${url}&values=products`);
  const harness = harnessOf();
  harness.start(config);
  await harness.deliver([{ vbid: 'A', body: '{"vbid":"A"}' }]);
  await harness.deliver([{ vbid: 'A', body: null }]);
  expect(broker.committed().map(({ key, value }) => [key, value])).toEqual([
    ['A', '{"vbid":"A"}'],
    ['A', null],
  ]);
});

it.each([
  ['a wrong secret', (url: string) => url, 'shop:Qzx4711Wkv', 'SASL_AUTHENTICATION_FAILED'],
  [
    'a topic that is missing',
    (url: string) => url.replace('topic=products', 'topic=produts'),
    'shop:pass:word',
    'UNKNOWN_TOPIC_OR_PARTITION',
  ],
])('the example for kafka names %s as a matter of settings', async (_, change, secret, type) => {
  const { configOf } = await serve(change);
  const sink = await configOf(secret).make();
  const signal = AbortSignal.timeout(10_000);
  const expected = { failure: 'misconfigured', message: `Kafka failed with ${type}` };
  await expect(sink.open(START, 0, signal)).rejects.toMatchObject(expected);
  await expect(sink.check(signal)).rejects.toMatchObject(expected);
  await sink.close();
});

it('the example for kafka fences a relay that wakes after another one took over', async () => {
  const { broker, config } = await serve();
  const [frozen, next] = [await config.make(), await config.make()];
  const signal = AbortSignal.timeout(10_000);
  await frozen.open(START, 0, signal);
  await frozen.deliver([event(1)], { ...START, cursor: 1 }, signal);
  expect(await next.open(START, 0, signal)).toEqual({ ...START, cursor: 1 });
  await next.deliver([event(2)], { ...START, cursor: 2 }, signal);
  await expect(frozen.deliver([event(2)], { ...START, cursor: 2 }, signal)).rejects.toMatchObject({
    failure: 'unavailable',
    message: 'Kafka failed with INVALID_PRODUCER_EPOCH',
  });
  expect(broker.committed().map(({ value }) => value)).toEqual(['{"id":1}', '{"id":2}']);
});

it('the example for kafka shows nothing of a transaction whose end is not known, and sends it again', async () => {
  const { broker, served, config } = await serve();
  const harness = harnessOf();
  harness.start(config);
  await harness.deliver([{ vbid: 'A', body: '{"vbid":"A"}' }]);
  let hasFailed = false;
  served.interfere(({ path, body }) => {
    if (hasFailed || path[0] !== 'end' || !body.includes('"commit":true')) return null;
    hasFailed = true;
    return { status: 200, body: { type: 'REQUEST_TIMED_OUT' } };
  });
  harness.change([{ vbid: 'B', body: '{"vbid":"B"}' }]);
  await until('the transaction fails', () => hasFailed);
  await harness.caughtUp();
  expect(broker.received().seqs).toEqual([1, 2]);
});

it('the example for kafka stops for another mirror', async () => {
  const { config } = await serve();
  const former = harnessOf();
  former.start(config);
  await former.deliver([{ vbid: 'A', body: '{"vbid":"A"}' }]);
  await former.stop();
  const harness = harnessOf();
  harness.start(config);
  await until('the sink stops', () => harness.store.sinks.get('contract')?.state === 'stopped');
});
