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
import { type Mark, type Sink, SinkError, type SinkEvent, type SinkFactory } from '../sink.ts';
import { ageOption, decoded, readOptions, sizeText } from '../sink-options.ts';
import { markAtStart, markSchema } from '../stored-mark.ts';
import { sinkErrorsBy } from './sink-errors.ts';

/**
 * A JetStream stream with one message per event. Every message names the stream's expected last number and the message
 * before it: the server rejects every message after one that it did not get, so nothing is lost or reordered, however many
 * are in flight and even if others write. The last message carries the mark, so it is right even after the server
 * lost its newest messages.
 */

const OPTIONS = {
  subject: z
    .string()
    .regex(/^[^\s.*>]+(\.[^\s.*>]+)*$/, 'a subject without wildcards')
    .default('catalog.products'),
  stream: z
    .string()
    .regex(/^[^\s.*>/\\]+$/, 'a name without dots and spaces')
    .optional(),
  /** Older messages are dropped; without it, the stream's own limits hold. */
  max_age: ageOption.optional(),
};

const CONNECT_TIMEOUT_MS = 10_000;
const PUBLISH_TIMEOUT_MS = 30_000;
/** Room for the headers of a message. */
const HEADER_BYTES = 1_024;
const MARK_HEADER = 'Catchword-Mark';
const NANOSECONDS = 1e6;

const orSinkError = sinkErrorsBy((error) => {
  const name = error instanceof Error ? error.name : '';
  const isSetting = /Authorization|Permission|JetStreamNotEnabled|InvalidName/.test(name);
  return new SinkError(isSetting ? 'misconfigured' : 'unavailable', `NATS: ${messageOf(error)}`, { cause: error });
});

function isNotFound(error: unknown): boolean {
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

/** The mark once this message is stored: each message is stored by itself. */
function markWith({ seq, at }: SinkEvent, isLast: boolean, mark: Mark): Mark {
  if (mark.late > 0) return { ...mark, late: seq };
  return isLast ? mark : { ...mark, cursor: seq, at };
}

interface StreamNames {
  readonly stream: string;
  readonly subject: string;
}

async function connect(url: URL): Promise<NatsConnection> {
  const user = decoded(url.username);
  const pass = decoded(url.password);
  return await connectNats({
    servers: `${url.hostname}:${url.port || '4222'}`,
    name: 'catchword',
    // The relay reconnects.
    reconnect: false,
    timeout: CONNECT_TIMEOUT_MS,
    ...(url.protocol === 'tls:' && { tls: {} }),
    ...(user !== '' && (pass === '' ? { token: user } : { user, pass })),
  });
}

/** Runs `work` on a connection of its own. */
async function probe<T>(url: URL, work: (manager: JetStreamManager) => Promise<T>): Promise<T> {
  const probing = await connect(url);
  try {
    return await work(await jetstreamManager(probing));
  } finally {
    await probing.close();
  }
}

function rejectOtherSubjects({ stream, subject }: StreamNames, subjects: readonly string[]): void {
  if (subjects.length === 1 && subjects[0] === subject) return;
  const message = `NATS: stream ${stream} has the subjects ${subjects.join(', ')}; it must have ${subject} alone`;
  throw new SinkError('misconfigured', message);
}

/** The newest message that was not deleted. */
async function lastMessage({ streams }: JetStreamManager, stream: string): Promise<StoredMsg | null> {
  const { state } = await streams.info(stream);
  if (state.messages === 0) return null;
  for (let seq = state.last_seq; seq >= state.first_seq; seq--) {
    const message = await streams.getMessage(stream, { seq });
    if (message !== null && message !== undefined) return message;
  }
  return null;
}

async function readMark(manager: JetStreamManager, stream: string): Promise<Mark | null> {
  const message = await lastMessage(manager, stream);
  if (message === null) return null;
  const mark = markFrom(message.header.get(MARK_HEADER));
  if (mark !== null) return mark;
  throw new SinkError('misconfigured', `NATS: this sink did not write the last message of stream ${stream}`);
}

/** Describes the stream, or whether it can be created. */
async function describeStream(manager: JetStreamManager, names: StreamNames): Promise<string> {
  const { stream, subject } = names;
  try {
    const { config, state } = await manager.streams.info(stream);
    rejectOtherSubjects(names, config.subjects);
    await readMark(manager, stream);
    return `stream ${stream} exists, with ${state.messages} ${state.messages === 1 ? 'message' : 'messages'}`;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  // Fails if JetStream is disabled, on the server or for this account.
  const { limits, streams } = await manager.getAccountInfo();
  if (limits.max_streams >= 0 && streams >= limits.max_streams) {
    throw new SinkError('misconfigured', `NATS: stream ${stream} does not exist, and this account cannot create more`);
  }
  const other = await manager.streams.find(subject).catch(() => null);
  if (other !== null) {
    throw new SinkError('misconfigured', `NATS: subject ${subject} belongs to stream ${other}, not to ${stream}`);
  }
  return `stream ${stream} does not exist; the first delivery creates it`;
}

export const createNatsSink: SinkFactory = ({ url }): Sink => {
  const options = readOptions(url, OPTIONS);
  const { subject, stream = subject.replaceAll('.', '-'), max_age: maxAgeMs } = options;
  const names: StreamNames = { stream, subject };
  const maxAge = maxAgeMs === undefined ? undefined : maxAgeMs * NANOSECONDS;
  let connection: NatsConnection | undefined;
  let client: JetStreamClient | undefined;
  let lastSequence = 0;
  /** Limit of a message, headers included. */
  let maxBytes = Number.POSITIVE_INFINITY;

  function notConnected(): SinkError {
    return new SinkError('unavailable', 'NATS: not connected');
  }

  /** Creates the stream if needed. @returns false for a stream that never had a message */
  async function prepareStream(manager: JetStreamManager): Promise<boolean> {
    const limits = maxAge === undefined ? {} : { max_age: maxAge };
    try {
      const { config, state } = await manager.streams.info(stream);
      rejectOtherSubjects(names, config.subjects);
      lastSequence = state.last_seq;
      if (maxAge !== undefined && config.max_age !== maxAge) await manager.streams.update(stream, limits);
      if (config.max_msg_size > 0) maxBytes = Math.min(maxBytes, config.max_msg_size);
      return state.last_seq > 0;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await manager.streams.add({ name: stream, subjects: [subject], storage: StorageType.File, ...limits });
      lastSequence = 0;
      return false;
    }
  }

  async function publish(js: JetStreamClient, events: readonly SinkEvent[], mark: Mark): Promise<void> {
    const expected = lastSequence;
    // The ids name the message's number: the server may remember the id of a message that it lost.
    const ids = events.map(({ seq }, index) => `${mark.incarnation}:${mark.generation}:${seq}@${expected + index}`);
    const sent = events.map((event, index) => {
      const header = headers();
      header.set(MARK_HEADER, markText(markWith(event, index === events.length - 1, mark)));
      const before = ids[index - 1];
      return js.publish(subject, event.text, {
        msgID: ids[index] ?? '',
        // The number alone does not suffice: another client's message could have taken the place of ours.
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
    open: (mark) =>
      orSinkError(async () => {
        connection = await connect(url);
        client = jetstream(connection);
        maxBytes = connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
        const manager = await jetstreamManager(connection);
        // Without the stream, nothing that was confirmed is left.
        return (await prepareStream(manager)) ? await readMark(manager, stream) : markAtStart(mark);
      }),
    deliver: (events, mark) =>
      orSinkError(async () => {
        if (client === undefined) throw notConnected();
        const most = maxBytes - HEADER_BYTES;
        if (events.some(({ text }) => text.length * 4 > most && Buffer.byteLength(text) > most)) {
          throw new SinkError('refused', `NATS: an event is larger than the server's limit of ${maxBytes} bytes`);
        }
        await publish(client, events, mark);
      }),
    recheck: () =>
      orSinkError(async () => {
        if (connection === undefined) throw notConnected();
        const manager = await jetstreamManager(connection);
        const { state } = await manager.streams.info(stream);
        if (state.last_seq === lastSequence) return;
        const message = `NATS: stream ${stream} is at message ${state.last_seq}, not at ${lastSequence}`;
        throw new SinkError('unavailable', message);
      }),
    size: () =>
      orSinkError(() =>
        probe(url, async (manager) => {
          const { config, state } = await manager.streams.info(stream);
          const limits = { max_age: config.max_age, max_msgs: config.max_msgs, max_bytes: config.max_bytes };
          const [limit] = Object.entries(limits).filter(([, value]) => value > 0);
          const text = `${state.messages} messages, ${sizeText(state.bytes)}`;
          return { text, limit: limit === undefined ? null : limit[0], option: 'max_age=30d' };
        }),
      ),
    close: async () => {
      const closing = connection;
      connection = undefined;
      client = undefined;
      await closing?.close();
    },
    check: () =>
      orSinkError(() =>
        probe(url, async (manager) => `${await describeStream(manager, names)}; the right to publish was not checked`),
      ),
  };
};
