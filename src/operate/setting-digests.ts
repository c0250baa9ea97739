import { createHash } from 'node:crypto';
import { isNamed, readSettings, type SinkSetting } from '@catchword/settings/config';
import type { Environment } from '@catchword/settings/environment';
import { OPTIONS, type Option } from '@catchword/settings/option-table';
import { SECRET_NAME } from '@catchword/sink-kit/sink-options';
import { differing, type SettingDigests, type StartedSettings } from '../store/schema/started-settings.ts';

/*
 * A daemon reads its settings when it starts. Its leases show a digest of each, so that `status`, `doctor` and pages can
 * name the settings that need a restart. A digest would let a reader of the mirror try passwords, so none is made from a
 * secret: it only counts whether a secret is set. Of a variable that ends in _FILE, only the path counts: the file is read
 * again when it is used, and it may be a pipe, be gone since the start, or not be readable for the user of a command.
 */

/** They matter only to the process that reads them, or are the same mirror by another path. */
const OWN: readonly string[] = [
  'db',
  'logLevel',
  'logOutput',
  'noColour',
  'tokenStore',
  'userPassword',
  'contractSecret',
];

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 8);
}

/** An address without user, password and secret options. */
function withoutSecrets(url: string): string {
  return (
    url
      // The second form is that of a password that is not percent-encoded.
      .replace(/\/\/(?:[^/?#]*@|[^@/?#]*:(?!\d*[/?#])[^@]*@)/, '//')
      .replace(/([?#&])([^=&]*)=[^&]*/g, (option, start: string, name: string) =>
        SECRET_NAME.test(name) ? `${start}${name}` : option,
      )
  );
}

function namedDigest({ url, secret, headers, where, fields }: SinkSetting): string {
  return digestOf([withoutSecrets(url), secret === undefined, headers === undefined, where, fields]);
}

/** The variables of a process; the path of a file stands for its content. */
function withoutFiles(given: Environment): Environment {
  const options = Object.values<Option>(OPTIONS).map(({ env }) => env);
  const paths = Object.entries(given).flatMap(([file, path]) => {
    const [, name = ''] = /(.+)_FILE$/.exec(file) ?? [];
    if (given[name] || !(isNamed(name) || options.includes(name))) return [];
    return [[file, undefined] as const, [name, path] as const];
  });
  return { ...given, ...Object.fromEntries(paths) };
}

/** Digests of settings, whether they are valid or not. */
export function settingDigests(given: Environment): SettingDigests {
  const environment = withoutFiles(given);
  const { values } = readSettings(environment);
  const options = Object.entries<Option>(OPTIONS).flatMap(([key, { env, secret, fallback, schema }]) => {
    if (OWN.includes(key)) return [];
    const value = secret ? Boolean(environment[env]) : (values as Readonly<Record<string, unknown>>)[key];
    const standard = secret ? false : fallback === undefined ? undefined : schema.parse(fallback);
    const [now, without] = [value, standard].map((one) => digestOf([one]));
    return now === without ? [] : [[env, now] as const];
  });
  const named = [...values.sinks, ...values.channels].map((one) => [one.env, namedDigest(one)] as const);
  return Object.fromEntries([...options, ...named]) as SettingDigests;
}

/**
 * Notes the settings of a process that starts.
 * @param again reads `.env` again
 * @returns a function that tells them, and what had changed when `.env` was read last. It reads no file, because leases are
 * renewed with what it says: it starts the next reading.
 */
export function noteSettings(environment: Environment, again: () => Promise<Environment>): () => StartedSettings {
  const settings = settingDigests(environment);
  let changed: readonly string[] = [];

  async function look(): Promise<void> {
    const now = await again().catch(() => null);
    changed = now === null ? ['.env'] : differing(settings, settingDigests(now));
  }

  return () => {
    void look();
    return { settings, changed };
  };
}
