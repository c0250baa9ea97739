import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import * as z from 'zod';
import { CatchwordError, messageOf } from '../base/errors.ts';
import { hostUrls, isBehindSentinels } from '../base/host-urls.ts';
import { explainMissing } from '../base/missing-package.ts';
import { decoded } from '../base/percent-decode.ts';
import { printable } from '../base/printable.ts';
import { type Hide, hiding } from '../base/redact.ts';
import { collecting, type SinkSetting, settingsError } from '../settings/config.ts';
import * as form from '../settings/setting-forms.ts';
import { type View, viewOrNull, viewText } from '../view/view.ts';
import { INCOMPARABLE } from './check-text.ts';
import { mysqlLabel, mysqlProblem } from './kinds/mysql/mysql-address.ts';
import { parsable, placeProblem, postgresLabel } from './kinds/postgres/postgres-address.ts';
import { s3Place } from './kinds/s3/s3-place.ts';
import { ownSink } from './module-sink.ts';
import { isSinkError, type Sink, SinkError, type SinkFactory } from './sink.ts';
import { addressHint, BETWEEN_SECRETS, COMMON_OPTIONS, optionsIn, pathOf, SECRET_NAME } from './sink-options.ts';

/** A sink or a channel, as it is configured. */
export interface Configured<Made> {
  readonly name: string;
  readonly kind: string;
  /** Where it is, for people, without credentials. */
  readonly address: string;
  /** The message of an error without secrets. */
  readonly errorText: (error: unknown) => string;
  /** @throws CatchwordError CONFIG_INVALID if an option or the secret is not valid */
  make(): Promise<Made>;
}

export interface SinkConfig extends Configured<Sink> {
  /** Identifies the store: a sink with a new one is filled from the beginning. */
  readonly identity: string;
  /** Whether an event that the store refuses for good is parked, or stops the sink. */
  readonly refused: 'park' | 'stop';
  /** How often the relay compares its store with the source, deeply; undefined: only if somebody asks. */
  readonly verifyEveryMs?: number | undefined;
  /** What no two sinks share: the identity, and what tells the receivers of webhooks apart. May be secret. */
  readonly store: string;
  /** What it gets of each product; null: every product whole. */
  readonly view: View | null;
  /** Errors of its settings: then it gets nothing, and nothing else stops. */
  readonly problems?: readonly CatchwordError[];
}

/** A kind of sinks or channels. */
export interface Kind<Factory> {
  /** How its addresses start. */
  readonly schemes: readonly string[];
  address(url: URL, urls: readonly URL[]): string;
  /** Imports its module on demand: loading all kinds takes longer than a small delta. */
  load(url: URL): Promise<Factory>;
}

interface SinkKind extends Kind<SinkFactory> {
  /** Whether its address is `<kind>:PATH`, not a URL with a host. */
  readonly isPath?: boolean;
  /** Further text that identifies the store; only a digest of the text is shown. */
  identifiedBy?(url: URL): string;
  /** What its store may tell two sinks apart by. */
  apartBy?(url: URL): string;
  /** The option with which its store drops events. It then does not name every product, so it cannot be compared. */
  readonly drops?: string;
}

/** What keeps two mirrors, or two sinks, apart, by the kind of the store. */
export const APART: Readonly<Record<string, string>> = {
  postgres: 'another table (table=NAME)',
  mysql: 'another table (table=NAME)',
  redis: 'another stream (stream=NAME) or prefix (keys=PREFIX)',
  nats: 'another subject (subject=NAME) or bucket (kv=NAME)',
  s3: 'another prefix (s3://BUCKET/PREFIX)',
};

function hostsOf(urls: readonly URL[], port: string): string {
  return urls.map((url) => `${url.hostname}:${url.port || port}`).join(',');
}

/** A path without needless percent-encoding. */
function spelled({ pathname }: URL): string {
  return pathname.replace(/%[\da-f]{2}/gi, (code) =>
    /^[\w.~-]$/.test(decoded(code)) ? decoded(code) : code.toUpperCase(),
  );
}

const KINDS: Readonly<Record<string, SinkKind>> = {
  jsonl: {
    schemes: ['jsonl:'],
    isPath: true,
    address: pathOf,
    drops: 'keep',
    load: async () => (await import('./kinds/jsonl/jsonl-sink.ts')).createJsonlSink,
  },
  webhook: {
    schemes: ['webhook+https:', 'webhook+http:'],
    // The path and query of a webhook are often secret, and the query often contains a key that changes.
    address: ({ origin }) => origin,
    identifiedBy: spelled,
    apartBy: ({ search }) => search,
    load: async () => (await import('./kinds/webhook/webhook-sink.ts')).createWebhookSink,
  },
  postgres: {
    schemes: ['postgres:', 'postgresql:'],
    address: postgresLabel,
    load: async () => (await import('./kinds/postgres/postgres-sink.ts')).createPostgresSink,
  },
  mysql: {
    schemes: ['mysql:', 'mariadb:'],
    address: mysqlLabel,
    load: async () => (await import('./kinds/mysql/mysql-sink.ts')).createMysqlSink,
  },
  redis: {
    schemes: ['redis:', 'rediss:', 'redis+sentinel:', 'rediss+sentinel:'],
    address: (url, urls) => {
      const hosts = hostsOf(urls, isBehindSentinels(url) ? '26379' : '6379');
      const keys = url.searchParams.get('keys');
      return `${hosts}${url.pathname} ${keys === null ? (url.searchParams.get('stream') ?? 'catalog') : `${keys}:*`}`;
    },
    drops: 'maxlen',
    load: async () => (await import('./kinds/redis/redis-sink.ts')).createRedisSink,
  },
  nats: {
    schemes: ['nats:', 'tls:'],
    address: (url, urls) => {
      const bucket = url.searchParams.get('kv');
      const names = ['stream', 'subject'].flatMap((name) => url.searchParams.get(name) ?? []);
      const stream = names.length > 0 ? names.join(' ') : 'catalog.products';
      return `${hostsOf(urls, '4222')} ${bucket === null ? stream : `$KV.${bucket}.>`}`;
    },
    drops: 'max_age',
    load: async () => (await import('./kinds/nats/nats-sink.ts')).createNatsSink,
  },
  s3: {
    schemes: ['s3:'],
    address: (url) => {
      const { endpoint, bucket, prefix } = s3Place(url);
      return `${endpoint.host}${endpoint.pathname.replace(/\/$/, '')}/${bucket}/${prefix}`;
    },
    load: async () => (await import('./kinds/s3/s3-sink.ts')).createS3Sink,
  },
  module: {
    schemes: ['module:'],
    isPath: true,
    address: pathOf,
    identifiedBy: ({ searchParams }) =>
      [...searchParams]
        .map((option) => option.join('='))
        .sort()
        .join('&'),
    load: async (url) => {
      const loaded = (await import(pathToFileURL(pathOf(url)).href)) as { createSink?: SinkFactory };
      if (typeof loaded.createSink !== 'function') throw new Error('it does not export a function createSink');
      return loaded.createSink;
    },
  },
};

/**
 * Lists what follows the first secret option of a query: a secret that is not percent-encoded may contain an `&`.
 * @returns each text as written and decoded
 */
function secretQuery({ protocol, search }: URL): string[] {
  const parts = search.slice(1).split('&');
  const first = /^https?:$/.test(protocol) ? 0 : parts.findIndex((part) => SECRET_NAME.test(part.split('=')[0] ?? ''));
  if (first === -1) return [];
  const rest = parts.slice(first);
  // A part without `=` may belong to the secret before it.
  const texts = rest.flatMap((part) => (part.includes('=') ? part.split('=').slice(1) : part));
  texts.push(rest.join('&').replace(/^[^=]*=/, ''));
  return texts.flatMap((text) => [text, decoded(text), decoded(text.replaceAll('+', ' '))]);
}

/** The texts of a setting that are secret. */
export function secretsOf(url: URL, { secret = '', headers = '' }: Partial<SinkSetting> = {}): string[] {
  const ofWebhook = [
    secret,
    ...secret.split(BETWEEN_SECRETS),
    ...secret.split(':').flatMap((part) => [part, decoded(part)]),
    ...headers.split(/^.*?:|\s+/m),
  ];
  const found = [...ofWebhook, url.password, decoded(url.password)];
  // A user name without a password is a token, except in a database.
  if (url.password === '' && !/^(postgres|mysql|mariadb)/.test(url.protocol))
    found.push(url.username, decoded(url.username));
  if (/^https?:$/.test(url.protocol)) found.push(url.pathname, decoded(url.pathname));
  found.push(...secretQuery(url));
  // Shorter texts are ordinary words.
  return found.filter((text): text is string => text !== undefined && text.length >= 4);
}

/** The message of an error without secrets. In errors of ours, what comes from outside is masked already. */
export function errorTextOf(error: unknown, hide: Hide): string {
  const isOurs = error instanceof CatchwordError || isSinkError(error);
  return isOurs ? error.message : hide(messageOf(error));
}

/** Whether a part of the password was parsed as host, port or path: then an `@` comes after the host. */
export function isMisparsed({ pathname, search, hash, port }: URL, kind: string): boolean {
  // A second question mark: the first one is in the password.
  if (kind === 'smtp') return hash !== '' || !['', '/'].includes(pathname) || search.slice(1).includes('?');
  const hasAt = `${pathname}${search}${hash}`.includes('@');
  // A webhook's path and query may contain an `@`, but with a port before it, it ends a password.
  return /webhook|slack/.test(kind) ? port !== '' && hasAt : hash !== '' || hasAt;
}

/** Finds the first fault of an address. @returns the message and the hint */
function problemOf(url: URL, kind: string, isPath: boolean): [string, string] | null {
  if (isPath && url.pathname === '') return ['the path is missing', `Use ${kind}:PATH.`];
  const named = ['sslrootcert', 'sslcert', 'sslkey', 'creds', 'ssl-ca', 'ssl-cert', 'ssl-key', 'socket'];
  const files = named.map((option) => url.searchParams.get(option) ?? '');
  const paths = isPath ? [url.pathname] : kind === 'webhook' ? [] : files;
  const [unfit] = paths.flatMap((given) => form.path.safeParse(given).error?.issues ?? []);
  if (unfit !== undefined) return ['a path is not whole', `It ${unfit.message}.`];
  if (isPath && (url.host !== '' || url.hash !== '')) {
    return ['the address contains a host or a #', `Use ${kind}:PATH or ${kind}:/PATH, and %23 for #.`];
  }
  if (!isPath && isMisparsed(url, kind)) return ['the address cannot be parsed', addressHint(url.href)];
  const path = isBehindSentinels(url) ? /^\/[\w.-]+(\/\d*)?$/ : /^\/?\d*$/;
  if (kind === 'redis' && !path.test(url.pathname)) {
    const behind = 'redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY?stream=NAME';
    return ['the path is not a database number', `Use redis://HOST:PORT/NUMBER?stream=NAME, or ${behind}.`];
  }
  if (kind === 'postgres') return placeProblem(url);
  if (kind === 'mysql') return mysqlProblem(url);
  return !isPath && url.hostname === '' ? ['the host is missing', `Use ${kind}://HOST….`] : null;
}

/** Finds the kind of an address. @returns it, and what makes errors that name the variable but do not repeat its value */
export function kindOf<K extends Kind<unknown>>(kinds: Readonly<Record<string, K>>, { env, url }: SinkSetting) {
  const invalid = (message: string, hint?: string): CatchwordError =>
    new CatchwordError('CONFIG_INVALID', `${env}: ${message}`, hint === undefined ? {} : { hint });
  const scheme = /^[a-z0-9+]+:/.exec(url)?.[0] ?? '';
  const [kind = '', found] = Object.entries(kinds).find(([, { schemes }]) => schemes.includes(scheme)) ?? [];
  return { invalid, scheme, kind, found };
}

/** @throws CatchwordError CONFIG_INVALID, which names the variable but does not repeat its value */
export function sinkConfig(setting: SinkSetting): SinkConfig {
  const { env, name, url: text, secret, headers, proxies, again, problems = [] } = setting;
  if (problems.length > 0) throw settingsError(problems);
  const { invalid, kind, found } = kindOf(KINDS, setting);
  // The URL class parses host and path of known protocols only.
  const urls = hostUrls(parsable(text.replace(/^webhook\+/, '')));
  const [url] = urls;
  if (found === undefined || url === undefined) {
    const kinds =
      'Use jsonl:PATH, webhook+https://…, postgres://…, mysql://…, redis://…, nats://…, s3://… or module:PATH.';
    throw invalid('its value is not a valid sink address', `${kinds} ${addressHint(text)}`);
  }
  const problem = urls.map((one) => problemOf(one, kind, found.isPath === true)).find((one) => one !== null);
  if (problem) throw invalid(...problem);
  const names = kind === 'module' ? [] : [...optionsIn(url).keys()];
  if (new Set(names).size < names.length) throw invalid('the address has an option twice', 'Remove one of them.');
  const common = z.object(COMMON_OPTIONS).safeParse(Object.fromEntries(optionsIn(url)));
  if (!common.success) {
    const [issue] = common.error.issues;
    throw invalid(`the value of ${String(issue?.path[0])} is not valid`, `Use ${issue?.message}.`);
  }
  const { drops = '' } = found;
  const incomparable = (why: string) =>
    invalid(`its store cannot be compared with its source: ${why}`, 'Remove verify from the address.');
  const obstacle = url.searchParams.has(drops) ? `${drops} drops events` : INCOMPARABLE[kind];
  if (common.data.verify !== undefined && obstacle !== undefined) throw incomparable(obstacle);
  const address = found.address(url, urls);
  const further = found.identifiedBy?.(url);
  // A digest, because the text may be secret.
  const digest = further === undefined ? '' : ` ${createHash('sha256').update(further).digest('base64url')}`;
  const identity = `${address}${digest}`;
  if (headers !== undefined && kind !== 'webhook')
    throw invalid('only the requests of webhooks have headers', `Remove ${env}_HEADERS.`);
  const mask = hiding(() => secretsOf(url, setting));
  // What a store says becomes a part of sentences, which terminals show.
  const hide: Hide = (said, most) => printable(mask(said, most));
  // A module is not ours.
  let errorText = (error: unknown) => (kind === 'module' ? hide(messageOf(error)) : errorTextOf(error, hide));
  return {
    name,
    kind,
    address,
    identity,
    store: `${identity}${found.apartBy?.(url) ?? ''}`,
    refused: common.data.refused,
    verifyEveryMs: common.data.verify,
    view: viewOrNull(viewText(setting.where, setting.fields), { where: `${env}_WHERE`, fields: `${env}_FIELDS` }),
    errorText: (error) => errorText(error),
    make: async () => {
      const now = await again?.();
      if (now !== undefined) {
        const next = sinkConfig(now);
        if (next.identity !== identity) throw invalid('its file names another store now', 'Restart catchword.');
        errorText = next.errorText;
        return await next.make();
      }
      const create = async () => (await found.load(url))({ name, url, urls, secret, headers, proxies, hide });
      let made: Sink;
      try {
        made = await ownSink(create, hide);
      } catch (thrown) {
        const error = explainMissing(thrown);
        const shown = errorText(error);
        // The store may answer later.
        if (thrown instanceof SinkError && thrown.timedOut)
          throw new SinkError('unavailable', shown, { timedOut: true });
        throw error instanceof CatchwordError
          ? invalid(shown, error.hint)
          : invalid(`${address} cannot be used (${shown})`);
      }
      if (common.data.verify === undefined || made.list !== undefined) return made;
      await made.close().catch(() => {});
      throw incomparable('its module has no list');
    },
  };
}

/** Whether a store has all that another one has. */
function isWithin(inner: string, outer: string): boolean {
  return inner === outer || (outer.endsWith(':*') && inner.startsWith(outer.slice(0, -1)));
}

/** Whether both have one store: each would remove what the other has delivered. */
function isShared(one: SinkConfig, other: SinkConfig): boolean {
  return one.kind === other.kind && (isWithin(one.store, other.store) || isWithin(other.store, one.store));
}

/** A sink that gets nothing. @param place its kind and address, if only something else is wrong */
function unusable(name: string, problems: readonly CatchwordError[], place?: SinkConfig): SinkConfig {
  const nowhere = {
    kind: 'unknown',
    address: '–',
    identity: '',
    store: '',
    refused: 'park',
    errorText: messageOf,
  } as const;
  const make = () => Promise.reject(settingsError(problems));
  return { ...(place ?? nowhere), name, view: null, problems, make };
}

/**
 * Makes the sinks of the settings. Whatever is wrong with the settings of one is its own problem: `doctor`, `sink list` and
 * the relay show it, and the others go on. Of two with one store, the one that has fed it goes on, or else the first. (If two
 * addresses spell one store in different ways, the store's mark shows that, when it is opened.)
 * @param hasFed whether the mirror knows that the sink has fed this store
 */
export function sinkConfigs(
  settings: readonly SinkSetting[],
  hasFed: (sink: SinkConfig) => boolean = () => false,
): SinkConfig[] {
  const made = settings.map((setting) => {
    const found: CatchwordError[] = [];
    const attempt = collecting(found);
    const config = attempt(() => sinkConfig(setting));
    if (config !== undefined) return config;
    const place = attempt(() => sinkConfig({ ...setting, where: undefined, fields: undefined }));
    return unusable(setting.name, setting.problems ?? found.slice(0, 1), place);
  });
  const usable = made.filter(({ problems }) => problems === undefined);
  const byRight = [...usable.filter(hasFed), ...usable.filter((one) => !hasFed(one))];
  return made.map((one) => {
    const other = byRight.slice(0, Math.max(0, byRight.indexOf(one))).find((earlier) => isShared(one, earlier));
    if (other === undefined) return one;
    const { name, kind, address } = one;
    const hint = `Let ${name} have ${APART[kind] ?? 'another address'}, or remove its setting.`;
    const message = `the sinks ${other.name} and ${name} have one store: ${address}`;
    return unusable(name, [new CatchwordError('CONFIG_INVALID', message, { hint })], one);
  });
}

/** Tells the errors of the settings of a sink; null if there are none, or the settings do not name it. */
export function wrongText(configs: readonly SinkConfig[], name: string): string | null {
  const { problems } = configs.find((one) => one.name === name) ?? {};
  if (problems === undefined) return null;
  const { message, hint = '' } = settingsError(problems);
  return `${message}. ${hint}`;
}
