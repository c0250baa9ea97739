import { setMaxListeners } from 'node:events';
import type { Clock } from '../clock.ts';
import { CatchwordError, isMirrorLost, messageOf } from '../errors.ts';
import { failureOf, type Service } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import { holdLease } from '../store/hold-lease.ts';
import type { Leased } from '../store/lease.ts';
import type { Store } from '../store/store.ts';
import type { RelayWriter } from '../store/writers.ts';
import { feedSink } from './feed-sink.ts';
import type { SinkConfig } from './sink-config.ts';

export interface RelayOptions {
  readonly store: Store;
  readonly sinks: readonly SinkConfig[];
  readonly clock: Clock;
  readonly log: Logger;
  /** The `source` of events where the mirror has not noted its own. */
  readonly source: string;
}

/** How often a relay that stands by looks whether the other one is gone. */
const STAND_BY_MS = 2_000;
/** What is on its way when the relay is stopped may take so long to be confirmed. */
const GRACE_MS = 10_000;

/**
 * Feeds the change log to every configured sink. One relay at a time does so for a mirror; another stands by, and takes
 * over when it is gone.
 */
export function startRelay({ store, sinks, clock, log, source }: RelayOptions): Service {
  const stopping = new AbortController();
  const giveUp = new AbortController();

  async function feedAll(leased: Leased<RelayWriter>): Promise<void> {
    leased.write((writer) => {
      writer.sinks.configureOnly(sinks.map(({ name }) => name));
      for (const sink of sinks) writer.sinks.configure(sink);
    });
    // One that fails for good, which is when the lease is lost, ends the others.
    const over = new AbortController();
    const end = (): void => over.abort(giveUp.signal.reason);
    giveUp.signal.addEventListener('abort', end, { once: true });
    const halt = new AbortController();
    // Every sink listens to both.
    setMaxListeners(0, over.signal, halt.signal);
    const stop = (): void => halt.abort();
    stopping.signal.addEventListener('abort', stop, { once: true });
    if (stopping.signal.aborted) halt.abort();
    try {
      const feeds = sinks.map(async (config) => {
        try {
          await feedSink({ store, config, clock, log, source, leased }, halt.signal, over.signal);
        } catch (error) {
          halt.abort();
          over.abort(error);
          throw error;
        }
      });
      const failed = (await Promise.allSettled(feeds)).find((result) => result.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
    } finally {
      giveUp.signal.removeEventListener('abort', end);
      stopping.signal.removeEventListener('abort', stop);
    }
  }

  async function run(): Promise<void> {
    let standsBy = false;
    const serve = (leased: Leased<RelayWriter>): Promise<void> => {
      standsBy = false;
      return feedAll(leased);
    };
    while (!stopping.signal.aborted) {
      try {
        await holdLease(store.relayLease, clock, log, serve);
        // Without sinks there is nothing to do but to be, once, the one that says so: another relay may have some.
        if (sinks.length === 0) return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (isMirrorLost(error)) throw error;
        const known = error instanceof CatchwordError && ['MIRROR_BUSY', 'LEASE_LOST'].includes(error.code);
        const level = !known ? 'error' : standsBy || sinks.length === 0 ? 'debug' : 'info';
        const message = known ? 'standing by' : 'the relay is not running, trying again';
        log[level]({ role: 'relay', reason: messageOf(error) }, message);
        standsBy = known;
        await clock.sleep(STAND_BY_MS, stopping.signal).catch(() => {});
      }
    }
  }

  const running = run();
  return {
    name: 'relay',
    failed: failureOf(running),
    stop: async () => {
      stopping.abort();
      const timer = setTimeout(() => giveUp.abort(), GRACE_MS);
      await running.catch(() => {});
      clearTimeout(timer);
    },
  };
}
