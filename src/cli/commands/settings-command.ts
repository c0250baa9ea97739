import { Command } from 'commander';
import { authorityOf } from '../../base/proxy.ts';
import { channelConfig } from '../../operate/incidents/channel-config.ts';
import { sinkConfig } from '../../relay/sink-config.ts';
import { table } from '../../report/text.ts';
import { type ReadSettings, readSettings, redactValue, type SinkSetting } from '../../settings/config.ts';
import { OPTIONS } from '../../settings/option-table.ts';
import { loadSettings } from './shared/checked-settings.ts';
import type { CommandContext } from './shared/command-context.ts';
import { type JsonOption, print } from './shared/output-format.ts';

const MASK = '********';

/** @returns `default`, `environment`, `.env`, or the variable that names the file of a secret */
function originOf({ environment, fromDotEnv }: CommandContext, name: string, isSecret: boolean): string {
  if (environment[name]) return fromDotEnv.has(name) ? '.env' : 'environment';
  return isSecret && environment[`${name}_FILE`] ? `${name}_FILE` : 'default';
}

/** Host and port of a proxy, which are not secret. */
function proxyIn(key: string, { httpsProxy, httpProxy }: ReadSettings['values']): string | undefined {
  const address = { httpsProxy, httpProxy }[key];
  return address && authorityOf(new URL(address));
}

/** Settings as they are written; null if one is not set. */
function optionSettings(context: CommandContext, { values }: ReadSettings) {
  return Object.entries(OPTIONS).map(([key, { env: name, fallback, secret }]) => {
    const from = originOf(context, name, secret);
    const given = context.environment[name] || fallback || null;
    const isValid = Object.hasOwn(values, key);
    if (secret) return { name, value: from === 'default' ? null : (proxyIn(key, values) ?? MASK), from };
    return { name, value: given === null || isValid ? given : redactValue(given), from };
  });
}

function namedSettings(
  context: CommandContext,
  named: readonly SinkSetting[],
  configOf: (setting: SinkSetting) => { readonly kind: string; readonly address: string },
) {
  return named.flatMap((setting) => {
    const secrets = (['secret', 'headers'] as const).filter((key) => setting[key] !== undefined);
    const masked = secrets.map((key) => [`${setting.env}_${key.toUpperCase()}`, MASK] as const);
    const variables = [[setting.env, addressOf(setting, configOf)] as const, ...masked];
    return variables.map(([name, value]) => ({ name, value, from: originOf(context, name, true) }));
  });
}

/** The address of a sink or channel without its credentials; masked as a whole if it is not valid. */
function addressOf(setting: SinkSetting, configOf: Parameters<typeof namedSettings>[2]): string {
  try {
    const { kind, address } = configOf(setting);
    return `${kind} ${address}`;
  } catch {
    return MASK;
  }
}

export function settingsCommand(context: CommandContext): Command {
  return new Command('settings').option('--json', 'print one JSON document').action((options: JsonOption) => {
    const read = readSettings(context.environment);
    const { sinks, channels } = read.values;
    const settings = [
      ...optionSettings(context, read),
      ...namedSettings(context, sinks, sinkConfig),
      ...namedSettings(context, channels, channelConfig),
    ];
    const rows = settings.map(({ name, value, from }) => [name, value, from]);
    print(context, options, { json: settings, text: table(['setting', 'value', 'from'], rows) });
    // Reports unknown variables and settings that are wrong.
    loadSettings(context, 'nothing', true);
  });
}
