import { isSinkError, type Mark } from '@catchword/sink-kit/sink';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openHarness, until, type Version } from '../../src/contract/harness.ts';
import { sinkConfig } from '../../src/relay/sink-config.ts';
import { serveEngine } from './engine.ts';
import { createOpenSearch } from './fake-opensearch.ts';

/* Of the examples for engines, this one is tested when things go wrong; all of them pass the contract (engines.test.ts). */

/** Whether a request writes products. */
const isWrite = (path: readonly string[]): boolean => path.join('/') === 'products/_bulk';

const START: Mark = { incarnation: 'mirror-1', generation: 1, cursor: 0, at: 0, late: 0 };

const book = (vbid: string, more: object = {}): Version => ({ vbid, body: JSON.stringify({ vbid, ...more }) });
const books = (from: number, to: number): Version[] =>
  Array.from({ length: to - from }, (_, index) => book(`P${from + index}`));

const configOf = (url: string, secret: string | undefined) =>
  sinkConfig({ env: 'SINK', name: 'contract', url, secret });

async function serve() {
  const engine = createOpenSearch();
  const served = await serveEngine(engine);
  onTestFinished(() => served.remove());
  return { engine, served, config: configOf(served.url, served.secret) };
}

function harnessOf() {
  const harness = openHarness();
  onTestFinished(() => harness.close());
  return harness;
}

/** Opens a sink and delivers nothing. @returns what it failed with, and the text that is shown */
async function failureOf(url: string, secret: string | undefined) {
  const config = configOf(url, secret);
  const sink = await config.make();
  const error = await sink.open(START, 0, AbortSignal.timeout(10_000)).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  await sink.close();
  return { failure: isSinkError(error) ? error.failure : null, text: config.errorText(error) };
}

/** Keys that engines or their addresses might merge or refuse. */
const KEYS = ['a', 'A', 'a ', 'é', 'e\u0301', '📚', '_61', '.', '..', 'a/b', '%61', 'x'.repeat(255), '本'.repeat(255)];

describe('the example for opensearch when things go wrong', () => {
  it('keeps keys apart that look alike, and removes each', async () => {
    const { engine, config } = await serve();
    const harness = harnessOf();
    harness.start(config);
    await harness.deliver(KEYS.map((vbid) => book(vbid)));
    expect([...engine.products().keys()].sort()).toEqual([...KEYS].sort());
    await harness.deliver(KEYS.slice(1).map((vbid) => ({ vbid, body: null })));
    expect([...engine.products().keys()]).toEqual(['a']);
  });

  it('parks a document that the engine rejects, without its value, and stores the others', async () => {
    const { engine, config } = await serve();
    const harness = harnessOf();
    harness.start(config);
    await harness.deliver([...books(0, 20), book('WRONG', { price: 'Wkv8642' }), ...books(20, 40)]);
    expect(engine.products().size).toBe(40);
    const parked = harness.store.sinks.parked(harness.sink().id);
    expect(parked.map(({ vbid, state }) => [vbid, state])).toEqual([['WRONG', 'refused']]);
    expect(parked[0]?.reason).not.toContain('Wkv8642');
  });

  it('sends smaller parts of what is too large, and parks a single one', async () => {
    const { engine, served, config } = await serve();
    served.interfere(({ body }) => (body.length > 5_000 ? { status: 413, body: 'too large' } : null));
    const harness = harnessOf();
    harness.start(config);
    await harness.deliver([...books(0, 100), book('LARGE', { text: 'x'.repeat(6_000) }), ...books(100, 200)]);
    expect(engine.products().size).toBe(200);
    expect(harness.store.sinks.parked(harness.sink().id).map(({ vbid }) => vbid)).toEqual(['LARGE']);
  });

  it.each([429, 500, 503])('sends again what was answered with %i', async (status) => {
    const { engine, served, config } = await serve();
    let times = 0;
    served.interfere(({ path }) => (isWrite(path) && ++times <= 2 ? { status, body: {} } : null));
    const harness = harnessOf();
    harness.start(config);
    await harness.deliver(books(0, 10));
    expect(engine.products().size).toBe(10);
    expect(times).toBeGreaterThan(2);
    expect(harness.store.sinks.parked(harness.sink().id)).toEqual([]);
  });

  it('quotes nothing of an answer that is not JSON', async () => {
    const { served, config } = await serve();
    const sink = await config.make();
    const signal = AbortSignal.timeout(10_000);
    await sink.open(START, 0, signal);
    served.interfere(({ path }) => (isWrite(path) ? { status: 200, body: '<html>Wkv8642' } : null));
    const event = { id: '1', seq: 1, at: 1, op: 'created', vbid: 'P', body: '{"vbid":"P"}', text: '' } as const;
    const error: unknown = await sink.deliver([event], { ...START, cursor: 1 }, signal).catch((thrown) => thrown);
    expect(error).toMatchObject({ failure: 'unavailable' });
    expect(config.errorText(error)).not.toContain('Wkv8642');
  });

  it('names a wrong secret as a matter of settings, and does not show it', async () => {
    const { served } = await serve();
    const secret = 'shop:Qzx4711Wkv';
    const { failure, text } = await failureOf(served.url, secret);
    expect(failure).toBe('misconfigured');
    expect(text).toMatch(/answered 40[13]/);
    expect(text).not.toContain('Qzx4711Wkv');
  });

  it('refuses an address with a password in it, and does not show it', async () => {
    const { served } = await serve();
    const config = configOf(served.url.replace('http://', 'http://shop:Qzx4711Wkv@'), undefined);
    const error = await config.make().catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/without user and password/);
    expect(String(error)).not.toContain('Qzx4711Wkv');
  });

  it('does not take an index whose documents it did not store', async () => {
    const { served, config } = await serve();
    const harness = harnessOf();
    harness.start(config);
    await harness.deliver(books(0, 3));
    await harness.stop();
    served.interfere(({ path }) =>
      path.join('/').includes('position') ? { status: 404, body: { found: false } } : null,
    );
    expect(await failureOf(served.url, served.secret)).toMatchObject({
      failure: 'misconfigured',
      text: expect.stringMatching(/has documents, but no position/) as string,
    });
  });

  it('fills an index that was deleted and created', async () => {
    const { engine, config } = await serve();
    const harness = harnessOf();
    harness.start(config);
    await harness.deliver(books(0, 30));
    await harness.stop();
    engine.renew('products');
    harness.start(config);
    await until('every product is there again', () => engine.products().size === 30);
    await harness.deliver(books(30, 35));
    expect(engine.products()).toEqual(harness.living());
  });

  it('stops for another mirror, and is taken over by a replay that removes what that one had', async () => {
    const { engine, config } = await serve();
    const former = harnessOf();
    former.start(config);
    await former.deliver(books(0, 1_200));
    await former.deliver([{ vbid: 'P1', body: null }]);
    await former.stop();
    const harness = harnessOf();
    harness.change([...books(1_000, 1_100).map(({ vbid }) => book(vbid, { of: 'another' })), book('P1')]);
    harness.start(config);
    await until('the sink stops', () => harness.store.sinks.get('contract')?.state === 'stopped');
    expect(engine.products().size).toBe(1_199);
    harness.store.request(({ sinks }) => {
      sinks.replay(harness.sink(), null);
      sinks.setState(harness.sink().id, 'running');
    });
    await until('the sink has what the mirror has', () => engine.products().size === 101);
    expect(engine.products()).toEqual(harness.living());
  });

  it('names an index that is missing', async () => {
    const { served } = await serve();
    const { failure, text } = await failureOf(served.url.replace('=products', '=produts'), served.secret);
    expect(failure).toBe('misconfigured');
    expect(text).toContain('produts');
  });

  it('tells doctor what it found, and whose it is', async () => {
    const { served, config } = await serve();
    const harness = harnessOf();
    harness.start(config);
    await harness.deliver(books(0, 3));
    // Its last request may arrive after the relay has stopped.
    await harness.until('the fill has ended', () => harness.sink().fillEnd !== null);
    await harness.stop();
    const writes = served.asked.length;
    const sink = await config.make();
    const found: unknown[] = [];
    expect(await sink.check(AbortSignal.timeout(10_000), (mark) => found.push(mark))).toMatch(/^products exists/);
    expect(found).toMatchObject([{ cursor: 3, generation: 1 }]);
    expect(served.asked.slice(writes).map(({ method }) => method)).not.toContain('POST');
  });
});

it('the example for opensearch fails if another relay has moved the position, and leaves newer documents', async () => {
  const { engine, served } = await serve();
  const [frozen, next] = await Promise.all([0, 1].map(() => configOf(served.url, served.secret).make()));
  if (frozen === undefined || next === undefined) throw new Error('no sinks');
  const signal = AbortSignal.timeout(10_000);
  const event = (seq: number) => {
    const body = JSON.stringify({ vbid: 'P', seq });
    return { id: `${seq}`, seq, at: seq, op: 'updated', vbid: 'P', body, text: '' } as const;
  };
  await frozen.open(START, 0, signal);
  await frozen.deliver([event(1)], { ...START, cursor: 1 }, signal);
  expect(await next.open(START, 0, signal)).toMatchObject({ cursor: 1 });
  await next.deliver([event(2), event(3)], { ...START, cursor: 3 }, signal);
  await expect(frozen.deliver([event(2)], { ...START, cursor: 2 }, signal)).rejects.toMatchObject({
    failure: 'unavailable',
    message: expect.stringContaining('409') as string,
  });
  expect(engine.products()).toEqual(new Map([['P', { vbid: 'P', seq: 3 }]]));
});
