import { hostname } from 'node:os';
import { hasCode, messageOf } from '@catchword/base/errors';
import { repeat, type Service } from '@catchword/base/lifecycle';
import type { Config } from '@catchword/settings/config';
import type { StateLimits } from '../../state/mirror-state.ts';
import { type ChannelConfig, channelConfig } from './channel-config.ts';
import { type DeliverOptions, deliver } from './deliver.ts';
import { CHECK_MS, createIncidentTracker } from './incident-tracker.ts';

export interface NotifierOptions extends DeliverOptions, StateLimits {
  readonly channels: readonly ChannelConfig[];
}

/** The part of the notifier's options that the settings give. */
export function notifierSettings({ channels, readyMaxAgeMs, minFreeBytes, behindLimitMs, name }: Config) {
  const limits = { readyMaxAgeMs, minFreeBytes, behindLimitMs };
  return { channels: channels.map(channelConfig), ...limits, sender: { name, host: hostname() } };
}

/**
 * Notes problems in the mirror, and notifies the channels: once when an episode begins, and once when it ends.
 * Runs in the process that holds the daemon's lease, and does nothing once that is lost.
 */
export function startNotifier(options: NotifierOptions): Service {
  const { leased, clock, log, channels } = options;
  const names = channels.map(({ name }) => name);
  const check = createIncidentTracker({ ...options, channels: names });
  const delivering = new Map<string, Promise<void>>();
  let isLost = false;
  let hasChannels = false;
  let problem: string | null = null;

  /** Logs an error once: the next check may find it again. */
  function onError(error: unknown): void {
    if (hasCode(error, 'LEASE_LOST')) isLost = true;
    const reason = messageOf(error);
    if (!isLost && reason !== problem) log.warn({ reason }, 'what to notify could not be checked or noted');
    problem = reason;
  }

  function turn(stopping: AbortSignal): void {
    if (isLost) return;
    try {
      if (!hasChannels) leased.write(({ episodes }) => episodes.setChannels(names, clock.now()));
      hasChannels = true;
      check();
      problem = null;
    } catch (error) {
      onError(error);
    }
    for (const channel of channels) {
      const { name } = channel;
      // A channel that does not answer holds up no other one.
      if (delivering.has(name)) continue;
      const done = deliver(channel, options, stopping)
        .catch(onError)
        .finally(() => delivering.delete(name));
      delivering.set(name, done);
    }
  }

  const looking = repeat({ name: 'notifier', clock, everyMs: CHECK_MS, turn });
  return {
    ...looking,
    stop: async () => {
      await looking.stop();
      await Promise.all(delivering.values());
    },
  };
}
