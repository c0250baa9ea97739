import { type Mark, SinkError, type SinkEvent } from '@catchword/sink-kit/sink';
import { bucketOf } from '@catchword/sink-kit/store-digest';
import type { Listed } from '@catchword/sink-kit/wrap-listed';
import {
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamClient,
  type JsMsg,
  type OrderedConsumerOptions,
  type StreamState,
} from '@nats-io/jetstream';

/*
 * A key-value bucket as every client of NATS knows it: a stream that keeps the newest message of each subject, and a subject
 * for each key. A removed key has a message without data, which says so in a header.
 */

/** A message to publish. */
export interface Message {
  /** Differs from the id of the event before and after it. */
  readonly id: string;
  readonly subject: string;
  readonly text: string;
  /** The mark once it is stored. */
  readonly mark: Mark;
  /** What a message of a bucket does, besides a put. */
  readonly operation?: readonly [header: string, value: string] | undefined;
}

/** The most messages in one batch, written or read. */
export const BATCH_EVENTS = 500;

const OPERATION = 'KV-Operation';

/** The stream of a sink that is open. */
interface OpenStream {
  readonly client: JetStreamClient;
  readonly stream: string;
  /** @throws SinkError unavailable if another client has written to it */
  readonly checkedState: () => Promise<StreamState>;
  readonly send: (messages: readonly Message[]) => Promise<void>;
}

/** Reads messages, oldest first. */
export async function* messagesOf(
  { client, stream, checkedState }: Pick<OpenStream, 'client' | 'stream' | 'checkedState'>,
  policy: Partial<OrderedConsumerOptions> = {},
): AsyncGenerator<readonly JsMsg[]> {
  if ((await checkedState()).messages === 0) return;
  const consumer = await client.consumers.get(stream, policy);
  const messages = await consumer.consume();
  let some: JsMsg[] = [];
  try {
    for await (const message of messages) {
      some.push(message);
      const isLast = message.info.pending === 0;
      if (!isLast && some.length < BATCH_EVENTS) continue;
      yield some;
      if (isLast) return;
      some = [];
    }
    throw new SinkError('unavailable', `NATS: stream ${stream} was not read to its end`);
  } finally {
    messages.stop();
  }
}

/** Writes `=` and two hexadecimal digits for each byte of UTF-8 but letters, digits, - and _, so that no two keys are one. */
function keyOf(vbid: string): string {
  const escaped = encodeURIComponent(vbid).replaceAll('%', '=');
  return escaped.replace(/[.!~*'()]/g, (one) => `=${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** What a sink of a bucket does otherwise than one of a stream of events. */
export function createBucket(kv: string) {
  const subject = `$KV.${kv}.>`;

  /** What stores a product in its key, or removes the key. */
  const messageOf = ({ id, vbid, body }: Pick<SinkEvent, 'id' | 'vbid' | 'body'>) => ({
    id,
    subject: `$KV.${kv}.${keyOf(vbid)}`,
    text: body ?? '',
    operation: body === null ? ([OPERATION, 'DEL'] as const) : undefined,
  });
  const removals = (vbids: readonly string[], mark: Mark): Message[] =>
    vbids.map((vbid) => ({ ...messageOf({ id: 'left', vbid, body: null }), mark }));

  /** Reads the newest message of each key, oldest first, but not of removed keys. */
  async function* values(open: OpenStream, headersOnly: boolean) {
    const policy = { filter_subjects: subject, headers_only: headersOnly };
    for await (const messages of messagesOf(open, { ...policy, deliver_policy: DeliverPolicy.LastPerSubject })) {
      const living = messages.filter(({ headers }) => !['DEL', 'PURGE'].includes(headers?.get(OPERATION) ?? ''));
      yield living.map((message) => ({
        vbid: decodeURIComponent(message.subject.slice(subject.length - 1).replaceAll('=', '%')),
        body: message.string(),
      }));
    }
  }

  return {
    stream: `KV_${kv}`,
    subject,
    settings: {
      max_msgs_per_subject: 1,
      discard: DiscardPolicy.New,
      allow_rollup_hdrs: true,
      deny_delete: true,
      allow_direct: true,
    },
    messageOf,
    listed: (open: OpenStream): Listed => ({
      list: async function* ({ whole }, buckets) {
        for await (const some of values(open, !whole))
          yield some.filter(({ vbid }) => buckets?.has(bucketOf(vbid)) ?? true);
        await open.checkedState();
      },
      // A mark without products is a removal: a bucket without messages is one that was lost.
      apply: (events, extra, mark) => {
        const gone = events.length + extra.length === 0 ? ['catchword'] : extra;
        return open.send([...events.map((event) => ({ ...messageOf(event), mark })), ...removals(gone, mark)]);
      },
    }),
  };
}
