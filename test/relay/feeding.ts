import { expect, onTestFinished } from 'vitest';
import type { Service } from '../../src/base/lifecycle.ts';
import { createLog } from '../../src/base/log.ts';
import type { SinkTarget } from '../../src/relay/contract/checks.ts';
import {
  type Harness,
  hastyClock,
  openHarness,
  SINK_NAME,
  until,
  type Version,
} from '../../src/relay/contract/harness.ts';
import { startRelay } from '../../src/relay/relay.ts';
import { type SinkConfig, sinkConfig } from '../../src/relay/sink-config.ts';
import type { Store } from '../../src/store/store.ts';

/** The configuration of the sink of these tests at an address. */
export function configAt(url: string, secret?: string): SinkConfig {
  return sinkConfig({ env: 'SINK', name: SINK_NAME, url, secret });
}

/** Prepares a temporary mirror and the configuration of a sink; both are removed at the end of the test. */
export async function feeding<T extends SinkTarget>(
  prepared: Promise<T>,
): Promise<{ harness: Harness; target: T; config: SinkConfig }> {
  const target = await prepared;
  const harness = openHarness();
  onTestFinished(async () => {
    await harness.close();
    await target.remove();
  });
  return { harness, target, config: configAt(target.url, target.secret) };
}

/** The same, with a sink that has got `count` products. */
export async function fed<T extends SinkTarget>(prepared: Promise<T>, count: number): ReturnType<typeof feeding<T>> {
  const scene = await feeding(prepared);
  scene.harness.start(scene.config);
  await scene.harness.deliver(books(count, 1));
  return scene;
}

/** Starts a relay in silence. */
export function relayOf(store: Store, sinks: readonly SinkConfig[]): Service {
  const source = 'http://service.example';
  return startRelay({ store, sinks, clock: hastyClock, log: createLog('silent'), source });
}

/** Changes products, starts a relay, and waits until the sink has confirmed everything. */
export function resume(harness: Harness, config: SinkConfig, versions: readonly Version[] = []): Promise<void> {
  harness.change(versions);
  harness.start(config);
  return harness.caughtUp();
}

export function books(count: number, version: number): Version[] {
  return Array.from({ length: count }, (_, index) => {
    const vbid = `P${index}`;
    return { vbid, body: JSON.stringify({ vbid, version }) };
  });
}

/** Real time that can be advanced. */
export function movable() {
  let aheadMs = 0;
  return {
    clock: { ...hastyClock, now: () => Date.now() + aheadMs },
    advance: (ms: number) => {
      aheadMs += ms;
    },
  };
}

export function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => index + from);
}

/** Does what `sink replay` does. */
export function replay({ store, sink }: Harness, from: number, backfill: boolean): void {
  store.request(({ sinks }) => sinks.replay(sink().id, from, backfill));
}

/** Does what `sink skip` does. */
export function skip({ store, sink }: Harness, seq: number): void {
  store.request(({ sinks }) => sinks.skip(sink().id, seq, 0));
}

export function failed({ store }: Harness): Promise<void> {
  return until('the failure is recorded', () => (store.sinks.get(SINK_NAME)?.error ?? null) !== null);
}

export function stopped({ store }: Harness): Promise<void> {
  return until('the sink stops', () => store.sinks.get(SINK_NAME)?.state === 'stopped');
}

/** Waits until the store has so many events, or exactly the ones with these numbers. */
export async function arrived({ read }: SinkTarget, expected: number | readonly number[]): Promise<void> {
  const count = typeof expected === 'number' ? expected : expected.length;
  await until(`${count} events are there`, async () => (await read().catch(() => null))?.seqs?.length === count);
  if (typeof expected !== 'number') expect((await read()).seqs).toEqual(expected);
}
