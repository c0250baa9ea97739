import {
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamClient,
  type JsMsg,
  type OrderedConsumerOptions,
  type StreamState,
} from '@nats-io/jetstream';
import * as z from 'zod';
import { type Mark, SinkError, type SinkEvent, type Verifier } from '../sink.ts';
import { createValueVerifier } from './value-verifier.ts';

/*
 * A key-value bucket as every client of NATS knows it: a stream that keeps the newest message of each subject, and a subject
 * for each key. A removed key has a message without data, which says so in a header.
 *
 * A fill does not empty the bucket. What it delivers gets higher numbers than the messages that were there, and the keys
 * that still have a lower one when it ends are removed.
 */

/** The option `kv`. */
export const bucketOption = z.string().regex(/^[\w-]+$/, 'a name of letters, digits, - and _');

export const BUCKET_SETTINGS = {
  max_msgs_per_subject: 1,
  discard: DiscardPolicy.New,
  allow_rollup_hdrs: true,
  deny_delete: true,
  allow_direct: true,
};

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

/** @returns the stream of a bucket, and its subjects */
export function bucketNames(kv: string): Readonly<Record<'stream' | 'subject', string>> {
  return { stream: `KV_${kv}`, subject: `$KV.${kv}.>` };
}

/** Writes `=` and two hexadecimal digits for each byte of UTF-8 but letters, digits, - and _, so that no two keys are one. */
export function keyOf(vbid: string): string {
  const escaped = encodeURIComponent(vbid).replaceAll('%', '=');
  return escaped.replace(/[.!~*'()]/g, (one) => `=${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** What stores a product in its key, or removes the key. */
export function putOf(kv: string, { id, vbid, body }: Pick<SinkEvent, 'id' | 'vbid' | 'body'>) {
  const operation = body === null ? ([OPERATION, 'DEL'] as const) : undefined;
  return { id, subject: `$KV.${kv}.${keyOf(vbid)}`, text: body ?? '', operation };
}

/** How to read messages of an open stream. */
export interface StreamReader {
  readonly client: JetStreamClient;
  readonly stream: string;
  readonly state: () => Promise<StreamState>;
}

/** Reads messages of a stream, oldest first. */
export async function* messagesOf(
  { client, stream, state }: StreamReader,
  policy: Partial<OrderedConsumerOptions> = {},
): AsyncGenerator<readonly JsMsg[]> {
  if ((await state()).messages === 0) return;
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

interface BucketOptions {
  readonly kv: string;
  readonly reader: StreamReader;
  readonly send: (messages: readonly Message[]) => Promise<void>;
}

/** Reads and repairs the bucket of an open sink. */
export function createBucket({ kv, reader, send }: BucketOptions) {
  const { subject } = bucketNames(kv);

  /** Reads the newest message of each key, oldest first, but not of removed keys. */
  async function* values(headersOnly: boolean) {
    const policy = {
      deliver_policy: DeliverPolicy.LastPerSubject,
      filter_subjects: subject,
      headers_only: headersOnly,
    };
    for await (const messages of messagesOf(reader, policy)) {
      const living = messages.filter(({ headers }) => !['DEL', 'PURGE'].includes(headers?.get(OPERATION) ?? ''));
      yield living.map((message) => ({
        seq: message.seq,
        vbid: decodeURIComponent(message.subject.slice(subject.length - 1).replaceAll('=', '%')),
        text: message.string(),
      }));
    }
  }

  const put = (products: readonly Parameters<typeof putOf>[1][], mark: Mark): Promise<void> =>
    send(products.map((product) => ({ ...putOf(kv, product), mark })));
  const removal = (vbid: string) => ({ id: 'left', vbid, body: null });

  return {
    /** Removes the keys that a fill did not deliver. @param fill the last message before it */
    removeLeft: async (fill: number, kept: readonly string[], mark: Mark): Promise<void> => {
      if ((await reader.state()).first_seq > fill) return;
      for await (const some of values(true)) {
        const old = some.filter(({ seq }) => seq <= fill);
        await put(
          old.flatMap(({ vbid }) => (kept.includes(vbid) ? [] : removal(vbid))),
          mark,
        );
        if (old.length < some.length) return;
      }
    },
    /** @param recheck throws if another client has written to the bucket */
    verifier: (recheck: () => Promise<void>): Verifier =>
      createValueVerifier(
        async function* () {
          await recheck();
          for await (const some of values(false)) yield some.map(({ vbid, text }) => [vbid, text] as const);
          await recheck();
        },
        (events, extra, mark) => put([...events, ...extra.map(removal)], mark),
      ),
  };
}
