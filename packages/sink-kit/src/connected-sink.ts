import { unlessAborted, withAbort } from '@catchword/base/abort';
import { distrustOf } from '@catchword/base/certificate';
import { type Hide, masked } from '@catchword/base/redact';
import { type ConnectionLife, createConnectionLife } from './connection-scope.ts';
import { linesOf } from './line-buffers.ts';
import {
  type EventLines,
  type Mark,
  type Opened,
  type Sink,
  SinkError,
  type SinkEvent,
  type StoredSize,
} from './sink.ts';
import { withTimeout } from './with-timeout.ts';
import { type Listed, wrapListed } from './wrap-listed.ts';

type Deliver<Events> = (events: Events, mark: Mark, signal: AbortSignal) => Promise<void>;

/** A store that a sink has opened: the calls of `Sink` that follow `open`. */
export interface OpenStore<Events = readonly SinkEvent[]> extends Listed, Pick<Sink, 'recheck' | 'prepareNext'> {
  readonly deliver: Deliver<Events>;
  /** Returned by the sink's `open`. */
  readonly position: Opened | null;
}

/** Calls that one kind of sink implements; `createConnectedSink` adds the life of its connections. */
export interface ConnectedStore<Connection, Events> {
  readonly batch: Sink['batch'];
  /** Connects. Hands over to `life` whatever it makes, before it waits, and ends it with the store's last words. */
  readonly connect: (life: ConnectionLife) => Promise<Connection>;
  /** Optional. Says goodbye to a store that answered every call. */
  readonly leave?: (connection: Connection) => Promise<unknown>;
  readonly open: (connection: Connection, mark: Mark) => Promise<OpenStore<Events>>;
  /** Which of these its open stores have. */
  readonly has?: readonly (keyof Listed)[];
  readonly size?: (connection: Connection) => Promise<StoredSize>;
  readonly drop?: (connection: Connection) => Promise<string>;
  readonly check: (connection: Connection, ...given: Parameters<Sink['check']>) => Promise<string>;
  readonly toSinkError: (error: unknown) => SinkError;
  /** Masks secrets in what the driver throws, before `toSinkError` gets it. */
  readonly hide: Hide;
}

/** A store that is gone does not say goodbye. */
const LEAVE_TIMEOUT_MS = 1_000;

/** What drivers, PostgreSQL (57P0…), MySQL and PgBouncer say when the other side has ended the connection. */
const ENDED =
  /ECONNRESET|EPIPE|ETIMEDOUT|UND_ERR_SOCKET|57P0|idle_timeout|server closed|nexpectedly been closed|disconnected by the server|isn't writeable|onnection (is |was )?(closed|term|killed)/;

/** Marks the error of a connection that the other side has ended. */
function markLost(error: SinkError): SinkError {
  const { failure, message, timedOut } = error;
  if (failure !== 'unavailable' || !ENDED.test(message)) return error;
  return new SinkError(failure, message, { cause: error, timedOut, connectionLost: true });
}

/** Runs a call. After one that was cut short or failed, the driver's state is unknown: the connection ends. */
async function during<T>(
  life: ConnectionLife,
  signal: AbortSignal,
  toSinkError: (error: unknown) => SinkError,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await withAbort([signal, life.signal], async (either) => {
      either.throwIfAborted();
      life.callBegins();
      return await unlessAborted(call(), either);
    });
  } catch (error) {
    const known = markLost(error instanceof SinkError ? error : toSinkError(error));
    // The relay sends a part of a refused batch again.
    if (known.failure !== 'refused') life.end(known);
    throw known;
  }
}

async function* nothing(): AsyncGenerator<never> {}

/** A connection of a sink; with `opened` once the store is open on it. */
interface LiveConnection<Connection, Events> {
  readonly life: ConnectionLife;
  connection?: Connection;
  opened?: OpenStore<Events>;
}

/** @param deliveries makes the sink's calls that deliver, of the store's call */
function createSink<Connection, Events>(
  store: ConnectedStore<Connection, Events>,
  deliveries: (deliver: Deliver<Events>) => Pick<Sink, 'deliver' | 'deliverLines'>,
): Sink {
  const { batch, size, drop, hide, has = [] } = store;
  const toSinkError = (error: unknown): SinkError => {
    const distrust = distrustOf(error);
    return distrust ? new SinkError('misconfigured', distrust.text) : store.toSinkError(masked(error, hide));
  };
  let current: LiveConnection<Connection, Events> | undefined;

  /** Ends a connection. After a failure, it has ended already. */
  async function leave({ life, connection }: LiveConnection<Connection, Events>): Promise<void> {
    if (connection !== undefined && !life.signal.aborted) {
      await withTimeout(LEAVE_TIMEOUT_MS, async () => store.leave?.(connection), life.signal).catch(() => {});
    }
    life.end();
  }

  /** Runs `work` on a connection of its own. */
  async function probe<T>(work: (connection: Connection) => Promise<T>, signal: AbortSignal): Promise<T> {
    const live: LiveConnection<Connection, Events> = { life: createConnectionLife() };
    try {
      return await during(live.life, signal, toSinkError, async () => {
        live.connection = await store.connect(live.life);
        return await work(live.connection);
      });
    } finally {
      await leave(live);
    }
  }

  /** Calls the open store. */
  async function call<T>(signal: AbortSignal, work: (store: OpenStore<Events>) => T | Promise<T>): Promise<T> {
    const { life, opened } = current ?? {};
    if (life === undefined || opened === undefined) throw new SinkError('unavailable', 'the sink is not open');
    // The connection ended between two calls, so this one says nothing about the size of a batch.
    if (life.signal.aborted) {
      throw new SinkError('unavailable', toSinkError(life.signal.reason).message, { connectionLost: true });
    }
    return await during(life, signal, toSinkError, async () => work(opened));
  }

  function openStore(): OpenStore<Events> {
    if (current?.opened === undefined) throw new SinkError('unavailable', 'the sink is not open');
    return current.opened;
  }

  /** What the open store will have. */
  const listed: Listed = {
    ...(has.includes('list') && { list: (...args) => openStore().list?.(...args) ?? nothing() }),
    ...(has.includes('apply') && { apply: async (...args) => await openStore().apply?.(...args) }),
    ...(has.includes('digests') && {
      digests: {
        digestOf: (...args) => openStore().digests?.digestOf(...args) ?? '',
        compares: (...args) => openStore().digests?.compares?.(...args) ?? null,
        sums: async (...args) => (await openStore().digests?.sums?.(...args)) ?? new Map(),
        differences: async (...args) => (await openStore().digests?.differences?.(...args)) ?? new Map(),
      },
    }),
  };

  return {
    batch,
    open: async (mark, _newest, signal) => {
      current?.life.end();
      const live: LiveConnection<Connection, Events> = { life: createConnectionLife() };
      current = live;
      return await during(live.life, signal, toSinkError, async () => {
        const connection = await store.connect(live.life);
        const opened = await store.open(connection, mark);
        live.life.signal.throwIfAborted();
        Object.assign(live, { connection, opened });
        return opened.position;
      });
    },
    recheck: (signal) => call(signal, (opened) => opened.recheck?.(signal)),
    prepareNext: async (events) => current?.opened?.prepareNext?.(events),
    ...deliveries((events, mark, signal) => call(signal, (opened) => opened.deliver(events, mark, signal))),
    ...wrapListed(listed, call),
    ...(drop !== undefined && { drop: (signal) => probe(drop, signal) }),
    ...(size !== undefined && { size: (signal) => probe(size, signal) }),
    close: async () => {
      const live = current;
      current = undefined;
      if (live !== undefined) await leave(live);
    },
    check: (signal, found) => probe((connection) => store.check(connection, signal, found), signal),
  };
}

/** Makes a sink that keeps one connection while it is open, and uses another one for `check` and `size`. */
export function createConnectedSink<Connection>(store: ConnectedStore<Connection, readonly SinkEvent[]>): Sink {
  return createSink(store, (deliver) => ({ deliver }));
}

/** Makes such a sink for a store that takes only the texts of events. */
export function createTextSink<Connection>(store: ConnectedStore<Connection, EventLines>): Sink {
  return createSink(store, (deliver) => ({
    deliver: (events, mark, signal) => deliver(linesOf(events), mark, signal),
    deliverLines: deliver,
  }));
}
