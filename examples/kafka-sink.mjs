/**
 * A sink for Kafka: each event is a message, in a transaction with the position. Create both topics, install your client
 * (npm install kafkajs), then configure
 *
 *   kafka-topics.sh --create --topic products
 *   kafka-topics.sh --create --topic products-position --partitions 1 --config cleanup.policy=compact
 *   CATCHWORD_SINK_BUS='module:examples/kafka-sink.mjs?brokers=kafka.example:9092&topic=products'
 *   CATCHWORD_SINK_BUS_SECRET=user:password, if the brokers want SASL; then also sasl=plain or sasl=scram-sha-256
 *
 * Readers use `read_committed`. With values=products a message has the product instead of the event, and no value once it
 * is removed, for a compacted topic. The transactional id is `catchword-<topic>`, groups begin with it: grant it both.
 */
import { randomUUID } from 'node:crypto';
import { SinkError } from 'catchword/sink';

const REFUSED = /^(MESSAGE_TOO_LARGE|RECORD_LIST_TOO_LARGE|INVALID_RECORD)$/;
const MISCONFIGURED = /AUTHORIZATION|AUTHENTICATION|SASL|UNKNOWN_TOPIC|UNSUPPORTED/i;

/** Names the error of a broker; the text of a client may contain addresses and more. */
function failure(error) {
  if (error instanceof SinkError) return error;
  const type = error.type ?? error.cause?.type ?? error.name;
  const kind = REFUSED.test(type) ? 'refused' : MISCONFIGURED.test(type) ? 'misconfigured' : 'unavailable';
  return new SinkError(kind, `Kafka failed with ${type}`);
}

/** Everything that depends on kafkajs. */
async function connect(options, topic, secret) {
  const { Kafka, logLevel } = await import(options.get('client') ?? 'kafkajs');
  const [username, ...password] = secret.split(':');
  const mechanism = options.get('sasl');
  const sasl = mechanism === null ? {} : { sasl: { mechanism, username, password: password.join(':') } };
  const brokers = options.get('brokers').split(',');
  const id = `catchword-${topic}`;
  const ssl = options.has('ssl') && options.get('ssl') !== 'false';
  // Its log goes to the standard output otherwise.
  const kafka = new Kafka({ clientId: id, brokers, ssl, ...sasl, logLevel: logLevel.NOTHING });
  const producer = kafka.producer({ transactionalId: id, idempotent: true, maxInFlightRequests: 1 });
  let consumer;
  return {
    begin: () => producer.connect(),
    /** Sends all messages, or none. The first transaction of a producer ends the ones of an earlier producer. */
    async transact(topicMessages) {
      const transaction = await producer.transaction();
      try {
        await transaction.sendBatch({ topicMessages });
      } catch (error) {
        // After an abort that fails, the next transaction does.
        await transaction.abort().catch(() => {});
        throw error;
      }
      await transaction.commit();
    },
    /** Gives the committed messages of a topic to `take`, until it returns true. */
    async read(from, take) {
      consumer = kafka.consumer({ groupId: `${id}-${randomUUID()}`, readUncommitted: false });
      await consumer.connect();
      await consumer.subscribe({ topics: [from], fromBeginning: true });
      await new Promise((resolve, reject) => {
        consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
        const eachMessage = async ({ message }) => take(String(message.key), String(message.value)) && resolve();
        consumer.run({ autoCommit: false, eachMessage }).catch(reject);
      });
      await consumer.disconnect();
      consumer = undefined;
    },
    async find(topics) {
      const admin = kafka.admin();
      await admin.connect();
      await admin.fetchTopicMetadata({ topics }).finally(() => admin.disconnect());
    },
    end: () => Promise.all([consumer?.disconnect(), producer.disconnect()]),
  };
}

/** @type {import('catchword/sink').SinkFactory} */
export async function createSink({ url: { searchParams: options }, secret = '' }) {
  const topic = options.get('topic') ?? 'products';
  const positions = `${topic}-position`;
  if (!options.has('brokers')) throw new Error('Use brokers=HOST:PORT,HOST:PORT');
  const contentOf = options.get('values') === 'products' ? ({ body }) => body : ({ text }) => text;
  const client = await connect(options, topic, secret);
  const calling = (call) => call.catch((error) => Promise.reject(failure(error)));

  /** Reads the newest position. A message of our own shows where the topic ended. */
  async function readPosition() {
    const opened = randomUUID();
    await client.transact([{ topic: positions, messages: [{ key: 'opened', value: opened, partition: 0 }] }]);
    let position = null;
    await client.read(positions, (key, value) => {
      if (key === 'position') position = JSON.parse(value);
      return value === opened;
    });
    return position;
  }

  return {
    // A broker takes 1 MB at once, unless its message.max.bytes says more; a character has at most 3 bytes.
    batch: { events: 1_000, chars: 300_000 },
    async open(mark) {
      await calling(client.begin());
      return (await calling(readPosition())) ?? { ...mark, cursor: 0, at: 0, late: 0 };
    },
    async deliver(events, mark) {
      const headers = { 'content-type': 'application/json' };
      const messages = events.map((event) => ({ key: event.vbid, value: contentOf(event), headers }));
      const position = { key: 'position', value: JSON.stringify(mark), partition: 0 };
      await calling(
        client.transact([
          { topic, messages },
          { topic: positions, messages: [position] },
        ]),
      );
    },
    async close() {
      await client.end();
    },
    async check() {
      await calling(client.find([topic, positions]));
      return `${topic} and ${positions} exist; the right to write was not checked`;
    },
  };
}
