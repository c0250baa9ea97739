import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import {
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  PubHeaders,
  StorageType,
  type StreamInfo,
} from '@nats-io/jetstream';
import {
  connect as connectNats,
  createInbox,
  credsAuthenticator,
  type MsgHdrs,
  MsgHdrsImpl,
  type NatsConnection,
  RequestError,
  TimeoutError,
} from '@nats-io/transport-node';
import * as z from 'zod';
import { messageOf } from '../../base/errors.ts';
import { decoded } from '../../base/percent-decode.ts';
import { type Mark, SinkError, type SinkEvent, type SinkFactory, type SinkSettings } from '../sink.ts';
import { ageOption, readOptions, sizeText } from '../sink-options.ts';
import { markAtStart, markSchema } from '../stored-mark.ts';
import { createConnectedSink, type OpenStore } from './connected-sink.ts';
import type { ConnectionLife } from './connection-scope.ts';

/**
 * A JetStream stream with one message per event. Every message names the stream's expected last number and the message
 * before it: the server rejects every message after one that it did not get, so nothing is lost or reordered, however many
 * are in flight and even if others write. The last message carries the mark, so it is right even after the server
 * lost its newest messages.
 */

const subjectOption = z.string().regex(/^[^\s.*>]+(\.[^\s.*>]+)*$/, 'a subject without wildcards');

const OPTIONS = {
  subject: subjectOption.default('catalog.products'),
  stream: z
    .string()
    .regex(/^[^\s.*>/\\]+$/, 'a name without dots and spaces')
    .optional(),
  /** Older messages are dropped; without it, the stream's own limits hold. */
  max_age: ageOption.optional(),
  /** A file of credentials, as `nsc` writes it. */
  creds: z.string().min(1, 'a path').optional(),
  /** Begins the subjects of answers, instead of `_INBOX`. */
  inbox_prefix: subjectOption.default('_INBOX'),
};
type Options = z.output<z.ZodObject<typeof OPTIONS>>;

const CONNECT_TIMEOUT_MS = 10_000;
const PUBLISH_TIMEOUT_MS = 30_000;
const CHECK_TIMEOUT_MS = 2_000;
/** Room for the headers of a message. */
const HEADER_BYTES = 1_024;
const MARK_HEADER = 'Catchword-Mark';
const NANOSECONDS = 1e6;

function toSinkError(error: unknown): SinkError {
  const name = error instanceof Error ? error.name : '';
  const message = messageOf(error);
  // Requests that the user may not make, and files of credentials, have no error of a name of its own.
  const isSetting =
    /^(Authori|UserAuth|JetStreamNotEnabled|InvalidName)|: (Permissions V|ENOENT|EACCES|EISDIR|unable to p|nkeys)/;
  return new SinkError(isSetting.test(`${name}: ${message}`) ? 'misconfigured' : 'unavailable', `NATS: ${message}`, {
    cause: error,
    timedOut: name === 'TimeoutError',
  });
}

/** The mark once this message is stored: each message is stored by itself. */
function markWith({ seq, at }: SinkEvent, isLast: boolean, mark: Mark): Mark {
  if (mark.late > 0) return { ...mark, late: seq };
  return isLast ? mark : { ...mark, cursor: seq, at };
}

type StreamNames = Readonly<Record<'stream' | 'subject' | 'inboxPrefix', string>>;

/**
 * Publishes messages that each expect the one before, so the answer to the last one confirms them all. The driver's
 * requests take four times as long, because each creates its possible errors in advance (measured).
 */
function createPublisher(connection: NatsConnection, { stream, subject, inboxPrefix }: StreamNames) {
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
  async function confirm(text: string, headers: MsgHdrs): Promise<void> {
    try {
      await client.publish(subject, text, { headers, timeout: PUBLISH_TIMEOUT_MS, retries: 0 });
    } catch (error) {
      throw refusal === null ? error : new Error(refusal, { cause: error });
    }
  }

  /** @param last number of the stream's last message */
  return async (events: readonly SinkEvent[], mark: Mark, last: number): Promise<void> => {
    let before: string | undefined;
    let confirmed: Promise<void> | undefined;
    for (const [index, event] of events.entries()) {
      const isLast = index === events.length - 1;
      // The id names the message's number: the server may remember the id of a message that it lost.
      const id = `${mark.generation}:${event.id}@${last + index}`;
      const { incarnation, generation, cursor, at, late } = markWith(event, isLast, mark);
      const headers = MsgHdrsImpl.fromRecord({
        [MARK_HEADER]: [[incarnation, generation, cursor, at, late].join(' ')],
        [PubHeaders.MsgIdHdr]: [id],
        [PubHeaders.ExpectedStreamHdr]: [stream],
        [PubHeaders.ExpectedLastSeqHdr]: [String(last + index)],
        // The number alone does not suffice: another client's message could have taken the place of ours.
        ...(before !== undefined && { [PubHeaders.ExpectedLastMsgIdHdr]: [before] }),
      });
      before = id;
      if (isLast) confirmed = confirm(event.text, headers);
      else connection.publish(subject, event.text, { headers, reply: inbox });
    }
    await confirmed;
  };
}

/** Node.js announces here each socket that is made to connect. */
const SOCKETS = 'net.client.socket';
const connecting = new AsyncLocalStorage<ConnectionLife>();

/** Connects. The driver leaves sockets open on which it gave up, and hands out none: its sockets are found as they are made. */
async function connect(
  { url, urls }: SinkSettings,
  { creds, inbox_prefix: inboxPrefix }: Options,
  life: ConnectionLife,
) {
  const user = decoded(url.username);
  const pass = decoded(url.password);
  let socket: Socket | undefined;
  const own = (message: unknown): void => {
    if (connecting.getStore() !== life) return;
    ({ socket } = message as { readonly socket: Socket });
    life.own(socket);
  };
  // Without `host`, the driver compares the certificate of an IP address with localhost.
  const tls = {
    get host() {
      return socket?.remoteAddress;
    },
  };
  subscribe(SOCKETS, own);
  try {
    const connection = await connecting.run(life, async () =>
      connectNats({
        servers: urls.map(({ hostname, port }) => `${hostname}:${port || '4222'}`),
        name: 'catchword',
        // The relay reconnects.
        reconnect: false,
        timeout: CONNECT_TIMEOUT_MS,
        ...(url.protocol === 'tls:' && { tls: tls as object }),
        ...(user !== '' && (pass === '' ? { token: user } : { user, pass })),
        authenticator: creds === undefined ? [] : credsAuthenticator(await readFile(creds)),
        inboxPrefix,
      }),
    );
    void connection.closed().then((error) => life.end(error ?? new Error('the server closed the connection')));
    return connection;
  } finally {
    unsubscribe(SOCKETS, own);
  }
}

/** @returns null if the stream does not exist */
async function findStream({ streams }: JetStreamManager, { stream, subject }: StreamNames): Promise<StreamInfo | null> {
  try {
    const info = await streams.info(stream);
    const { subjects } = info.config;
    if (subjects.length === 1 && subjects[0] === subject) return info;
    const message = `NATS: stream ${stream} has the subjects ${subjects.join(', ')}; it must have ${subject} alone`;
    throw new SinkError('misconfigured', message);
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return null;
    throw error;
  }
}

/** The mark of the newest message that was not deleted. */
async function readMark({ streams }: JetStreamManager, stream: string): Promise<Mark | null> {
  const { state } = await streams.info(stream);
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
    const mark = await readMark(manager, stream);
    if (mark !== null) tell?.(mark);
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
  const options = readOptions(settings.url, OPTIONS);
  const { subject, stream = subject.replaceAll('.', '-'), max_age: maxAgeMs } = options;
  const names = { stream, subject, inboxPrefix: options.inbox_prefix };
  const limits = maxAgeMs === undefined ? {} : { max_age: maxAgeMs * NANOSECONDS };

  async function open(connection: NatsConnection, mark: Mark): Promise<OpenStore> {
    const publish = createPublisher(connection, names);
    const manager = await jetstreamManager(connection);
    const { streams } = manager;
    const found = await findStream(manager, names);
    if (found === null) {
      await streams.add({ name: stream, subjects: [subject], storage: StorageType.File, ...limits });
    }
    let last = found?.state.last_seq ?? 0;
    // Without the stream, nothing that was confirmed is left.
    const position = last > 0 ? await readMark(manager, stream) : markAtStart(mark);
    // Not before: a shorter limit drops messages, which may belong to another application.
    if (found !== null && limits.max_age !== undefined && found.config.max_age !== limits.max_age) {
      await streams.update(stream, limits);
    }
    const serverLimit = connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
    const ownLimit = found?.config.max_msg_size ?? -1;
    const maxBytes = ownLimit > 0 ? Math.min(ownLimit, serverLimit) : serverLimit;
    return {
      position,
      deliver: async (events, mark) => {
        const most = maxBytes - HEADER_BYTES;
        if (events.some(({ text }) => text.length * 4 > most && Buffer.byteLength(text) > most)) {
          throw new SinkError('refused', `NATS: an event is larger than the server's limit of ${maxBytes} bytes`);
        }
        await publish(events, mark, last);
        last += events.length;
      },
      recheck: async () => {
        const { last_seq } = (await streams.info(stream)).state;
        if (last_seq === last) return;
        throw new SinkError('unavailable', `NATS: stream ${stream} is at message ${last_seq}, not at ${last}`);
      },
    };
  }

  return createConnectedSink({
    hide: settings.hide,
    batch: { events: 500, chars: 4_000_000 },
    connect: (life) => connect(settings, options, life),
    open,
    size: async (connection) => {
      const { config, state } = await (await jetstreamManager(connection)).streams.info(stream);
      const { max_age, max_msgs, max_bytes } = config;
      const [limit] = Object.entries({ max_age, max_msgs, max_bytes }).filter(([, value]) => value > 0);
      const text = `${state.messages} messages, ${sizeText(state.bytes)}`;
      return { text, limit: limit?.[0] ?? null, option: 'max_age=30d' };
    },
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
      await requireRights(connection, [...calls.map((call) => `$JS.API.STREAM.${call}.${stream}`), subject]);
      return `${described}; its user has the rights to write it`;
    },
    toSinkError,
  });
};
