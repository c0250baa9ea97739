import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import type { Service } from '@catchword/base/lifecycle';
import { createLog } from '@catchword/base/log';
import { difference } from '@catchword/catalog/content';
import type { RecordedChange } from '@catchword/catalog/event';
import { productOf } from '@catchword/catalog/product';
import type { Mark, Sink } from '@catchword/sink-kit/sink';
import { type RelayOptions, startRelay } from '../relay/relay.ts';
import type { SinkConfig } from '../relay/sink-config.ts';
import { createHistory } from '../store/history/history.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { SinkWriter } from '../store/rows/write-sinks.ts';
import { writeUnder } from '../store/schema/lease.ts';
import type { KeeperWriter } from '../store/schema/writers.ts';
import { openStore, type Store } from '../store/store.ts';

export interface Version {
  readonly vbid: string;
  /** JSON text; null removes it. */
  readonly body: string | null;
}

export const SINK_NAME = 'contract';
const POLL_MS = 5;
const TIMEOUT_MS = 60_000;

/** Real time, but polls and pauses of up to 2 s take 10 ms. */
export const hastyClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms <= 2_000 ? Math.min(ms, 10) : ms, signal),
  random: () => 0.02,
};

/**
 * Waits until `condition` holds.
 * @param reason says why it may not hold
 * @param progress a slow machine has more time as long as this changes
 * @throws Error naming the condition, after a minute without progress; the reason of `signal` when it aborts
 */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  signal?: AbortSignal,
  reason: () => string | null = () => null,
  progress: () => unknown = () => null,
): Promise<void> {
  let giveUpAt = Date.now() + TIMEOUT_MS;
  let was = progress();
  while (!(await condition())) {
    if (progress() !== was) giveUpAt = Date.now() + TIMEOUT_MS;
    was = progress();
    if (Date.now() > giveUpAt) throw new Error([`timed out after a minute: ${what}`, reason() ?? []].flat().join(': '));
    await hastyClock.sleep(POLL_MS, signal);
  }
}

/** Begins the incarnation of the mirrors of checks: what they leave in a store is recognised by it. */
const INCARNATION = 'contract';

/** Whether a check has fed a store, so that nothing is lost if it is removed. */
export function isOfContract({ incarnation }: Pick<Mark, 'incarnation'>): boolean {
  return incarnation.startsWith(INCARNATION);
}

function writeVersion(store: KeeperWriter, { vbid, body }: Version, run: number, nowMs: number): void {
  const known = store.products.find(vbid);
  const seq = store.changes.lastSeq() + 1;
  if (body === null) {
    if (known !== undefined && !known.removed) store.removals.remove([known.id], run, nowMs);
    return;
  }
  const product = productOf(vbid, JSON.parse(body) as Record<string, unknown>, body);
  if (known === undefined) {
    const id = store.products.lastId() + 1;
    store.products.insert([{ id, seq, product }], nowMs);
    store.changes.appendCreated(seq, id, 1, run, nowMs);
    store.products.addLiving(1);
    return;
  }
  const op = known.removed ? 'restored' : 'updated';
  const change = { seq, op, productId: known.id, prevSeq: known.changedSeq, ...difference(known.body, body) } as const;
  store.products.update(known, product, seq, nowMs);
  store.changes.append([change], run, nowMs);
  if (known.removed) store.products.addLiving(1);
}

/** Returns the store with a relay that writes acks with `ack`. */
export function withAck(store: Store, ack: SinkWriter['ack']): Store {
  const acquire: Store['relayLease']['acquire'] = (nowMs) => {
    const leased = store.relayLease.acquire(nowMs);
    return {
      ...leased,
      write: (work) => leased.write((writer) => work({ ...writer, sinks: { ...writer.sinks, ack } })),
    };
  };
  return { ...store, relayLease: { ...store.relayLease, acquire } };
}

export function wrapSink(config: SinkConfig, change: (sink: Sink) => Partial<Sink>): SinkConfig {
  return {
    ...config,
    make: async () => {
      const sink = await config.make();
      const changed = change(sink);
      const wrapped = { ...sink, ...changed };
      // Otherwise texts would bypass the changed `deliver`.
      if (changed.deliver !== undefined) delete wrapped.deliverLines;
      return wrapped;
    },
  };
}

/** For `wrapSink`: limits the events per batch. */
export function smallBatches(events: number): (sink: Sink) => Pick<Sink, 'batch'> {
  return ({ batch }) => ({ batch: { ...batch, events } });
}

export type Harness = ReturnType<typeof openHarness>;

/**
 * Makes a temporary mirror whose products a check changes, and a relay that feeds a sink from it.
 * @param options.isComplete whether the first full load has finished
 * @param options.signal ends every wait
 */
export function openHarness({ isComplete = true, signal }: { isComplete?: boolean; signal?: AbortSignal } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-contract-'));
  const incarnation = INCARNATION + randomUUID().slice(INCARNATION.length);
  const store = openStore(join(directory, 'catalog.db'), { incarnation });
  if (isComplete) writeUnder(store.keeperLease, Date.now(), (writer) => writer.advanceWatermark(1, 1));
  const history = createHistory(store);
  let relay: Service | undefined;

  function sink(): SinkRow {
    const row = store.sinks.get(SINK_NAME);
    if (row === undefined) throw new Error('the relay has not added the sink yet');
    return row;
  }

  /** Starts a relay; one at a time. */
  function start(config: SinkConfig, more: Partial<RelayOptions> = {}): void {
    const source = 'http://service.example/v4/products';
    const removalLimit = (): number => Number.POSITIVE_INFINITY;
    const usual = { clock: hastyClock, log: createLog('silent'), source, removalLimit };
    relay = startRelay({ store, sinks: [config], ...usual, ...more });
  }

  async function stop(): Promise<void> {
    await relay?.stop();
    relay = undefined;
  }

  function wait(what: string, condition: () => boolean): Promise<void> {
    const row = () => store.sinks.get(SINK_NAME);
    return until(
      what,
      condition,
      signal,
      () => row()?.error ?? null,
      () => row()?.cursor,
    );
  }

  /** Creates, updates or (with null) removes products, in one transaction of a run. @param at milliseconds since 1970 */
  function change(versions: readonly Version[], run = 1, at = Date.now()): void {
    writeUnder(store.keeperLease, Date.now(), (writer) => {
      for (const version of versions) writeVersion(writer, version, run, at);
    });
  }

  function caughtUp(): Promise<void> {
    const isCaughtUp = (): boolean => store.sinks.get(SINK_NAME)?.cursor === store.changes.lastSeq();
    return wait('the sink has confirmed everything', isCaughtUp);
  }

  return {
    store,
    change,
    start,
    stop,
    /** Starts a relay that ends after its first delivery, before the ack is written, as in a crash. */
    crash: async (config: SinkConfig): Promise<void> => {
      let hasEnded = false;
      const ack = (): never => {
        hasEnded = true;
        throw new CatchwordError('LEASE_LOST', 'the check ends the relay here');
      };
      start(config, { store: withAck(store, ack) });
      await wait('the relay ends', () => hasEnded);
      await stop();
    },
    sink,
    until: wait,
    caughtUp,
    deliver: async (versions: readonly Version[]): Promise<void> => {
      change(versions);
      await caughtUp();
    },
    /** Parsed living products. */
    living: () => new Map([...store.products.all()].map(({ vbid, body }) => [vbid, JSON.parse(body) as unknown])),
    /** Every change after `after`. */
    events: (after = 0): readonly RecordedChange[] => history.after(after, Number.MAX_SAFE_INTEGER),
    close: async (): Promise<void> => {
      await stop();
      store.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
