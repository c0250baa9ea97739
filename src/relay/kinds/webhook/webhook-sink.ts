import { createTextSink } from '@catchword/sink-kit/connected-sink';
import { createHttpTarget, httpError } from '@catchword/sink-kit/http-target';
import type { SinkFactory } from '@catchword/sink-kit/sink';
import { readOptions } from '@catchword/sink-kit/sink-options';
import { webhookKind } from './webhook-kind.ts';

/**
 * CloudEvents in batches (`application/cloudevents-batch+json`), signed per Standard Webhooks. A 2xx status confirms a
 * batch; any other batch is sent again, so receivers deduplicate events by their `id`.
 */

const CONTENT_TYPE = 'application/cloudevents-batch+json; charset=utf-8';

const LINE_BREAK = 10;
const COMMA = 44;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;

/** Makes a JSON array of lines. */
function arrayOf(lines: Uint8Array): Buffer {
  const array = Buffer.allocUnsafe(lines.length + 1);
  array[0] = OPEN_BRACKET;
  array.set(lines, 1);
  for (let at = array.indexOf(LINE_BREAK); at !== -1; at = array.indexOf(LINE_BREAK, at + 1)) array[at] = COMMA;
  array[lines.length] = CLOSE_BRACKET;
  return array;
}

export const createWebhookSink: SinkFactory = (settings) => {
  const options = readOptions(settings.url, webhookKind.options);
  const isPrivateAllowed = options.allow === 'private';
  const target = createHttpTarget({ ...settings, timeoutMs: options.timeout * 1_000, isPrivateAllowed });
  return createTextSink({
    hide: settings.hide,
    batch: { events: options.batch, chars: 4_000_000 },
    connect: async (life) => target.connect(life),
    open: async (agent) => ({
      position: null,
      deliver: async ({ bytes, firstId, lastId }, { generation }, signal) => {
        const id = `${generation}:${firstId}-${lastId}`;
        await target.post(agent, { id, contentType: CONTENT_TYPE, body: arrayOf(bytes) }, signal);
      },
    }),
    check: async (_, signal) => {
      await target.tryToConnect(signal);
      const certificate = target.isEncrypted ? ', and its certificate is valid' : '';
      const unsigned = target.isSigned ? '' : '; without a secret, events are not signed';
      // Without TLS, a proxy connects when it gets a request.
      const reached = target.proxy === null || target.isEncrypted ? '' : `its proxy ${target.proxy} `;
      return `${reached}can be reached${certificate}; no request was sent, so its responses were not checked${unsigned}`;
    },
    toSinkError: httpError,
  });
};
