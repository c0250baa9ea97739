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

/** Reads messages of a stream that has some, oldest first. */
export async function* messagesOf(
  client: JetStreamClient,
  stream: string,
  policy: Partial<OrderedConsumerOptions>,
): AsyncGenerator<readonly JsMsg[]> {
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
  readonly client: JetStreamClient;
  /** Reads the state of its stream. */
  readonly state: () => Promise<StreamState>;
  readonly send: (messages: readonly Message[]) => Promise<void>;
}

/** Reads and repairs the bucket of an open sink. */
export function createBucket({ kv, client, state, send }: BucketOptions) {
  const { stream, subject } = bucketNames(kv);

  /** Reads the newest message of each key, oldest first, but not of removed keys. */
  async function* values(headersOnly: boolean) {
    if ((await state()).messages === 0) return;
    const policy = {
      deliver_policy: DeliverPolicy.LastPerSubject,
      filter_subjects: subject,
      headers_only: headersOnly,
    };
    for await (const messages of messagesOf(client, stream, policy)) {
      const living = messages.filter(({ headers }) => !['DEL', 'PURGE'].includes(headers?.get(OPERATION) ?? ''));
      yield living.map((message) => ({
        seq: message.seq,
        vbid: decodeURIComponent(message.subject.slice(subject.length - 1).replaceAll('=', '%')),
        text: message.string(),
      }));
    }
  }

  const remove = (vbids: readonly string[], mark: Mark): Promise<void> =>
    send(vbids.map((vbid) => ({ ...putOf(kv, { id: 'left', vbid, body: null }), mark })));

  return {
    /** Removes the keys that a fill did not deliver. @param fill the last message before it */
    removeLeft: async (fill: number, kept: readonly string[], mark: Mark): Promise<void> => {
      if ((await state()).first_seq > fill) return;
      for await (const some of values(true)) {
        const old = some.filter(({ seq }) => seq <= fill);
        const left = old.flatMap(({ vbid }) => (kept.includes(vbid) ? [] : vbid));
        if (left.length > 0) await remove(left, mark);
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
        async (events, extra, mark) => {
          if (events.length > 0) await send(events.map((event) => ({ ...putOf(kv, event), mark })));
          if (extra.length > 0) await remove(extra, mark);
        },
      ),
  };
}
