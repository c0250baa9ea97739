import { authorityOf } from '@catchword/base/proxy';
import { type ReadSettings, readSettings, redactValue, type SinkSetting } from '@catchword/settings/config';
import type { DotEnv } from '@catchword/settings/environment';
import { OPTIONS } from '@catchword/settings/option-table';
import { sinkConfig } from '../relay/sink-config.ts';
import { channelConfig } from './incidents/channel-config.ts';

/** A setting as a process uses it, without secrets. */
export interface EffectiveSetting {
  /** The variable. */
  readonly name: string;
  /** Masked if it is secret; null if it is not set. */
  readonly value: string | null;
  /** `default`, `environment`, `.env`, or the variable that names the file of a secret. */
  readonly from: string;
  readonly about: string;
}

type Given = Pick<DotEnv, 'environment' | 'fromDotEnv'>;

const MASK = '********';

function originOf({ environment, fromDotEnv }: Given, name: string, isSecret: boolean): string {
  if (environment[name]) return fromDotEnv.has(name) ? '.env' : 'environment';
  return isSecret && environment[`${name}_FILE`] ? `${name}_FILE` : 'default';
}

/** Host and port of a proxy, which are not secret. */
function proxyIn(key: string, { httpsProxy, httpProxy }: ReadSettings['values']): string | undefined {
  const address = { httpsProxy, httpProxy }[key];
  return address && authorityOf(new URL(address));
}

function optionSettings(given: Given, { values }: ReadSettings): EffectiveSetting[] {
  return Object.entries(OPTIONS).map(([key, { env: name, fallback, secret, help: about }]) => {
    const from = originOf(given, name, secret);
    const written = given.environment[name] || fallback || null;
    const isValid = Object.hasOwn(values, key);
    if (secret) return { name, value: from === 'default' ? null : (proxyIn(key, values) ?? MASK), from, about };
    return { name, value: written === null || isValid ? written : redactValue(written), from, about };
  });
}

type ConfigOf = (setting: SinkSetting) => { readonly kind: string; readonly address: string };

function namedSettings(given: Given, named: readonly SinkSetting[], what: string, configOf: ConfigOf) {
  return named.flatMap((setting): EffectiveSetting[] => {
    const { env, name } = setting;
    const secrets = (['secret', 'headers'] as const).filter((key) => setting[key] !== undefined);
    const variables: [string, string, string][] = [
      [env, addressOf(setting, configOf), `the ${what} ${name}`],
      ...secrets.map((key): [string, string, string] => [`${env}_${key.toUpperCase()}`, MASK, `its ${key}`]),
    ];
    return variables.map(([name, value, about]) => ({ name, value, from: originOf(given, name, true), about }));
  });
}

/** The address of a sink or channel without its credentials; masked as a whole if it is not valid. */
function addressOf(setting: SinkSetting, configOf: ConfigOf): string {
  try {
    const { kind, address } = configOf(setting);
    return `${kind} ${address}`;
  } catch {
    return MASK;
  }
}

/** Every setting as it is written. No secret is in it, so that it may be shown. */
export function effectiveSettings(given: Given): EffectiveSetting[] {
  const read = readSettings(given.environment);
  const { sinks, channels } = read.values;
  return [
    ...optionSettings(given, read),
    ...namedSettings(given, sinks, 'sink', sinkConfig),
    ...namedSettings(given, channels, 'channel', channelConfig),
  ];
}
