import { CatchwordError } from '@catchword/base/errors';
import { decoded } from '@catchword/base/percent-decode';
import { printable } from '@catchword/base/printable';
import { hiding } from '@catchword/base/redact';
import type { SinkSetting } from '@catchword/settings/config';
import type { Kind } from '@catchword/sink-kit/sink-kind';
import { addressHint, ENCODE } from '@catchword/sink-kit/sink-options';
import { createErrorBoundary } from '../../relay/error-boundary.ts';
import { type Configured, errorTextOf, isMisparsed, kindOf, secretsOf } from '../../relay/sink-config.ts';
import type { ChannelFactory, Send } from './channel.ts';

export type ChannelConfig = Configured<Send>;

interface ChannelKind extends Kind<ChannelFactory> {
  /** Whether a part of the password was parsed as host, port or path. */
  isTorn(url: URL): boolean;
}

const isTornRequest = (url: URL): boolean => isMisparsed(url, true);

const KINDS: Readonly<Record<string, ChannelKind>> = {
  webhook: {
    schemes: ['webhook+https:', 'webhook+http:'],
    // The path and query of a webhook are often secret.
    address: ({ origin }) => origin,
    isTorn: isTornRequest,
    load: async () => (await import('./channels/http-channel.ts')).createWebhookChannel,
  },
  slack: {
    schemes: ['slack+https:', 'slack+http:'],
    address: ({ origin }) => origin,
    isTorn: isTornRequest,
    load: async () => (await import('./channels/http-channel.ts')).createSlackChannel,
  },
  smtp: {
    schemes: ['smtp:', 'smtps:'],
    address: ({ hostname, port, protocol }) => `${hostname}:${port || (protocol === 'smtps:' ? '465' : '587')}`,
    // A second question mark: the first one is in the password.
    isTorn: ({ hash, pathname, search }) =>
      hash !== '' || !['', '/'].includes(pathname) || search.slice(1).includes('?'),
    load: async () => (await import('./channels/smtp-channel.ts')).createSmtpChannel,
  },
};

/** @throws CatchwordError CONFIG_INVALID, which names the variable but does not repeat its value */
export function channelConfig(setting: SinkSetting): ChannelConfig {
  const { env, name, url: text, secret, headers, proxies, again } = setting;
  const { invalid, scheme, kind, found } = kindOf(KINDS, setting);
  // The URL class parses host and path of known protocols only.
  const plain = text.replace(/^(webhook|slack)\+/, '');
  if (found === undefined || !URL.canParse(plain)) {
    const kinds = 'Use webhook+https://…, slack+https://…, smtps://… or smtp://….';
    throw invalid('its value is not a valid address of a channel', `${kinds} ${addressHint(text)}`);
  }
  const url = new URL(plain);
  if (found.isTorn(url)) throw invalid('the address cannot be parsed', ENCODE);
  if (url.hostname === '') throw invalid('the host is missing', `Use ${scheme}//HOST….`);
  const [user, password] = [decoded(url.username), decoded(url.password)];
  // As mail servers get a password, and may repeat it.
  const encoded = [password, `\0${user}\0${password}`].map((one) => Buffer.from(one).toString('base64'));
  const hide = hiding(() => [...secretsOf(url, setting), ...(password === '' ? [] : encoded)]);
  let errorText = (error: unknown): string => printable(errorTextOf(error, hide)).slice(0, 500);
  return {
    name,
    kind,
    address: found.address(url, [url]),
    errorText: (error) => errorText(error),
    make: async () => {
      const now = await again?.();
      if (now !== undefined) {
        const next = channelConfig(now);
        errorText = next.errorText;
        return await next.make();
      }
      if (headers !== undefined && kind === 'smtp')
        throw invalid('a mail has no such headers', `Remove ${env}_HEADERS.`);
      if (secret !== undefined && kind !== 'webhook') {
        throw invalid('only webhooks are signed, so this channel has no secret', `Remove ${env}_SECRET.`);
      }
      try {
        const send = (await found.load(url))({ url, secret, headers, proxies, hide });
        const { confined } = createErrorBoundary(() => {}, hide);
        return (message, signal) => confined(() => send(message, signal));
      } catch (error) {
        throw invalid(errorText(error), error instanceof CatchwordError ? error.hint : undefined);
      }
    },
  };
}
