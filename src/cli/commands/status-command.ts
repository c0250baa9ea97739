import { Command } from 'commander';
import { channelConfig } from '../../operate/incidents/channel-config.ts';
import { plansOf } from '../../operate/schedule/due.ts';
import { settingDigests } from '../../operate/setting-digests.ts';
import { sinkConfigs } from '../../relay/sink-config.ts';
import { sinkStatuses } from '../../report/sink-report.ts';
import { channelStatuses, episodesJson, statusOf } from '../../report/status-report.ts';
import { statusLines } from '../../report/status-text.ts';
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
      const status = statusOf(store, state, plans, settingDigests(context.environment));
      const sinks = sinkStatuses(store, sinkConfigs(config.sinks, store.sinks.hasFed), nowMs);
      const episodes = episodesJson(store, state);
      const channels = channelStatuses(store, config.channels.map(channelConfig));
      const text = statusLines(colours(context), store, state, status, { sinks, episodes, channels });
      return { json: { ...status, sinks, episodes, channels }, text };
    }),
  );
}
