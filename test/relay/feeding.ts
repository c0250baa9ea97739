import type { Service } from '@catchword/base/lifecycle';
import { createLog } from '@catchword/base/log';
import type { SinkSetting } from '@catchword/settings/config';
import { feederName } from '@catchword/sink-kit/stored-mark';
import { expect, onTestFinished } from 'vitest';
import type { SinkTarget } from '../../src/contract/checks.ts';
import { hastyClock, openHarness, SINK_NAME, until, type Version } from '../../src/contract/harness.ts';
import { startRelay } from '../../src/relay/relay.ts';
import { type SinkConfig, sinkConfig } from '../../src/relay/sink-config.ts';
import { writeUnder } from '../../src/store/schema/lease.ts';
import type { Store } from '../../src/store/store.ts';

/** The configuration of the sink of these tests at an address. */
export function configAt(url: string, secret?: string, view: Pick<SinkSetting, 'where' | 'fields'> = {}): SinkConfig {
  return sinkConfig({ env: 'SINK', name: SINK_NAME, url, secret, ...view });
}

/** Names the sink of a harness as the mark of its store does. */
export function feederAt({ store, sink }: Pick<TestMirror, 'store' | 'sink'>): string {
  return feederName(store.incarnation, sink().id, true);
}

/** The signal of a call that is not cut short. */
export const NEVER = new AbortController().signal;

export type TestMirror = ReturnType<typeof temporaryMirror>;

/** Prepares a mirror that is removed at the end of the test. */
export function temporaryMirror(options?: Parameters<typeof openHarness>[0]) {
  const harness = openHarness(options);
  onTestFinished(() => harness.close());
  const { store, sink, start } = harness;

  function startAt(config: SinkConfig | undefined): void {
    if (config !== undefined) start(config);
  }

  return {
    ...harness,
    parked: () => store.sinks.parked(sink().id),
    /** Does what `sink replay` does. */
    replay: (from: number, backfill: boolean): void =>
      store.request(({ sinks }) => sinks.replay(sink(), backfill ? null : from)),
    /** Parks an event as the relay does when a sink refuses it. */
    refuse: (seq: number, name = SINK_NAME): void => {
      const [change] = harness.events(seq - 1);
      if (change === undefined) throw new Error(`event ${seq} does not exist`);
      const { id } = store.sinks.get(name) ?? { id: 0 };
      writeUnder(store.relayLease, Date.now(), ({ sinks }) => sinks.park(id, { seq, reason: 'poison', at: 0, change }));
    },
    /** Does what `sink skip` does. */
    skip: (seq: number): void => store.request(({ sinks }) => sinks.skip(sink().id, seq, 0)),
    /** Does what the hints of a stopped sink say: `sink replay`, then `sink resume`. */
    takeOver: (): void =>
      store.request(({ sinks }) => {
        sinks.replay(sink(), null);
        sinks.setState(sink().id, 'running');
      }),
    /** Changes products, starts a relay, and waits until the sink has confirmed everything. */
    resume: (config: SinkConfig, versions: readonly Version[] = []): Promise<void> => {
      harness.change(versions);
      start(config);
      return harness.caughtUp();
    },
    /** Waits until the sink has failed. @param config starts a relay before */
    failed: (config?: SinkConfig): Promise<void> => {
      startAt(config);
      return until('the failure is recorded', () => (store.sinks.get(SINK_NAME)?.error ?? null) !== null);
    },
    /** Waits until the sink is stopped. @param config starts a relay before */
    stopped: (config?: SinkConfig): Promise<void> => {
      startAt(config);
      return until('the sink stops', () => store.sinks.get(SINK_NAME)?.state === 'stopped');
    },
  };
}

/** Prepares a temporary mirror and the configuration of a sink; both are removed at the end of the test. */
export async function feeding<T extends SinkTarget>(
  prepared: Promise<T>,
): Promise<{ harness: TestMirror; target: T; config: SinkConfig }> {
  const target = await prepared;
  onTestFinished(() => target.remove());
  const harness = temporaryMirror();
  return { harness, target, config: configAt(target.url, target.secret) };
}

/** The same, with a sink that has got `count` products. */
export async function fed<T extends SinkTarget>(prepared: Promise<T>, count: number): ReturnType<typeof feeding<T>> {
  const scene = await feeding(prepared);
  scene.harness.start(scene.config);
  await scene.harness.deliver(books(count, 1));
  await fillEnded(scene.harness, scene.config);
  return scene;
}

/** Waits until the fill of a store has ended that can list and apply: what a test changes in it before then is put right. */
export async function fillEnded({ sink }: TestMirror, config: SinkConfig): Promise<void> {
  const store = await config.make();
  await store.close();
  if (store.apply !== undefined) await until('the fill has ended', () => sink().fillEnd !== null);
}

/** The same, but the relay has stopped. */
export async function fedBefore<T extends SinkTarget>(prepared: Promise<T>, count: number) {
  const scene = await fed(prepared, count);
  await scene.harness.stop();
  return scene;
}

/** Starts a relay in silence. */
export function relayOf(store: Store, sinks: readonly SinkConfig[]): Service {
  const source = 'http://service.example';
  const removalLimit = () => Number.POSITIVE_INFINITY;
  return startRelay({ store, sinks, clock: hastyClock, log: createLog('silent'), source, removalLimit });
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

/** Does what the hints of a stopped sink say, and waits until the sink fails again. */
export async function failsAgain(harness: TestMirror): Promise<void> {
  const before = harness.sink().errorAt;
  harness.takeOver();
  await until('it fails again', () => harness.sink().error !== null && harness.sink().errorAt !== before);
}

/** Waits until the store has so many events, or exactly the ones with these numbers. */
export async function arrived({ read }: SinkTarget, expected: number | readonly number[]): Promise<void> {
  const count = typeof expected === 'number' ? expected : expected.length;
  await until(`${count} events are there`, async () => (await read().catch(() => null))?.seqs?.length === count);
  if (typeof expected !== 'number') expect((await read()).seqs).toEqual(expected);
}
