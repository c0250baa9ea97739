import { Command } from 'commander';
import { channelConfig } from '../../operate/incidents/channel-config.ts';
import { plansOf } from '../../operate/schedule/due.ts';
import { settingDigests } from '../../operate/setting-digests.ts';
import { sinkConfigs } from '../../relay/sink-config.ts';
import { jsonOf } from '../../shown/shown-row.ts';
import { STATUS, statusLines } from '../../shown/shown-status.ts';
import { seenStatus } from '../../shown/status-seen.ts';
import { stateOf } from '../../state/mirror-state.ts';
import type { CommandContext } from './shared/command-context.ts';
import { colours } from './shared/output-format.ts';
import { mirrorCommand } from './shared/with-mirror.ts';

export function statusCommand(context: CommandContext): Command {
  return mirrorCommand(context, 'look', new Command('status'), (store, config) =>
    store.read(() => {
      const nowMs = context.clock.now();
      const state = stateOf(store, nowMs, config);
      const plans = plansOf(config, store.schedule.servedOfEach(), nowMs);
      const seen = seenStatus(store, state, plans, {
        own: settingDigests(context.environment),
        sinks: sinkConfigs(config.sinks, store.sinks.hasFed),
        channels: config.channels.map(channelConfig),
      });
      return { json: jsonOf(STATUS, seen), text: statusLines(colours(context), seen) };
    }),
  );
}
