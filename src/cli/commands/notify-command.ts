import { CatchwordError, usageError } from '@catchword/base/errors';
import { Command } from 'commander';
import { type ChannelConfig, channelConfig } from '../../operate/incidents/channel-config.ts';
import { testMessage } from '../../operate/incidents/message-text.ts';
import { notifierSettings } from '../../operate/incidents/notifier.ts';
import { withMirrorIfAny } from '../roles/open-mirror.ts';
import { loadSettings } from './shared/checked-settings.ts';
import type { CommandContext } from './shared/command-context.ts';
import { printLine } from './shared/output-format.ts';
import { settingsNotInUse } from './shared/with-mirror.ts';

/** @throws CatchwordError USAGE naming the channels */
function requireChannel(channels: readonly ChannelConfig[], given: string): ChannelConfig {
  const found = channels.find(({ name }) => name === given.toLowerCase());
  if (found !== undefined) return found;
  const names = channels.map(({ name }) => name).join(', ');
  const hint =
    names === ''
      ? `Set one: CATCHWORD_NOTIFY_<NAME>=smtps://… (see docs/notifications.md).`
      : `The settings have: ${names}.`;
  throw usageError(`the settings do not have a channel ${JSON.stringify(given)}`, hint);
}

async function test(context: CommandContext, given: string): Promise<void> {
  const config = loadSettings(context, 'nothing');
  const channel = requireChannel(config.channels.map(channelConfig), given);
  const { name, kind, address } = channel;
  const { sender } = notifierSettings(config);
  let note: string | null;
  try {
    const send = await channel.make();
    note = await send(testMessage(name, sender, context.clock.now()), context.signal);
  } catch (error) {
    if (context.signal.aborted) throw new CatchwordError('INTERRUPTED', 'the test was stopped');
    if (error instanceof CatchwordError) throw error;
    const hint = `Check CATCHWORD_NOTIFY_${name.toUpperCase()}, then try again.`;
    throw new CatchwordError('NOTIFY_FAILED', `${name} (${kind}, ${address}): ${channel.errorText(error)}`, { hint });
  }
  printLine(context, `${name} (${kind}, ${address}) has taken a test message`);
  const unused = await withMirrorIfAny(config, (store) => (store === null ? [] : settingsNotInUse(context, store)));
  for (const text of unused) printLine(context, `but ${text}`);
  if (note === null) return;
  printLine(context, `but ${note}`);
  context.setExitCode(1);
}

export function notifyCommand(context: CommandContext): Command {
  const group = new Command('notify');
  group
    .command('test')
    .description('send a test message to a channel, and wait until it is delivered')
    .argument('<name>', 'name of the channel: the end of CATCHWORD_NOTIFY_<NAME>')
    .action((name: string) => test(context, name));
  return group;
}
