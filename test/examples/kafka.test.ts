import type { Mark } from '@catchword/sink-kit/sink';
import { expect, it, onTestFinished } from 'vitest';
import { openHarness } from '../../src/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { serveEngine } from './engine.ts';
import { createKafka } from './fake-kafka.ts';

const START: Mark = { incarnation: 'mirror-1', generation: 1, cursor: 0, at: 0, late: 0 };

async function serve(change = (url: string): string => url) {
  const broker = createKafka();
  const served = await serveEngine(broker);
  onTestFinished(() => served.remove());
  const { secret } = served;
  return { broker, config: sinkConfig({ env: 'SINK', name: 'contract', url: change(served.url), secret }) };
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

it('the example for kafka writes no value for a removed product, if messages are products', async () => {
  const { broker, config } = await serve((url) => `${url}&values=products`);
  const harness = openHarness();
  onTestFinished(() => harness.close());
  harness.start(config);
  await harness.deliver([{ vbid: 'A', body: '{"vbid":"A"}' }]);
  await harness.deliver([{ vbid: 'A', body: null }]);
  expect(broker.committed().map(({ key, value }) => [key, value])).toEqual([
    ['A', '{"vbid":"A"}'],
    ['A', null],
  ]);
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
