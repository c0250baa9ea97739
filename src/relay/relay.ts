import { withAbort } from '@catchword/base/abort';
import { hasCode, isMirrorLost, messageOf } from '@catchword/base/errors';
import { repeat, type Service } from '@catchword/base/lifecycle';
import { createTrouble } from '@catchword/base/trouble';
import { holdLease, type Leased } from '../store/schema/lease.ts';
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
  const givingUp = new AbortController();
  const trouble = createTrouble({ clock, log, level: 'error', wrong: 'the relay failed, retrying' });
  let isStandby = false;
  let hasEnded = false;

  async function feedAll(leased: Leased<RelayWriter>, stopping: AbortSignal, lost: AbortSignal): Promise<void> {
    isStandby = false;
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
    await withAbort([stopping, failed.signal, lost], (stop) =>
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

  async function turn(stopping: AbortSignal): Promise<void> {
    if (hasEnded) return;
    try {
      await holdLease(store.relayLease, clock, log, (leased, lost) => feedAll(leased, stopping, lost));
      // Without sinks it has only marked them as not configured; another relay may have some, and takes the lease.
      hasEnded = sinks.length === 0;
    } catch (error) {
      if (stopping.aborted) return;
      if (isMirrorLost(error)) throw error;
      const isLeaseTaken = hasCode(error, 'MIRROR_BUSY', 'LEASE_LOST');
      const fields = { role: 'relay', reason: messageOf(error) };
      if (isLeaseTaken) log[isStandby || sinks.length === 0 ? 'debug' : 'info'](fields, 'standing by');
      else trouble.failed('', fields);
      isStandby = isLeaseTaken;
    }
  }

  const service = repeat({ name: 'relay', clock, everyMs: STAND_BY_MS, turn });
  return {
    ...service,
    stop: async () => {
      const timer = setTimeout(() => givingUp.abort(), GRACE_MS);
      await service.stop();
      clearTimeout(timer);
    },
  };
}
