import { createHash } from 'node:crypto';
import { distrustOf } from '@catchword/base/certificate';
import { messageOf, systemCodeOf } from '@catchword/base/errors';
import { unbracketed } from '@catchword/base/loopback';
import { decoded } from '@catchword/base/percent-decode';
import type { Hide } from '@catchword/base/redact';
import { SinkError } from '@catchword/sink-kit/sink';
import { readOptions } from '@catchword/sink-kit/sink-options';
import { withTimeout } from '@catchword/sink-kit/with-timeout';
import * as z from 'zod';
import type { ChannelFactory } from '../channel.ts';

/*
 * Mail through one server. A connection is encrypted: `smtps://` from the start, `smtp://` with STARTTLS, which the
 * server must offer. `tls=off` turns that off, for a mail server on the same machine or network.
 */

const TIMEOUT_MS = 30_000;
const STEP_TIMEOUT_MS = 10_000;

/** Addresses without a name, a comment or anything else that has a meaning in a header. */
const ADDRESS = /^[^\s@<>()[\]\\,;:"\p{Cc}]+@[^\s@<>()[\]\\,;:"\p{Cc}]+$/u;
const FORM = 'an address such as shop@example.com';

const address = z.string(FORM).regex(ADDRESS, FORM);
const OPTIONS = {
  from: address,
  to: z
    .string(FORM)
    .transform((text) => text.split(',').map((one) => one.trim()))
    .pipe(z.array(z.string().regex(ADDRESS, `${FORM}, or several with commas`)).max(20, 'at most 20 addresses')),
  tls: z.enum(['off'], 'off').optional(),
};

/** Describes what nodemailer threw. The server's own answer says most. */
function mailError(error: unknown, hide: Hide): SinkError {
  if (error instanceof SinkError) return error;
  type MailError = { responseCode?: number; response?: string; originalCode?: string };
  const { responseCode = 0, response = '', originalCode = '' } = error as MailError;
  const code = systemCodeOf(error);
  const said = hide(messageOf(error));
  if (code === 'EAUTH') return new SinkError('misconfigured', `the mail server rejected the sign-in: ${said}`);
  const distrust = distrustOf(originalCode);
  if (distrust !== null) return new SinkError('misconfigured', distrust.text);
  if (/^ERR_SSL_(WRONG_VERSION|PACKET_LENGTH)/.test(originalCode)) {
    return new SinkError('misconfigured', 'this port does not encrypt from the start: use smtp://, for STARTTLS');
  }
  if (code === 'ETLS') return new SinkError('misconfigured', `the connection cannot be encrypted (${said})`);
  if (responseCode >= 400) {
    const failure = responseCode >= 500 ? 'misconfigured' : 'unavailable';
    return new SinkError(failure, `the mail server answered: ${hide(response, 300)}`);
  }
  return new SinkError('unavailable', `the mail server cannot be reached: ${said} (${code ?? 'no code'})`);
}

export const createSmtpChannel: ChannelFactory = ({ url, hide }) => {
  const own = new URL(url);
  // In a query, a plus means a space; in an address, it is a plus.
  own.search = url.search.replaceAll('+', '%2B');
  const { from, to, tls } = readOptions(own, OPTIONS, [], {});
  const isSecure = url.protocol === 'smtps:';
  const user = decoded(url.username);
  const transport = {
    host: unbracketed(url.hostname),
    port: Number(url.port) || (isSecure ? 465 : 587),
    secure: isSecure,
    requireTLS: !isSecure && tls !== 'off',
    ignoreTLS: !isSecure && tls === 'off',
    ...(user !== '' && { auth: { user, pass: decoded(url.password) } }),
    connectionTimeout: STEP_TIMEOUT_MS,
    greetingTimeout: STEP_TIMEOUT_MS,
    socketTimeout: STEP_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  };
  const domain = from.slice(from.indexOf('@') + 1);

  return async ({ id, subject, text }, signal) => {
    const { createTransport } = await import('nodemailer');
    const mail = {
      from: { name: 'catchword', address: from },
      to,
      subject,
      text,
      // Each try has the same id, so that a mail program recognises a repeated message.
      messageId: `<${createHash('sha256').update(id).digest('hex').slice(0, 32)}@${domain}>`,
      headers: { 'Auto-Submitted': 'auto-generated' },
    };
    try {
      const sent = await withTimeout(
        TIMEOUT_MS,
        (deadline) => createTransport(transport).sendMail({ ...mail, signal: deadline }),
        signal,
      );
      return sent.rejected.length === 0 ? null : `the mail server refused ${sent.rejected.join(', ')}`;
    } catch (error) {
      throw mailError(error, hide);
    }
  };
};
