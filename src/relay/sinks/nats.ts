import {
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  StorageType,
  type StoredMsg,
} from '@nats-io/jetstream';
import { connect as connectNats, headers, type NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import { messageOf } from '../../errors.ts';
import { markSchema } from '../mark.ts';
import { type Mark, type Sink, SinkError, type SinkEvent, type SinkFactory } from '../sink.ts';
import { ageOption, decoded, readOptions, sizeText } from '../sink-options.ts';

/**
 * A JetStream stream with one message an event. Every message names the number that the stream must have come to before
 * it, and the message before: the server refuses all that follow one it did not get, so there is neither hole nor disorder
 * however many are on their way, whoever else writes. The last message tells how far the stream is, also when the server has lost its tail.
 */

const OPTIONS = {
  subject: z
    .string()
    .regex(/^[^\s.*>]+(\.[^\s.*>]+)*$/, 'a subject without wildcards is needed')
    .default('catalog.products'),
  stream: z
    .string()
    .regex(/^[^\s.*>/\\]+$/, 'a name without dots and spaces is needed')
    .optional(),
  /** Messages older than this are dropped; without it, the stream's own limits hold. */
  max_age: ageOption.optional(),
};

const CONNECT_TIMEOUT_MS = 10_000;
const PUBLISH_TIMEOUT_MS = 30_000;
/** Room for the headers in a message. */
const HEADER_BYTES = 1_024;
const MARK_HEADER = 'Catchword-Mark';
const NANOSECONDS = 1e6;

function failure(error: unknown): SinkError {
  if (error instanceof SinkError) return error;
  const name = error instanceof Error ? error.name : '';
  const isSetting = /Authorization|Permission|JetStreamNotEnabled|InvalidName/.test(name);
  return new SinkError(isSetting ? 'misconfigured' : 'unavailable', `NATS: ${messageOf(error)}`, { cause: error });
}

function isMissing(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}

function markText({ incarnation, generation, cursor, at, late }: Mark): string {
  return `${incarnation} ${generation} ${cursor} ${at} ${late}`;
}

function markFrom(text: string): Mark | null {
  const [incarnation, generation, cursor, at, late] = text.split(' ');
  const parsed = markSchema.safeParse({ incarnation, generation, cursor, at, late });
  return parsed.success ? parsed.data : null;
}

/** Each message is stored by itself, so each says how far the stream is with it. */
function markAt({ seq, at }: SinkEvent, isLast: boolean, mark: Mark): Mark {
  if (mark.late > 0) return { ...mark, late: seq };
  return isLast ? mark : { ...mark, cursor: seq, at };
}

export const createNatsSink: SinkFactory = ({ url }): Sink => {
  const options = readOptions(url, OPTIONS);
  const { subject, stream = subject.replaceAll('.', '-'), max_age: maxAgeMs } = options;
  const age = maxAgeMs === undefined ? undefined : maxAgeMs * NANOSECONDS;
  let connection: NatsConnection | undefined;
  let client: JetStreamClient | undefined;
  let lastSequence = 0;
  /** Bytes of a message, headers included. */
  let mostBytes = Number.POSITIVE_INFINITY;

  async function connect(): Promise<NatsConnection> {
    const user = decoded(url.username);
    const pass = decoded(url.password);
    try {
      return await connectNats({
        servers: `${url.hostname}:${url.port || '4222'}`,
        name: 'catchword',
        // The relay waits and opens anew, as with every sink.
        reconnect: false,
        timeout: CONNECT_TIMEOUT_MS,
        ...(url.protocol === 'tls:' && { tls: {} }),
        ...(user !== '' && (pass === '' ? { token: user } : { user, pass })),
      });
    } catch (error) {
      throw failure(error);
    }
  }

  function refuseOtherSubjects(subjects: readonly string[]): void {
    if (subjects.length === 1 && subjects[0] === subject) return;
    const message = `NATS: stream ${stream} holds ${subjects.join(', ')}; it must be for ${subject} alone`;
    throw new SinkError('misconfigured', message);
  }

  /** What is there, or would be made. */
  async function describeStream(manager: JetStreamManager): Promise<string> {
    try {
      const { config, state } = await manager.streams.info(stream);
      refuseOtherSubjects(config.subjects);
      await lastMark(manager);
      return `stream ${stream} is there, with ${state.messages} ${state.messages === 1 ? 'message' : 'messages'}`;
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    // Fails where JetStream is switched off, or not for this account.
    const { limits, streams } = await manager.getAccountInfo();
    if (limits.max_streams >= 0 && streams >= limits.max_streams) {
      throw new SinkError('misconfigured', `NATS: stream ${stream} is missing, and this account may make no more`);
    }
    const other = await manager.streams.find(subject).catch(() => null);
    if (other !== null) {
      throw new SinkError('misconfigured', `NATS: subject ${subject} belongs to stream ${other}, not to ${stream}`);
    }
    return `stream ${stream} is missing; the first delivery makes it`;
  }

  /** @returns false where nothing was ever in it: it may have had to be made */
  async function findStream(manager: JetStreamManager): Promise<boolean> {
    try {
      const { config, state } = await manager.streams.info(stream);
      refuseOtherSubjects(config.subjects);
      lastSequence = state.last_seq;
      if (age !== undefined && config.max_age !== age) await manager.streams.update(stream, { max_age: age });
      if (config.max_msg_size > 0) mostBytes = Math.min(mostBytes, config.max_msg_size);
      // Made by somebody else, or made anew: nothing was ever in it.
      return state.last_seq > 0;
    } catch (error) {
      if (!isMissing(error)) throw error;
      const limits = age === undefined ? {} : { max_age: age };
      await manager.streams.add({ name: stream, subjects: [subject], storage: StorageType.File, ...limits });
      lastSequence = 0;
      return false;
    }
  }

  /** The newest message that is there; of one that was deleted the server knows the number, and of some no more. */
  async function lastMessage({ streams }: JetStreamManager): Promise<StoredMsg | null> {
    const { state } = await streams.info(stream);
    if (state.messages === 0) return null;
    for (let seq = state.last_seq; seq >= state.first_seq; seq--) {
      const message = await streams.getMessage(stream, { seq });
      if (message !== null && message !== undefined) return message;
    }
    return null;
  }

  async function lastMark(manager: JetStreamManager): Promise<Mark | null> {
    const message = await lastMessage(manager);
    if (message === null) return null;
    const mark = markFrom(message.header.get(MARK_HEADER));
    if (mark === null) {
      throw new SinkError('misconfigured', `NATS: the last message of stream ${stream} is not of this sink`);
    }
    return mark;
  }

  async function publish(js: JetStreamClient, events: readonly SinkEvent[], mark: Mark): Promise<void> {
    const expected = lastSequence;
    // With their places: a message that the server lost, and still remembers, is not taken for a double.
    const ids = events.map(({ seq }, index) => `${mark.incarnation}:${mark.generation}:${seq}@${expected + index}`);
    const sent = events.map((event, index) => {
      const header = headers();
      header.set(MARK_HEADER, markText(markAt(event, index === events.length - 1, mark)));
      const before = ids[index - 1];
      return js.publish(subject, event.text, {
        msgID: ids[index] ?? '',
        // By its number alone, a message would fit behind one of somebody else's, which took the place of ours.
        expect: {
          streamName: stream,
          lastSequence: expected + index,
          ...(before !== undefined && { lastMsgID: before }),
        },
        headers: header,
        timeout: PUBLISH_TIMEOUT_MS,
        retries: 0,
      });
    });
    const results = await Promise.allSettled(sent);
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    lastSequence = expected + events.length;
  }

  return {
    batch: { events: 500, chars: 4_000_000 },
    open: async (mark) => {
      connection = await connect();
      try {
        client = jetstream(connection);
        mostBytes = connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
        const manager = await jetstreamManager(connection);
        // A stream that is gone holds nothing of what was confirmed.
        if (!(await findStream(manager))) return { ...mark, cursor: 0, at: 0, late: 0 };
        return await lastMark(manager);
      } catch (error) {
        throw failure(error);
      }
    },
    deliver: async (events, mark) => {
      if (client === undefined) throw new SinkError('unavailable', 'NATS: not connected');
      const most = mostBytes - HEADER_BYTES;
      if (events.some(({ text }) => text.length * 4 > most && Buffer.byteLength(text) > most)) {
        throw new SinkError('refused', `NATS: larger than the ${mostBytes} bytes that the server takes`);
      }
      try {
        await publish(client, events, mark);
      } catch (error) {
        throw failure(error);
      }
    },
    recheck: async () => {
      if (connection === undefined) throw new SinkError('unavailable', 'NATS: not connected');
      try {
        const manager = await jetstreamManager(connection);
        const { state } = await manager.streams.info(stream);
        if (state.last_seq === lastSequence) return;
        throw new SinkError('unavailable', `NATS: stream ${stream} is at ${state.last_seq}, not at ${lastSequence}`);
      } catch (error) {
        throw failure(error);
      }
    },
    size: async () => {
      const probe = await connect();
      try {
        const manager = await jetstreamManager(probe);
        const { config, state } = await manager.streams.info(stream);
        const limits = { max_age: config.max_age, max_msgs: config.max_msgs, max_bytes: config.max_bytes };
        const [limit] = Object.entries(limits).filter(([, value]) => value > 0);
        const text = `${state.messages} messages, ${sizeText(state.bytes)}`;
        return { text, limit: limit === undefined ? null : limit[0], option: 'max_age=30d' };
      } catch (error) {
        throw failure(error);
      } finally {
        await probe.close();
      }
    },
    close: async () => {
      const closing = connection;
      connection = undefined;
      client = undefined;
      await closing?.close();
    },
    check: async () => {
      const probe = await connect();
      try {
        const manager = await jetstreamManager(probe);
        return `${await describeStream(manager)}; the right to publish was not checked`;
      } catch (error) {
        throw failure(error);
      } finally {
        await probe.close();
      }
    },
  };
};
