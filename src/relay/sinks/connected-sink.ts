import { unlessAborted, withAbort } from '../../base/abort.ts';
import { linesOf } from '../line-buffers.ts';
import {
  type EventLines,
  type Mark,
  type Opened,
  type Sink,
  SinkError,
  type SinkEvent,
  type StoredSize,
} from '../sink.ts';
import { answerWithin } from '../with-timeout.ts';
import { type ConnectionLife, createConnectionLife } from './connection-scope.ts';

type Deliver<Events> = (events: Events, mark: Mark, signal: AbortSignal) => Promise<void>;

/** A store that a sink has opened: the calls of `Sink` that follow `open`. */
export interface OpenStore<Events = readonly SinkEvent[]>
  extends Pick<Sink, 'fillBegins' | 'fillEnds' | 'recheck' | 'prepareNext'> {
  readonly deliver: Deliver<Events>;
  /** What `open` of the sink returns. */
  readonly position: Opened | null;
}

/** What one kind of sink does itself; `createConnectedSink` adds the life of its connections. */
export interface ConnectedStore<Connection, Events> {
  readonly batch: Sink['batch'];
  /** Connects, and hands over to `life` whatever it makes, before it waits for anything. */
  readonly connect: (life: ConnectionLife) => Promise<Connection>;
  /** Optional. Says goodbye to a store that answered every call. */
  readonly leave?: (connection: Connection) => Promise<unknown>;
  readonly open: (connection: Connection, mark: Mark) => Promise<OpenStore<Events>>;
  readonly size?: (connection: Connection) => Promise<StoredSize>;
  readonly check: (connection: Connection, signal: AbortSignal) => Promise<string>;
  readonly toSinkError: (error: unknown) => SinkError;
}

/** A store that is gone does not say goodbye. */
const LEAVE_TIMEOUT_MS = 1_000;

/** Changes what the calls of a sink throw, as drivers do, to SinkErrors. */
export function withSinkErrors(sink: Sink, toSinkError: (error: unknown) => SinkError): Sink {
  const members = Object.entries(sink).map(([name, member]: [string, unknown]) => {
    if (typeof member !== 'function') return [name, member];
    const call = async (...args: unknown[]): Promise<unknown> => {
      try {
        return await member(...args);
      } catch (error) {
        throw error instanceof SinkError ? error : toSinkError(error);
      }
    };
    return [name, call];
  });
  return Object.fromEntries(members) as Sink;
}

/** @param deliveries makes the calls that deliver of the one of the store */
function createSink<Connection, Events>(
  store: ConnectedStore<Connection, Events>,
  deliveries: (deliver: Deliver<Events>) => Pick<Sink, 'deliver' | 'deliverLines'>,
): Sink {
  const { batch, size } = store;
  let life: ConnectionLife | undefined;
  let connection: Connection | undefined;
  let open: OpenStore<Events> | undefined;

  /** Runs a call. After one that was cut short or failed, the driver's state is unknown: the connection ends. */
  async function during<T>(living: ConnectionLife, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    try {
      return await withAbort([signal, living.signal], async (either) => {
        either.throwIfAborted();
        living.callBegins();
        return await unlessAborted(call(), either);
      });
    } catch (error) {
      const known = error instanceof SinkError ? error : store.toSinkError(error);
      // The relay sends a part of a refused batch again.
      if (known.failure !== 'refused') living.end(known);
      throw known;
    }
  }

  /** Ends a connection. After a failure, it has ended already. */
  async function leave(living: ConnectionLife, leaving: Connection | undefined): Promise<void> {
    if (leaving !== undefined && !living.signal.aborted) {
      await answerWithin(LEAVE_TIMEOUT_MS, async () => store.leave?.(leaving), living.signal).catch(() => {});
    }
    living.end();
  }

  /** Runs `work` on a connection of its own. */
  async function probe<T>(work: (probing: Connection) => Promise<T>, signal: AbortSignal): Promise<T> {
    const living = createConnectionLife();
    let probing: Connection | undefined;
    try {
      return await during(living, signal, async () => {
        probing = await store.connect(living);
        return await work(probing);
      });
    } finally {
      await leave(living, probing);
    }
  }

  async function opened(
    signal: AbortSignal,
    call: (store: OpenStore<Events>) => Promise<void> | undefined,
  ): Promise<void> {
    const now = open;
    if (life === undefined || now === undefined) throw new SinkError('unavailable', 'the sink is not open');
    await during(life, signal, async () => call(now));
  }

  return {
    batch,
    open: async (mark, _newest, signal) => {
      life?.end();
      const living = createConnectionLife();
      life = living;
      return await during(living, signal, async () => {
        const connected = await store.connect(living);
        const now = await store.open(connected, mark);
        living.signal.throwIfAborted();
        connection = connected;
        open = now;
        return now.position;
      });
    },
    fillBegins: (mark, signal) => opened(signal, (now) => now.fillBegins?.(mark, signal)),
    fillEnds: (kept, mark, signal) => opened(signal, (now) => now.fillEnds?.(kept, mark, signal)),
    recheck: (signal) => opened(signal, (now) => now.recheck?.(signal)),
    prepareNext: async (events) => open?.prepareNext?.(events),
    ...deliveries((events, mark, signal) => opened(signal, (now) => now.deliver(events, mark, signal))),
    ...(size !== undefined && { size: (signal) => probe(size, signal) }),
    close: async () => {
      const [living, leaving] = [life, connection];
      life = undefined;
      connection = undefined;
      open = undefined;
      if (living !== undefined) await leave(living, leaving);
    },
    check: (signal) => probe((probing) => store.check(probing, signal), signal),
  };
}

/** Makes a sink that keeps one connection while it is open, and uses another one for `check` and `size`. */
export function createConnectedSink<Connection>(store: ConnectedStore<Connection, readonly SinkEvent[]>): Sink {
  return createSink(store, (deliver) => ({ deliver }));
}

/** The same for a store that takes only the texts of events. */
export function createTextSink<Connection>(store: ConnectedStore<Connection, EventLines>): Sink {
  return createSink(store, (deliver) => ({
    deliver: (events, mark, signal) => deliver(linesOf(events), mark, signal),
    deliverLines: deliver,
  }));
}
