import { createConnectedSink, type OpenStore } from '@catchword/sink-kit/connected-sink';
import { listFolded, trimmedError } from '@catchword/sink-kit/folded-events';
import { type Mark, SinkError, type SinkEvent, type SinkFactory } from '@catchword/sink-kit/sink';
import { excludeOptions, readOptions, sizeText } from '@catchword/sink-kit/sink-options';
import { emptyPosition, markAtStart, markSchema } from '@catchword/sink-kit/stored-mark';
import {
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  PubHeaders,
  StorageType,
  type StreamInfo,
  type StreamState,
} from '@nats-io/jetstream';
import {
  createInbox,
  type MsgHdrs,
  MsgHdrsImpl,
  type NatsConnection,
  RequestError,
  TimeoutError,
} from '@nats-io/transport-node';
import { BATCH_EVENTS, createBucket, type Message, messagesOf } from './nats-bucket.ts';
import { connect, toSinkError } from './nats-connection.ts';
import { natsKind } from './nats-kind.ts';

/**
 * A JetStream stream with one message per event. Every message names the stream's expected last number and the message
 * before it: the server rejects every message after one that it did not get, so nothing is lost or reordered, however many
 * are in flight and even if others write. The last message carries the mark, so it is right even after the server
 * lost its newest messages.
 *
 * A bucket (nats-bucket.ts) is such a stream, which keeps the newest message of each subject: a subject for each product.
 */

const PUBLISH_TIMEOUT_MS = 30_000;
const CHECK_TIMEOUT_MS = 2_000;
/** Room for the headers of a message. */
const HEADER_BYTES = 1_024;
const MARK_HEADER = 'Catchword-Mark';
const NANOSECONDS = 1e6;

/** The mark once this message is stored: each message is stored by itself. */
function markWith({ seq, at }: SinkEvent, isLast: boolean, mark: Mark): Mark {
  if (mark.late > 0) return { ...mark, late: seq };
  return isLast ? mark : { ...mark, cursor: seq, at };
}

/** `subject`: of the stream. */
type StreamNames = Readonly<Record<'stream' | 'subject', string>>;

/**
 * Publishes messages that each expect the one before, so the answer to the last one confirms them all. The driver's
 * requests take four times as long, because each creates its possible errors in advance (measured).
 */
function createPublisher(connection: NatsConnection, stream: string, inboxPrefix: string) {
  const client = jetstream(connection);
  const inbox = createInbox(inboxPrefix);
  /** The first error of an answer. After an error, the relay connects again. */
  let refusal: string | null = null;
  connection.subscribe(inbox, {
    callback: (error, answer) => {
      // Without data, no stream has the subject: the answer to the last message says so, too.
      if (refusal !== null || error !== null || answer.data.length === 0) return;
      const { error: refused } = answer.json<{ error?: { description: string } }>();
      refusal = refused?.description ?? null;
    },
  });
  /** Publishes the last message. @throws the first error of all messages */
  async function confirm(subject: string, text: string, headers: MsgHdrs): Promise<void> {
    try {
      await client.publish(subject, text, { headers, timeout: PUBLISH_TIMEOUT_MS, retries: 0 });
    } catch (error) {
      throw refusal === null ? error : new Error(refusal, { cause: error });
    }
  }

  /** @param last number of the stream's last message */
  return async (messages: readonly Message[], last: number): Promise<void> => {
    let before: string | undefined;
    for (const [index, { subject, text, mark, operation, ...message }] of messages.entries()) {
      const { incarnation, generation, cursor, at, late } = mark;
      // The id names the message's number: the server may remember the id of a message that it lost.
      const id = `${generation}:${message.id}@${last + index}`;
      const headers = MsgHdrsImpl.fromRecord({
        [MARK_HEADER]: [[incarnation, generation, cursor, at, late].join(' ')],
        [PubHeaders.MsgIdHdr]: [id],
        [PubHeaders.ExpectedStreamHdr]: [stream],
        [PubHeaders.ExpectedLastSeqHdr]: [String(last + index)],
        // The number alone does not suffice: another client's message could have taken the place of ours.
        ...(before !== undefined && { [PubHeaders.ExpectedLastMsgIdHdr]: [before] }),
        ...(operation !== undefined && { [operation[0]]: [operation[1]] }),
      });
      before = id;
      if (index < messages.length - 1) connection.publish(subject, text, { headers, reply: inbox });
      else await confirm(subject, text, headers);
    }
  };
}

/** @returns null if the stream does not exist */
async function findStream({ streams }: JetStreamManager, { stream, subject }: StreamNames): Promise<StreamInfo | null> {
  try {
    const info = await streams.info(stream);
    const { subjects, max_age, max_bytes, max_msgs, discard } = info.config;
    const dropsOld = discard === DiscardPolicy.Old && Math.max(max_bytes, max_msgs) > 0;
    if (subject.startsWith('$KV.') && (max_age > 0 || dropsOld)) {
      const cause = max_age > 0 ? 'by their age: remove its TTL' : 'when it is full: let it discard new messages';
      throw new SinkError('misconfigured', `NATS: bucket ${stream} drops products ${cause}`);
    }
    if (subjects.length === 1 && subjects[0] === subject) return info;
    const message = `NATS: stream ${stream} has the subjects ${subjects.join(', ')}; it must have ${subject} alone`;
    throw new SinkError('misconfigured', message);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return null;
    throw error;
  }
}

/** The mark of the newest message that was not deleted. */
async function readMark({ streams }: JetStreamManager, { config: { name: stream }, state }: StreamInfo) {
  if (state.messages === 0) return null;
  for (let seq = state.last_seq; seq >= state.first_seq; seq--) {
    const message = await streams.getMessage(stream, { seq });
    if (message === null || message === undefined) continue;
    const [incarnation, generation, cursor, at, late] = message.header.get(MARK_HEADER).split(' ');
    const mark = markSchema.safeParse({ incarnation, generation, cursor, at, late });
    if (mark.success) return mark.data;
    throw new SinkError('misconfigured', `NATS: this sink did not write the last message of stream ${stream}`);
  }
  return null;
}

/** Describes the stream. @throws what the first delivery would */
async function describeStream(
  manager: JetStreamManager,
  { stream, subject }: StreamNames,
  found: StreamInfo | null,
  tell?: (mark: Mark) => void,
) {
  if (found !== null) {
    const written = await readMark(manager, found);
    if (written !== null) tell?.(written);
    const { messages } = found.state;
    return `stream ${stream} exists, with ${messages} ${messages === 1 ? 'message' : 'messages'}`;
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

/** Makes requests that the server refuses, so that they change nothing. A user without the right gets another error. */
async function requireRights(connection: NatsConnection, subjects: readonly string[]): Promise<void> {
  const headers = MsgHdrsImpl.fromRecord({ [PubHeaders.ExpectedStreamHdr]: ['not.a.stream'] });
  for (const to of subjects) {
    await connection.request(to, '', { headers, timeout: CHECK_TIMEOUT_MS }).catch((error: unknown) => {
      // Before the stream exists, its subject has no listener, or one that does not answer.
      const isUnheard = error instanceof RequestError && error.isNoResponders();
      if (!isUnheard && !(error instanceof TimeoutError)) throw error;
    });
  }
}

export const createNatsSink: SinkFactory = (settings) => {
  const options = readOptions(settings.url, natsKind.options);
  const { kv, max_age: maxAgeMs } = options;
  if (kv !== undefined) excludeOptions(settings.url, 'kv', ['stream', 'subject', 'max_age']);
  const bucket = kv === undefined ? null : createBucket(kv);
  const { stream = options.subject.replaceAll('.', '-'), subject } = bucket ?? options;
  const names = { stream, subject };
  const limits = maxAgeMs === undefined ? {} : { max_age: maxAgeMs * NANOSECONDS };

  async function open(connection: NatsConnection, mark: Mark): Promise<OpenStore> {
    const publish = createPublisher(connection, stream, options.inbox_prefix);
    const manager = await jetstreamManager(connection);
    const { streams } = manager;
    const found = await findStream(manager, names);
    let last = found?.state.last_seq ?? 0;
    let isEmpty = (found?.state.messages ?? 0) === 0;
    const written = found === null ? null : await readMark(manager, found);
    if (found === null) {
      const storage = StorageType.File;
      await streams.add({ name: stream, subjects: [subject], storage, ...limits, ...bucket?.settings });
    } else if (limits.max_age !== undefined && found.config.max_age !== limits.max_age) {
      // Not before the mark is read: a shorter limit drops messages, which may belong to another application.
      await streams.update(stream, limits);
    }
    const limitsOfSize = [connection.info?.max_payload ?? -1, found?.config.max_msg_size ?? -1];
    const maxBytes = Math.min(...limitsOfSize.filter((bytes) => bytes > 0));

    async function send(messages: readonly Message[]): Promise<void> {
      const most = maxBytes - HEADER_BYTES;
      if (messages.some(({ text }) => text.length * 4 > most && Buffer.byteLength(text) > most)) {
        throw new SinkError('refused', `NATS: an event is larger than the server's limit of ${maxBytes} bytes`);
      }
      await publish(messages, last);
      last += messages.length;
      isEmpty = false;
    }

    async function checkedState(): Promise<StreamState> {
      const { state: found } = await streams.info(stream);
      if (bucket !== null && found.messages === 0 && !isEmpty) {
        throw new SinkError('unavailable', `NATS: another client has emptied bucket ${kv}`);
      }
      if (found.last_seq === last) return found;
      throw new SinkError('unavailable', `NATS: stream ${stream} is at message ${found.last_seq}, not at ${last}`);
    }

    const opened = { client: jetstream(connection), stream, checkedState, send };

    return {
      // Without messages, nothing that was confirmed is left; but other programs may purge a stream of events.
      position:
        written ??
        (bucket !== null ? emptyPosition(mark, `bucket ${kv} is empty`) : last > 0 ? null : markAtStart(mark)),
      deliver: (events, mark) =>
        send(
          events.map((event, index) => ({
            ...(bucket?.messageOf(event) ?? { id: event.id, subject, text: event.text }),
            mark: markWith(event, index === events.length - 1, mark),
          })),
        ),
      recheck: async () => void (await checkedState()),
      ...(bucket?.listed(opened) ?? {
        list: listFolded(settings.name, async function* () {
          const { messages, last_seq } = await checkedState();
          if (messages < last_seq) throw trimmedError(`stream ${stream}`);
          for await (const some of messagesOf(opened)) yield some.map((message) => message.string());
        }),
      }),
    };
  }

  return createConnectedSink({
    hide: settings.hide,
    has: bucket === null ? ['list'] : ['list', 'apply'],
    batch: { events: BATCH_EVENTS, chars: 4_000_000 },
    connect: (life) => connect(settings, options, life),
    open,
    // A bucket does not grow with the changes.
    ...(kv === undefined && {
      size: async (connection: NatsConnection) => {
        const { config, state } = await (await jetstreamManager(connection)).streams.info(stream);
        const { max_age, max_msgs, max_bytes } = config;
        const [limit] = Object.entries({ max_age, max_msgs, max_bytes }).filter(([, value]) => value > 0);
        const text = `${state.messages} messages, ${sizeText(state.bytes)}`;
        return { text, limit: limit?.[0] ?? null, option: 'max_age=30d' };
      },
    }),
    drop: async (connection) => {
      const manager = await jetstreamManager(connection);
      if ((await findStream(manager, names)) !== null) await manager.streams.delete(stream);
      return '';
    },
    check: async (connection, _signal, tell) => {
      const manager = await jetstreamManager(connection);
      const found = await findStream(manager, names);
      const described = await describeStream(manager, names, found, tell);
      const calls = ['MSG.GET', ...(found === null ? ['CREATE'] : maxAgeMs === undefined ? [] : ['UPDATE'])];
      await requireRights(connection, [
        ...calls.map((call) => `$JS.API.STREAM.${call}.${stream}`),
        subject.replace('>', 'catchword-doctor'),
      ]);
      return `${described}; its user has the rights to write it`;
    },
    toSinkError,
  });
};
