import type { Event } from '../relay/targets.ts';
import { receivedFrom } from '../relay/targets.ts';
import type { Answer, Asked, Engine } from './engine.ts';

/*
 * A double of a broker for fake-kafkajs.mjs. Sources: "Transactions" of kafkajs, KIP-98 (an epoch for each producer of a
 * transactional id; a newer one ends the transaction of an older one, and fences it; readers stop before the first open
 * transaction; its end takes an offset), and `message.max.bytes` (for the batch of a partition).
 */

interface Message {
  readonly key: string;
  readonly value: string | null;
  readonly partition?: number;
}

interface Kept extends Message {
  readonly nth: number;
  state: 'open' | 'committed' | 'aborted' | 'control';
}

interface Given {
  readonly sasl: { readonly username: string; readonly password: string } | null;
  readonly transactionalId: string;
  readonly epoch: number;
  readonly commit: boolean;
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly topics: readonly string[];
  readonly topicMessages: readonly { readonly topic: string; readonly messages: readonly Message[] }[];
}

const MOST_BYTES = 1_048_588;
const PARTITIONS: Readonly<Record<string, number>> = { products: 3, 'products-position': 1 };

export function createKafka() {
  const topics = new Map(
    Object.entries(PARTITIONS).map(([name, count]) => [name, Array.from({ length: count }, (): Kept[] => [])]),
  );
  const producers = new Map<string, { epoch: number; open: Map<Kept[], Kept[]> }>();
  let nth = 0;

  const failed = (type: string): Answer => ({ status: 200, body: { type } });
  const done = (body: object = {}): Answer => ({ status: 200, body });

  /** Ends the transaction of a producer. The end takes an offset of each partition. */
  function end(open: Map<Kept[], Kept[]>, state: 'committed' | 'aborted'): void {
    for (const [log, messages] of open) {
      for (const message of messages) message.state = state;
      log.push({ key: '', value: null, nth: ++nth, state: 'control' });
    }
    open.clear();
  }

  function produce({ topicMessages }: Given, open: Map<Kept[], Kept[]>): Answer {
    const batches = new Map<Kept[], Kept[]>();
    for (const { topic, messages } of topicMessages) {
      const logs = topics.get(topic);
      if (logs === undefined) return failed('UNKNOWN_TOPIC_OR_PARTITION');
      for (const message of messages) {
        const log = logs[message.partition ?? Buffer.byteLength(message.key) % logs.length];
        if (log === undefined) return failed('UNKNOWN_TOPIC_OR_PARTITION');
        const kept: Kept = { ...message, nth: ++nth, state: 'open' };
        batches.set(log, [...(batches.get(log) ?? []), kept]);
      }
    }
    for (const batch of batches.values()) {
      const bytes = batch.reduce(
        (sum, { key, value }) => sum + Buffer.byteLength(key) + Buffer.byteLength(value ?? ''),
        0,
      );
      if (bytes > MOST_BYTES) return failed('MESSAGE_TOO_LARGE');
    }
    for (const [log, batch] of batches) {
      log.push(...batch);
      open.set(log, [...(open.get(log) ?? []), ...batch]);
    }
    return done();
  }

  /** Reads what is committed, up to the first message of an open transaction. */
  function fetch({ topic, partition, offset }: Given): Answer {
    const log = topics.get(topic)?.[partition];
    if (log === undefined) return failed('UNKNOWN_TOPIC_OR_PARTITION');
    const open = log.findIndex(({ state }) => state === 'open');
    const next = open === -1 ? log.length : open;
    return done({ messages: log.slice(offset, next).filter(({ state }) => state === 'committed'), next });
  }

  function answer({ path, body }: Asked): Answer {
    const given = JSON.parse(body) as Given;
    if (given.sasl?.username !== 'shop' || given.sasl.password !== 'pass:word')
      return failed('SASL_AUTHENTICATION_FAILED');
    const [request] = path;
    if (request === 'connect') return done();
    if (request === 'fetch') return fetch(given);
    if (request === 'topics')
      return given.topics.every((name) => topics.has(name)) ? done() : failed('UNKNOWN_TOPIC_OR_PARTITION');
    const producer = producers.get(given.transactionalId) ?? { epoch: -1, open: new Map<Kept[], Kept[]>() };
    producers.set(given.transactionalId, producer);
    if (request === 'init') {
      end(producer.open, 'aborted');
      return done({ epoch: ++producer.epoch });
    }
    if (given.epoch !== producer.epoch) return failed('INVALID_PRODUCER_EPOCH');
    if (request === 'produce') return produce(given, producer.open);
    if (producer.open.size === 0) return failed('INVALID_TXN_STATE');
    end(producer.open, given.commit ? 'committed' : 'aborted');
    return done();
  }

  /** The committed messages of products, in the order of arrival. */
  const committed = (): readonly Kept[] => {
    const all = (topics.get('products') ?? []).flat().filter(({ state }) => state === 'committed');
    return all.sort((a, b) => a.nth - b.nth);
  };
  const received = () => receivedFrom(committed().map(({ value }) => JSON.parse(String(value)) as Event));

  return {
    answer,
    module: 'kafka-sink.mjs',
    options: `brokers=127.0.0.1:PORT&topic=products&sasl=plain&client=${new URL('fake-kafkajs.mjs', import.meta.url).href}`,
    secret: 'shop:pass:word',
    committed,
    received,
    products: () => received().products,
  } satisfies Engine & Record<string, unknown>;
}
