import { DeliverPolicy, DiscardPolicy, type JetStreamClient, type JsMsg } from '@nats-io/jetstream';
import * as z from 'zod';
import { SinkError, type SinkEvent } from '../sink.ts';

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

/** The newest message of a key. */
interface KeyMessage {
  /** Its number in the stream. */
  readonly seq: number;
  readonly vbid: string;
  /** Null: the key was removed. */
  readonly text: string | null;
}

function keyMessageOf(message: JsMsg, prefix: number): KeyMessage {
  const vbid = decodeURIComponent(message.subject.slice(prefix).replaceAll('=', '%'));
  const isRemoved = ['DEL', 'PURGE'].includes(message.headers?.get(OPERATION) ?? '');
  return { seq: message.seq, vbid, text: isRemoved ? null : message.string() };
}

/**
 * Reads the newest message of each key of a bucket that has messages, oldest first.
 * @param headersOnly without values: `text` is empty
 */
export async function* lastMessages(
  client: JetStreamClient,
  kv: string,
  headersOnly: boolean,
): AsyncGenerator<KeyMessage> {
  const { stream, subject } = bucketNames(kv);
  const policy = { deliver_policy: DeliverPolicy.LastPerSubject, filter_subjects: subject, headers_only: headersOnly };
  const consumer = await client.consumers.get(stream, policy);
  const messages = await consumer.consume();
  try {
    for await (const message of messages) {
      yield keyMessageOf(message, subject.length - 1);
      if (message.info.pending === 0) return;
    }
    throw new SinkError('unavailable', `NATS: bucket ${kv} was not read to its end`);
  } finally {
    messages.stop();
  }
}
