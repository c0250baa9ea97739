import { sourceId } from '@catchword/catalog/source-identity';
import type { QueuePlace } from '@catchword/queue-redis/jobs';
import type { Config } from '@catchword/settings/config';
import type { EffectiveSetting } from '../../operate/effective-settings.ts';
import { channelConfig } from '../../operate/incidents/channel-config.ts';
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
  readonly effective: readonly EffectiveSetting[];
  /** Where the queues of the fetchers are; null without Redis. */
  readonly queues: Pick<QueuePlace, 'redisUrl' | 'source'> | null;
}

/** Takes what `HttpConfig` has, and nothing else: the other settings have secrets that the server does not need. */
export function httpConfig(config: Config, effective: readonly EffectiveSetting[] = []): HttpConfig {
  const channels = config.channels.map(channelConfig).map(({ name, kind, address }) => ({ name, kind, address }));
  const settings = Object.fromEntries(SETTINGS.map((name) => [name, config[name]])) as Pick<
    Config,
    (typeof SETTINGS)[number]
  >;
  const { redisUrl, baseUrl, apiKey } = config;
  const hasQueues = redisUrl !== undefined && baseUrl !== undefined && apiKey !== undefined;
  const queues = hasQueues ? { redisUrl, source: sourceId({ ...config, baseUrl, apiKey }) } : null;
  return { ...settings, channels, effective, queues };
}
