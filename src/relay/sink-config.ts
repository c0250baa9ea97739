import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import type { SinkSetting } from '../config.ts';
import { CatchwordError, messageOf } from '../errors.ts';
import type { Sink, SinkFactory, SinkSettings } from './sink.ts';
import { COMMON_OPTIONS, decoded, ENCODE, optionsIn, pathOf, QUOTE } from './sink-options.ts';

/** What to do with an event that a sink refuses for good: park it, or stop the sink. */
export type RefusedPolicy = 'park' | 'stop';

/** A configured sink. */
export interface SinkConfig {
  readonly name: string;
  readonly kind: string;
  /** Where it is, for people, without credentials. */
  readonly address: string;
  /** Identifies the store: a sink with a new one is filled from the beginning. */
  readonly identity: string;
  /** The identity that an earlier version gave the same store. */
  readonly formerIdentity?: string;
  readonly refused: RefusedPolicy;
  /** Texts to redact in every message. */
  readonly secrets: readonly string[];
  make(): Promise<Sink>;
}

interface Kind {
  readonly kind: string;
  address(url: URL): string;
  /** Imports the sink's module on demand: loading all kinds takes longer than a small delta. */
  load(url: URL): Promise<SinkFactory>;
}

function hostOf(url: URL, port: string): string {
  return `${url.hostname}:${url.port || port}`;
}

const jsonl: Kind = {
  kind: 'jsonl',
  address: pathOf,
  load: async () => (await import('./sinks/jsonl/jsonl.ts')).createJsonlSink,
};
const webhook: Kind = {
  kind: 'webhook',
  // The path and query of a webhook are often secret.
  address: (url) => url.origin,
  load: async () => (await import('./sinks/webhook.ts')).createWebhookSink,
};
const postgres: Kind = {
  kind: 'postgres',
  address: (url) => `${hostOf(url, '5432')}${url.pathname} ${url.searchParams.get('table') ?? 'products'}`,
  load: async () => (await import('./sinks/postgres/postgres.ts')).createPostgresSink,
};
const redis: Kind = {
  kind: 'redis',
  address: (url) => `${hostOf(url, '6379')}${url.pathname} ${url.searchParams.get('stream') ?? 'catalog'}`,
  load: async () => (await import('./sinks/redis.ts')).createRedisSink,
};
const nats: Kind = {
  kind: 'nats',
  address: (url) => {
    const names = ['stream', 'subject'].flatMap((name) => url.searchParams.get(name) ?? []);
    return [hostOf(url, '4222'), ...(names.length > 0 ? names : ['catalog.products'])].join(' ');
  },
  load: async () => (await import('./sinks/nats.ts')).createNatsSink,
};
const module: Kind = {
  kind: 'module',
  address: pathOf,
  load: async (url) => {
    const loaded = (await import(pathToFileURL(pathOf(url)).href)) as { createSink?: SinkFactory };
    if (typeof loaded.createSink !== 'function') throw new Error('it does not export a function createSink');
    return loaded.createSink;
  },
};

const KINDS: Readonly<Record<string, Kind>> = {
  'jsonl:': jsonl,
  'webhook+https:': webhook,
  'webhook+http:': webhook,
  'postgres:': postgres,
  'postgresql:': postgres,
  'redis:': redis,
  'rediss:': redis,
  'nats:': nats,
  'tls:': nats,
  'module:': module,
};

/** Stands for a text that may be secret, in an identity. */
function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** A webhook is identified by scheme, host, port and path, not by its query: that often contains a key that changes. */
function identityOf(
  kind: Kind,
  { pathname, search }: URL,
  address: string,
): Pick<SinkConfig, 'identity' | 'formerIdentity'> {
  const whole = `${address} ${digestOf(`${pathname}${search}`)}`;
  if (kind === webhook) return { identity: `${address} ${digestOf(pathname)}`, formerIdentity: whole };
  return { identity: kind === module ? whole : address };
}

function parseUrl(text: string): { url: URL; kind: Kind } | null {
  const kind = KINDS[/^[a-z+]+:/.exec(text)?.[0] ?? ''];
  // The URL class parses host and path of known protocols only.
  const address = text.replace(/^webhook\+/, '');
  return kind === undefined || !URL.canParse(address) ? null : { url: new URL(address), kind };
}

/** Names of secret options. A webhook's whole query is secret. */
const SECRET_NAME = /pass|secret|token|key|auth|credential/i;

/**
 * Lists what follows the first secret option of a query: a secret that is not percent-encoded may contain an `&`.
 * @returns each text as written and decoded
 */
function secretQuery({ protocol, search }: URL): string[] {
  const parts = search.slice(1).split('&');
  const first = /^https?:$/.test(protocol) ? 0 : parts.findIndex((part) => SECRET_NAME.test(part.split('=')[0] ?? ''));
  if (first === -1) return [];
  const [, ...values] = parts.slice(first).join('&').split('=');
  const texts = [values.join('='), ...parts.slice(first).flatMap((part) => part.split('=').slice(1))];
  // A part without `=` may belong to the secret before it.
  texts.push(...parts.slice(first + 1).filter((part) => !part.includes('=')));
  return texts.flatMap((text) => [text, decoded(text), decoded(text.replaceAll('+', ' '))]);
}

function secretsOf(url: URL, secret: string | undefined): string[] {
  const found = [secret, url.password, decoded(url.password)];
  // A user name without a password is a token, except in PostgreSQL.
  if (url.password === '' && !/^postgres/.test(url.protocol)) found.push(url.username, decoded(url.username));
  if (/^https?:$/.test(url.protocol)) found.push(url.pathname, decoded(url.pathname));
  found.push(...secretQuery(url));
  // Shorter texts occur in ordinary words. The longest first: it may contain another one.
  const long = new Set(found.filter((text): text is string => text !== undefined && text.length >= 4));
  return [...long].sort((a, b) => b.length - a.length);
}

/** Redacts secrets in a message: drivers may repeat what they were given. */
export function withoutSecrets({ secrets }: Pick<SinkConfig, 'secrets'>, text: string): string {
  return secrets.reduce((clean, secret) => clean.replaceAll(secret, '[secret]'), text);
}

function invalid(env: string, message: string, hint: string | undefined): CatchwordError {
  return new CatchwordError('CONFIG_INVALID', `${env}: ${message}`, hint === undefined ? {} : { hint });
}

/** Whether a part of the password was parsed as host, port or path: then an `@` comes after the host. */
function isMisparsed({ url, kind }: { url: URL; kind: Kind }): boolean {
  const rest = `${url.pathname}${url.search}${url.hash}`;
  // A webhook's path and query may contain an `@`, but with a port before it, it ends a password.
  if (kind === webhook) return url.port !== '' && rest.includes('@');
  return url.hash !== '' || rest.includes('@');
}

/** @throws CatchwordError CONFIG_INVALID, which names the variable but does not repeat its value */
export function sinkConfig({ env, name, url: text, secret }: SinkSetting): SinkConfig {
  const parsed = parseUrl(text);
  if (parsed === null) {
    const kinds = 'Use jsonl:PATH, webhook+https://…, postgres://…, redis://…, nats://… or module:PATH.';
    throw invalid(env, 'its value is not a valid sink address', `${kinds} ${text.includes('@') ? ENCODE : QUOTE}`);
  }
  const { url, kind } = parsed;
  const isPath = kind === jsonl || kind === module;
  if (isPath && url.pathname === '') throw invalid(env, 'the path is missing', `Use ${kind.kind}:PATH.`);
  if (isPath && (url.host !== '' || url.hash !== '')) {
    throw invalid(
      env,
      'the address contains a host or a #',
      `Use ${kind.kind}:PATH or ${kind.kind}:/PATH, and %23 for #.`,
    );
  }
  if (!isPath && isMisparsed(parsed)) throw invalid(env, 'the address cannot be parsed', ENCODE);
  if (kind === redis && !/^\/?\d*$/.test(url.pathname)) {
    throw invalid(env, 'the path is not a database number', 'Use redis://HOST:PORT/NUMBER?stream=NAME.');
  }
  if (!isPath && url.hostname === '') throw invalid(env, 'the host is missing', `Use ${kind.kind}://HOST….`);
  const settings: SinkSettings = { name, url, secret };
  const refused = COMMON_OPTIONS.refused.safeParse(optionsIn(url).get('refused') ?? undefined);
  if (!refused.success) throw invalid(env, 'the value of refused is not valid', 'Use refused=park or refused=stop.');
  const address = kind.address(url);
  const secrets = secretsOf(url, secret);
  return {
    name,
    kind: kind.kind,
    address,
    ...identityOf(kind, url, address),
    refused: refused.data,
    secrets,
    make: async () => {
      try {
        const create = await kind.load(url);
        return await create(settings);
      } catch (error) {
        const shown = withoutSecrets({ secrets }, messageOf(error));
        if (error instanceof CatchwordError) throw invalid(env, shown, error.hint);
        throw invalid(env, `${kind.address(url)} cannot be used (${shown})`, undefined);
      }
    },
  };
}
