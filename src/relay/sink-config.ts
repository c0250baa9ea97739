import { createHash } from 'node:crypto';
import { CatchwordError, messageOf } from '@catchword/base/errors';
import { hostUrls } from '@catchword/base/host-urls';
import { explainMissing } from '@catchword/base/missing-package';
import { decoded } from '@catchword/base/percent-decode';
import { printable } from '@catchword/base/printable';
import { type Hide, hiding } from '@catchword/base/redact';
import { collecting, type SinkSetting, settingsError } from '@catchword/settings/config';
import * as form from '@catchword/settings/setting-forms';
import { isSinkError, type Sink, SinkError } from '@catchword/sink-kit/sink';
import type { Fault, Kind, SinkKind } from '@catchword/sink-kit/sink-kind';
import { addressHint, BETWEEN_SECRETS, COMMON_OPTIONS, optionsIn, SECRET_NAME } from '@catchword/sink-kit/sink-options';
import * as z from 'zod';
import { type View, viewOrNull, viewText } from '../view/view.ts';
import { createIsolatedSink } from './isolated-sink.ts';
import { apartText, formsOf, KINDS } from './kinds/kinds.ts';
import { kindOfModule } from './kinds/module/module-kind.ts';

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
export function secretsOf(
  url: URL,
  { secret = '', headers = '' }: Partial<SinkSetting> = {},
  kind: Pick<SinkKind, 'hasPublicUser'> = {},
): string[] {
  const ofWebhook = [
    secret,
    ...secret.split(BETWEEN_SECRETS),
    ...secret.split(':').flatMap((part) => [part, decoded(part)]),
    ...headers.split(/^.*?:|\s+/m),
  ];
  const found = [...ofWebhook, url.password, decoded(url.password)];
  if (url.password === '' && kind.hasPublicUser !== true) found.push(url.username, decoded(url.username));
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
export function isMisparsed({ pathname, search, hash, port }: URL, isRequest = false): boolean {
  const hasAt = `${pathname}${search}${hash}`.includes('@');
  // The path and query of a request may contain an `@`, but with a port before it, it ends a password.
  return isRequest ? port !== '' && hasAt : hash !== '' || hasAt;
}

/** Finds the first fault of an address. */
function faultOf(url: URL, kind: string, { isPath = false, files = [], isRequest, ...own }: SinkKind): Fault | null {
  if (isPath && url.pathname === '') return ['the path is missing', `Use ${kind}:PATH.`];
  const paths = isPath ? [url.pathname] : files.map((option) => url.searchParams.get(option) ?? '');
  const [unfit] = paths.flatMap((given) => form.path.safeParse(given).error?.issues ?? []);
  if (unfit !== undefined) return ['a path is not whole', `It ${unfit.message}.`];
  if (isPath && (url.host !== '' || url.hash !== '')) {
    return ['the address contains a host or a #', `Use ${kind}:PATH or ${kind}:/PATH, and %23 for #.`];
  }
  if (!isPath && isMisparsed(url, isRequest)) return ['the address cannot be parsed', addressHint(url.href)];
  const fault = own.faultOf?.(url) ?? null;
  // A store of other code may be a file.
  return fault !== null || isPath || own.isForeign === true || url.hostname !== ''
    ? fault
    : ['the host is missing', `Use ${url.protocol}//HOST….`];
}

/** Finds the kind of an address. @returns it, and what makes errors that name the variable but do not repeat its value */
export function kindOf<K extends Kind<unknown>>(
  kinds: Readonly<Record<string, K>>,
  { env, url }: Pick<SinkSetting, 'env' | 'url'>,
) {
  const invalid = (message: string, hint?: string): CatchwordError =>
    new CatchwordError('CONFIG_INVALID', `${env}: ${message}`, hint === undefined ? {} : { hint });
  const scheme = /^[a-z0-9+]+:/.exec(url)?.[0] ?? '';
  const [kind = '', found] = Object.entries(kinds).find(([, { schemes }]) => schemes.includes(scheme)) ?? [];
  return { invalid, scheme, kind, found };
}

/** The address for the host that comes first, and for each; none if it cannot be parsed. */
function urlsOf(address: string, kind?: SinkKind): readonly URL[] {
  return (kind?.parse ?? hostUrls)(address);
}

/** The texts of the address of a sink that are secret. */
export function secretsIn(url: string): string[] {
  const { found } = kindOf(KINDS, { env: '', url });
  const [first] = urlsOf(url, found);
  return first === undefined ? [] : secretsOf(first, {}, found);
}

/** @throws CatchwordError CONFIG_INVALID, which names the variable but does not repeat its value */
export function sinkConfig(setting: SinkSetting): SinkConfig {
  const { env, name, url: text, secret, headers, proxies, again, problems = [] } = setting;
  if (problems.length > 0) throw settingsError(problems);
  const { invalid, ...known } = kindOf(KINDS, setting);
  const { kind, found } = setting.module === undefined ? known : kindOfModule(setting.module);
  const urls = urlsOf(text, found);
  const [url] = urls;
  if (found === undefined || url === undefined) {
    const forms = Object.values(KINDS).map((one) => formsOf(one)[0]);
    const hint = `Use ${forms.slice(0, -1).join(', ')} or ${forms.at(-1)}. ${addressHint(text)}`;
    throw invalid('its value is not a valid sink address', hint);
  }
  const fault = urls.map((one) => faultOf(one, kind, found)).find((one) => one !== null);
  if (fault) throw invalid(...fault);
  const names = found.isForeign === true ? [] : [...optionsIn(url).keys()];
  if (new Set(names).size < names.length) throw invalid('the address has an option twice', 'Remove one of them.');
  const common = z.object(COMMON_OPTIONS).safeParse(Object.fromEntries(optionsIn(url)));
  if (!common.success) {
    const [issue] = common.error.issues;
    throw invalid(`the value of ${String(issue?.path[0])} is not valid`, `Use ${issue?.message}.`);
  }
  const { drops = '' } = found;
  const incomparable = (why: string) =>
    invalid(`its store cannot be compared with its source: ${why}`, 'Remove verify from the address.');
  const obstacle = url.searchParams.has(drops) ? `${drops} drops events` : found.incomparable;
  if (common.data.verify !== undefined && obstacle !== undefined) throw incomparable(obstacle);
  const address = found.address(url, urls);
  const further = found.identifiedBy?.(url);
  // A digest, because the text may be secret.
  const digest = further === undefined ? '' : ` ${createHash('sha256').update(further).digest('base64url')}`;
  const identity = `${address}${digest}`;
  if (headers !== undefined && found.isRequest !== true)
    throw invalid('only the requests of webhooks have headers', `Remove ${env}_HEADERS.`);
  const mask = hiding(() => secretsOf(url, setting, found));
  // What a store says becomes a part of sentences, which terminals show.
  const hide: Hide = (said, most) => printable(mask(said, most));
  let errorText = (error: unknown) => (found.isForeign === true ? hide(messageOf(error)) : errorTextOf(error, hide));
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
        made = await createIsolatedSink(create, hide);
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
    const hint = `Let ${name} have ${apartText(kind)}, or remove its setting.`;
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
