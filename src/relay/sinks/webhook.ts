import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { Agent, buildConnector, type Dispatcher, request } from 'undici';
import { z } from 'zod';
import { parseRetryAfter } from '../../backoff.ts';
import { CatchwordError, messageOf, systemCodeOf } from '../../errors.ts';
import { VERSION } from '../../version.ts';
import { withDeadline } from '../deadline.ts';
import { type Mark, type Sink, SinkError, type SinkEvent, type SinkFactory } from '../sink.ts';
import { QUOTE, readOptions, wholeOption } from '../sink-options.ts';
import { lookupPublic, refusePrivateLiteral } from './public-address.ts';

/**
 * CloudEvents in batches (`application/cloudevents-batch+json`), signed per Standard Webhooks. A status of 2xx is the
 * confirmation; what it was not received for is sent again, so a receiver tells events apart by their `id`.
 */

const OPTIONS = {
  batch: wholeOption(1, 10_000).default(100),
  /** Below what the relay grants a call. */
  timeout: wholeOption(1, 110).default(30),
  allow: z.enum(['private']).optional(),
};

const MAX_CHARS = 4_000_000;
const MAX_ANSWER = 65_536;
/** How long the rest of an answer is waited for, so that its connection can be used again. */
const BODY_MS = 1_000;
/** Statuses that say something about the events, rather than about the address or the receiver's state. */
const REFUSED = new Set([400, 413, 422]);

/** Signs with `whsec_…`; null where there is no secret. */
function signer(secret: string | undefined): Webhook | null {
  if (secret === undefined) return null;
  try {
    return new Webhook(secret);
  } catch (cause) {
    throw new CatchwordError('CONFIG_INVALID', 'its secret is not one of Standard Webhooks', {
      hint: 'It begins with whsec_ and goes on in base64: openssl rand -base64 32 makes one.',
      cause,
    });
  }
}

function headerText(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function failure(status: number, headers: IncomingHttpHeaders): SinkError {
  const message = `the receiver answered ${status}`;
  if (status === 410) return new SinkError('gone', `${message}: it wants no more events`);
  if (REFUSED.has(status)) return new SinkError('refused', message);
  if (status >= 300 && status < 400) {
    return new SinkError('misconfigured', `${message}: redirects are not followed; name the address itself`);
  }
  const retryAfterMs = parseRetryAfter(headerText(headers['retry-after']), Date.now())?.ms;
  const kind = status === 408 || status === 429 || status >= 500 ? 'unavailable' : 'misconfigured';
  return new SinkError(kind, message, retryAfterMs === undefined ? {} : { retryAfterMs });
}

/** The innermost error: undici wraps what the socket, or the look-up, said. */
function networkFailure(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof SinkError) return cause;
  const code = systemCodeOf(cause) ?? messageOf(cause);
  return new SinkError('unavailable', `the receiver cannot be reached or broke off (${code})`);
}

export const createWebhookSink: SinkFactory = ({ url, secret }): Sink => {
  const options = readOptions(url, OPTIONS);
  const isPrivateAllowed = options.allow === 'private';
  if (url.protocol === 'http:' && !isPrivateAllowed) {
    throw new CatchwordError('CONFIG_INVALID', 'webhook+http is for the own network only', {
      hint: `Use webhook+https, or add #allow=private. ${QUOTE}`,
    });
  }
  if (url.username !== '' || url.password !== '') {
    throw new CatchwordError('CONFIG_INVALID', 'no user name or password may stand in the address', {
      hint: 'Requests are signed with the secret.',
    });
  }
  const webhook = signer(secret);
  const target = new URL(url);
  target.hash = '';
  const timeoutMs = options.timeout * 1_000;
  let agent: Agent | undefined;

  function connectOptions() {
    if (!isPrivateAllowed) refusePrivateLiteral(target.hostname);
    return { timeout: timeoutMs, ...(!isPrivateAllowed && { lookup: lookupPublic }) };
  }

  function connect(): Agent {
    return new Agent({ connections: 1, pipelining: 1, connect: connectOptions() });
  }

  /** Connects as a delivery would, TLS included, and sends nothing: any request could be taken for an event. */
  async function reach(signal: AbortSignal): Promise<void> {
    const { hostname, host, protocol, port } = target;
    const connecting = buildConnector(connectOptions());
    const socket = await withDeadline(
      signal,
      timeoutMs,
      (deadline) =>
        new Promise<Socket>((resolve, reject) => {
          connecting({ hostname, host, protocol, port }, (error, connected) => {
            if (error !== null) return reject(error);
            if (deadline.aborted) connected.destroy();
            resolve(connected);
          });
        }),
    );
    socket.destroy();
  }

  function headersOf(id: string, body: string): Record<string, string> {
    const now = new Date();
    return {
      'content-type': 'application/cloudevents-batch+json; charset=utf-8',
      'user-agent': `catchword/${VERSION}`,
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      ...(webhook !== null && { 'webhook-signature': webhook.sign(id, now, body) }),
    };
  }

  async function post(id: string, body: string, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    agent ??= connect();
    const headers = headersOf(id, body);
    const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
    const asked = { method: 'POST', dispatcher: agent, headers, body, ...timeouts } as const;
    const response = await withDeadline(signal, timeoutMs, (deadline) =>
      request(target, { ...asked, signal: deadline }),
    );
    // The status decides. What it says besides is of no interest, and may be slow or endless: then the connection goes.
    const dumped = withDeadline(signal, BODY_MS, (deadline) =>
      response.body.dump({ limit: MAX_ANSWER, signal: deadline }),
    );
    await dumped.catch(() => {});
    return response;
  }

  return {
    batch: { events: options.batch, chars: MAX_CHARS },
    open: async () => null,
    deliver: async (events: readonly SinkEvent[], { incarnation, generation }: Mark, signal) => {
      const seqs = `${events[0]?.seq ?? 0}-${events.at(-1)?.seq ?? 0}`;
      let response: Dispatcher.ResponseData;
      try {
        const body = `[${events.map(({ text }) => text).join(',')}]`;
        response = await post(`${incarnation}:${generation}:${seqs}`, body, signal);
      } catch (error) {
        throw networkFailure(error);
      }
      const { statusCode, headers } = response;
      if (statusCode < 200 || statusCode > 299) throw failure(statusCode, headers);
    },
    close: async () => {
      await agent?.destroy();
      agent = undefined;
    },
    check: async (signal) => {
      try {
        await reach(signal);
      } catch (error) {
        throw networkFailure(error);
      }
      const secure = target.protocol === 'https:' ? ', and its certificate is valid' : '';
      const unsigned = webhook === null ? '; without a secret, events are not signed' : '';
      return `can be reached${secure}; nothing was sent, so its answers were not checked${unsigned}`;
    },
  };
};
