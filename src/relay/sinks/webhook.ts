import * as z from 'zod';
import { createHttpTarget, httpError } from '../http-target.ts';
import type { SinkFactory } from '../sink.ts';
import { readOptions, wholeOption } from '../sink-options.ts';
import { createConnectedSink } from './connected-sink.ts';

/**
 * CloudEvents in batches (`application/cloudevents-batch+json`), signed per Standard Webhooks. A 2xx status confirms a
 * batch; any other batch is sent again, so receivers deduplicate events by their `id`.
 */

const OPTIONS = {
  batch: wholeOption(1, 10_000).default(100),
  /** Shorter than the relay's limit for a call. */
  timeout: wholeOption(1, 110).default(30),
  allow: z.enum(['private'], 'private').optional(),
};

const CONTENT_TYPE = 'application/cloudevents-batch+json; charset=utf-8';

export const createWebhookSink: SinkFactory = ({ url, secret }) => {
  const options = readOptions(url, OPTIONS);
  const isPrivateAllowed = options.allow === 'private';
  const target = createHttpTarget({ url, secret, timeoutMs: options.timeout * 1_000, isPrivateAllowed });
  return createConnectedSink({
    batch: { events: options.batch, chars: 4_000_000 },
    connect: async (life) => {
      const agent = target.connect((socket) => life.own(socket));
      life.atEnd(() => agent.destroy());
      return agent;
    },
    open: async (agent) => ({
      position: null,
      deliver: async (events, { generation }, signal) => {
        const id = `${generation}:${events[0]?.id}-${events.at(-1)?.id}`;
        const body = `[${events.map(({ text }) => text).join(',')}]`;
        await target.post(agent, { id, contentType: CONTENT_TYPE, body }, signal);
      },
    }),
    check: async (_, signal) => {
      await target.tryToConnect(signal);
      const certificate = target.isEncrypted ? ', and its certificate is valid' : '';
      const unsigned = target.isSigned ? '' : '; without a secret, events are not signed';
      return `can be reached${certificate}; no request was sent, so its responses were not checked${unsigned}`;
    },
    toSinkError: httpError,
  });
};
