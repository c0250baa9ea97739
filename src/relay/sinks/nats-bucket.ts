import {
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamClient,
  type JsMsg,
  type OrderedConsumerOptions,
  type StreamState,
} from '@nats-io/jetstream';
import * as z from 'zod';
import { type Filled, type Mark, SinkError, type SinkEvent } from '../sink.ts';
import { bucketOf } from '../store-digest.ts';
import type { Listed } from '../wrap-listed.ts';

/*
 * A key-value bucket as every client of NATS knows it: a stream that keeps the newest message of each subject, and a subject
 * for each key. A removed key has a message without data, which says so in a header.
 *
 * A fill does not empty the bucket. What it delivers gets higher numbers than the messages that were there, and the keys
 * that still have a lower one when it ends are removed.
 */

/** The option `kv`. */
export const bucketOption = z.string().regex(/^[\w-]+$/, 'a name of letters, digits, - and _');

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
  readonly state: () => Promise<StreamState>;
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
        seq: message.seq,
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
    /** Counts what a fill has delivered, and the rest without `kept`; null if it has ended. @param fill the last message before it */
    filled: async (open: OpenStream, fill: number, kept: readonly string[]): Promise<Filled | null> => {
      const { messages, first_seq } = await open.state();
      if (messages === 0 || first_seq > fill) return null;
      const counts = { delivered: 0, left: 0 };
      const isKept = new Set(kept);
      for await (const some of values(open, true)) {
        for (const { seq, vbid } of some) {
          if (seq > fill) counts.delivered++;
          else if (!isKept.has(vbid)) counts.left++;
        }
      }
      return counts;
    },
    /** Removes the keys that a fill did not deliver. @param fill the last message before it */
    removeLeft: async (open: OpenStream, fill: number, kept: readonly string[], mark: Mark): Promise<void> => {
      const { messages, first_seq, last_seq } = await open.state();
      // A fill without products leaves a removal with its mark: an empty bucket is one that was lost.
      if (messages === 0 && last_seq === fill) return await open.send(removals(['catchword'], mark));
      if (first_seq > fill) return;
      for await (const some of values(open, true)) {
        const old = some.filter(({ seq }) => seq <= fill);
        const left = old.flatMap(({ vbid }) => (kept.includes(vbid) ? [] : vbid));
        await open.send(removals(left, mark));
        if (old.length < some.length) return;
      }
    },
    listed: (open: OpenStream): Listed => ({
      list: async function* ({ whole }, buckets) {
        for await (const some of values(open, !whole))
          yield some.filter(({ vbid }) => buckets?.has(bucketOf(vbid)) ?? true);
        await open.checkedState();
      },
      apply: (events, extra, mark) =>
        open.send([...events.map((event) => ({ ...messageOf(event), mark })), ...removals(extra, mark)]),
    }),
  };
}
