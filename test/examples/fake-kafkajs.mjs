/*
 * A double of kafkajs, as far as examples/kafka-sink.mjs uses it: it checks what it is called with, and asks the double of
 * a broker (fake-kafka.ts) by HTTP, so that several processes share one.
 */

export const logLevel = { NOTHING: 0, ERROR: 1 };

export class KafkaJSProtocolError extends Error {
  constructor(type) {
    super(`the broker at an address answered ${type}`);
    this.name = 'KafkaJSProtocolError';
    this.type = type;
  }
}

class KafkaJSConnectionError extends Error {
  name = 'KafkaJSConnectionError';
}

function expectKeys(value, known) {
  const [unknown] = Object.keys(value).filter((key) => !known.includes(key));
  if (unknown !== undefined) throw new TypeError(`kafkajs has no option ${unknown}`);
}

export class Kafka {
  #broker;
  #sasl;

  constructor({ brokers, ssl, sasl, ...rest }) {
    expectKeys(rest, ['clientId', 'logLevel']);
    if (rest.logLevel !== logLevel.NOTHING || ssl) throw new Error('the test expects silence, and no TLS');
    this.#broker = brokers[0];
    this.#sasl = sasl ?? null;
  }

  async #ask(path, value) {
    const body = JSON.stringify({ ...value, sasl: this.#sasl });
    const response = await fetch(`http://${this.#broker}/${path}`, { method: 'POST', body }).catch(() => {
      throw new KafkaJSConnectionError('Connection error');
    });
    const answer = await response.json();
    if (answer.type !== undefined) throw new KafkaJSProtocolError(answer.type);
    return answer;
  }

  producer({ transactionalId, idempotent, maxInFlightRequests, ...rest }) {
    expectKeys(rest, []);
    if (!idempotent || maxInFlightRequests !== 1) throw new Error('a transactional producer is not idempotent');
    let epoch = null;
    let isBusy = false;
    const end = async (commit) => {
      await this.#ask('end', { transactionalId, epoch, commit });
      isBusy = false;
    };
    return {
      connect: () => this.#ask('connect', {}),
      disconnect: async () => {},
      transaction: async () => {
        if (isBusy) throw new Error('There is already an ongoing transaction for this producer');
        epoch ??= (await this.#ask('init', { transactionalId })).epoch;
        isBusy = true;
        return {
          sendBatch: ({ topicMessages }) => {
            for (const { topic, messages, ...more } of topicMessages) {
              expectKeys(more, ['acks']);
              for (const { key, value, partition, headers, ...others } of messages) {
                expectKeys(others, []);
                const isRight = typeof topic === 'string' && typeof key === 'string' && value !== undefined;
                if (!isRight || !Number.isInteger(partition ?? 0) || typeof (headers ?? {}) !== 'object')
                  throw new TypeError('not a message');
              }
            }
            return this.#ask('produce', { transactionalId, epoch, topicMessages });
          },
          commit: () => end(true),
          abort: () => end(false),
        };
      },
    };
  }

  consumer({ groupId, readUncommitted, ...rest }) {
    expectKeys(rest, []);
    if (typeof groupId !== 'string' || readUncommitted) throw new Error('the test expects read_committed');
    let isRunning = false;
    let topic = null;
    let onCrash = () => {};
    return {
      events: { CRASH: 'consumer.crash' },
      on: (_, listener) => {
        onCrash = listener;
      },
      connect: () => this.#ask('connect', {}),
      subscribe: async ({ topics, fromBeginning, ...more }) => {
        expectKeys(more, []);
        if (isRunning || !fromBeginning) throw new Error('the test expects all messages');
        [topic] = topics;
      },
      run: async ({ autoCommit, eachMessage, ...more }) => {
        expectKeys(more, []);
        if (autoCommit !== false) throw new Error('the test expects no committed offsets');
        isRunning = true;
        const poll = async () => {
          for (let offset = 0; isRunning; ) {
            const { messages, next } = await this.#ask('fetch', { topic, partition: 0, offset });
            for (const { key, value } of messages) {
              await eachMessage({ topic, partition: 0, message: { key: Buffer.from(key), value: Buffer.from(value) } });
            }
            offset = next;
          }
        };
        poll().catch((error) => onCrash({ payload: { error } }));
      },
      disconnect: async () => {
        isRunning = false;
      },
    };
  }

  admin() {
    return {
      connect: () => this.#ask('connect', {}),
      disconnect: async () => {},
      fetchTopicMetadata: ({ topics }) => this.#ask('topics', { topics }),
    };
  }
}
