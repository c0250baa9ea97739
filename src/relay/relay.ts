import { withAbort } from '../base/abort.ts';
import { CatchwordError, isMirrorLost, messageOf } from '../base/errors.ts';
import { failureOf, type Service } from '../base/lifecycle.ts';
import { createTrouble } from '../base/trouble.ts';
import { holdLease } from '../store/schema/hold-lease.ts';
import type { Leased } from '../store/schema/lease.ts';
import type { RelayWriter } from '../store/schema/writers.ts';
import type { Store } from '../store/store.ts';
import type { FeedOptions } from './feed-context.ts';
import { feedSink } from './feed-sink.ts';
import type { SinkConfig } from './sink-config.ts';

export interface RelayOptions extends Pick<FeedOptions, 'clock' | 'log' | 'source' | 'removalLimit'> {
  readonly store: Store;
  readonly sinks: readonly SinkConfig[];
}

/** How often a standby relay checks whether the active one is gone. */
const STAND_BY_MS = 2_000;
/** How long running deliveries may take when the relay stops. A store that says nothing must not keep the process alive. */
const GRACE_MS = 5_000;

/** Delivers the change log to every configured sink. One relay of a mirror is active; others stand by and take over. */
export function startRelay({ store, sinks, clock, log, source, removalLimit }: RelayOptions): Service {
  const stopping = new AbortController();
  const givingUp = new AbortController();

  async function feedAll(leased: Leased<RelayWriter>, lost: AbortSignal): Promise<void> {
    leased.write((writer) => {
      writer.sinks.configureOnly(sinks);
      for (const sink of sinks) writer.sinks.configure(sink);
    });
    for (const { id, name, configured } of store.sinks.list()) {
      if (configured || store.sinks.parkedCount(id) === 0) continue;
      const reason = `see: npx catchword sink parked ${name}; if it has another name now: npx catchword sink rename`;
      log.warn({ sink: name, reason }, 'events are parked for a sink that no setting names');
    }
    // A sink's loop throws only when no sink can be fed, as when the lease is lost: then the others end as well.
    const failed = new AbortController();
    await withAbort([stopping.signal, failed.signal, lost], (stop) =>
      withAbort([givingUp.signal, failed.signal, lost], async (signal) => {
        const loops = sinks.map((config) =>
          feedSink({ store, config, clock, log, source, removalLimit, leased, stopping: stop, signal }).catch(
            (error: unknown) => failed.abort(error),
          ),
        );
        await Promise.all(loops);
      }),
    );
    failed.signal.throwIfAborted();
  }

  async function run(): Promise<void> {
    let isStandby = false;
    const trouble = createTrouble({ clock, log, level: 'error', wrong: 'the relay failed, retrying' });
    const becomeActive = (leased: Leased<RelayWriter>, lost: AbortSignal): Promise<void> => {
      isStandby = false;
      return feedAll(leased, lost);
    };
    while (!stopping.signal.aborted) {
      try {
        await holdLease(store.relayLease, clock, log, becomeActive);
        // Without sinks it has only marked them as not configured; another relay may have some, and takes the lease.
        if (sinks.length === 0) return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (isMirrorLost(error)) throw error;
        const isLeaseTaken = error instanceof CatchwordError && ['MIRROR_BUSY', 'LEASE_LOST'].includes(error.code);
        const fields = { role: 'relay', reason: messageOf(error) };
        if (isLeaseTaken) log[isStandby || sinks.length === 0 ? 'debug' : 'info'](fields, 'standing by');
        else trouble.failed('', fields);
        isStandby = isLeaseTaken;
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
      const timer = setTimeout(() => givingUp.abort(), GRACE_MS);
      await running.catch(() => {});
      clearTimeout(timer);
    },
  };
}
