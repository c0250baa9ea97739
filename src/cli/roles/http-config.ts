import { channelConfig } from '../../operate/incidents/channel-config.ts';
import type { Config } from '../../settings/config.ts';
import type { ConfiguredChannel } from '../../shown/shown-channel.ts';

/** The settings that the server needs; they can be sent to a thread. */
const SETTINGS = [
  'baseUrl',
  'behindLimitMs',
  'db',
  'dbMode',
  'deltaCron',
  'deltaOverlapMs',
  'fullCron',
  'httpHost',
  'httpOrigins',
  'httpToken',
  'minFreeBytes',
  'rateLimit',
  'readyMaxAgeMs',
  'timezone',
] as const satisfies readonly (keyof Config)[];

export interface HttpConfig extends Pick<Config, (typeof SETTINGS)[number]> {
  readonly channels: readonly ConfiguredChannel[];
}

/** Takes what `HttpConfig` has, and nothing else: the other settings have secrets that the server does not need. */
export function httpConfig(config: Config): HttpConfig {
  const channels = config.channels.map(channelConfig).map(({ name, kind, address }) => ({ name, kind, address }));
  const settings = Object.fromEntries(SETTINGS.map((name) => [name, config[name]])) as Omit<HttpConfig, 'channels'>;
  return { ...settings, channels };
}
