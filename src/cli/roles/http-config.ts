import type { Config } from '../../settings/config.ts';

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

export type HttpConfig = Pick<Config, (typeof SETTINGS)[number]>;

/** Takes what `HttpConfig` has, and nothing else: the other settings have secrets that the server does not need. */
export function httpConfig(config: HttpConfig): HttpConfig {
  return Object.fromEntries(SETTINGS.map((name) => [name, config[name]])) as HttpConfig;
}
