import { type Mark, type Opened, type Sink, SinkError, type StoredSize } from '../sink.ts';

/** A store that a sink has opened: the calls of `Sink` that follow `open`. */
export interface OpenStore extends Pick<Sink, 'deliver' | 'fillBegins' | 'fillEnds' | 'recheck'> {
  /** What `open` of the sink returns. */
  readonly position: Opened | null;
}

/** What one kind of sink does itself; `createConnectedSink` adds the life of its connection. */
export interface ConnectedStore<Connection> {
  readonly batch: Sink['batch'];
  readonly connect: () => Promise<Connection>;
  readonly disconnect: (connection: Connection) => unknown;
  readonly open: (connection: Connection, mark: Mark) => Promise<OpenStore>;
  readonly size?: (connection: Connection) => Promise<StoredSize>;
  readonly check: (connection: Connection, signal: AbortSignal) => Promise<string>;
  readonly toSinkError: (error: unknown) => SinkError;
}

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

/** Makes a sink that keeps one connection while it is open, and uses another one for `check` and `size`. */
export function createConnectedSink<Connection>(store: ConnectedStore<Connection>): Sink {
  const { batch, size } = store;
  let connection: Connection | undefined;
  let open: OpenStore | undefined;

  function opened(): OpenStore {
    if (open === undefined) throw new SinkError('unavailable', 'the sink is not open');
    return open;
  }

  /** Runs `work` on a connection of its own. */
  async function probe<T>(work: (probing: Connection) => Promise<T>): Promise<T> {
    const probing = await store.connect();
    try {
      return await work(probing);
    } finally {
      await store.disconnect(probing);
    }
  }

  const sink: Sink = {
    batch,
    open: async (mark) => {
      connection = await store.connect();
      open = await store.open(connection, mark);
      return open.position;
    },
    fillBegins: async (mark, signal) => opened().fillBegins?.(mark, signal),
    fillEnds: async (kept, mark, signal) => opened().fillEnds?.(kept, mark, signal),
    recheck: async (signal) => opened().recheck?.(signal),
    deliver: async (events, mark, signal) => opened().deliver(events, mark, signal),
    ...(size !== undefined && { size: () => probe(size) }),
    close: async () => {
      const closing = connection;
      connection = undefined;
      open = undefined;
      if (closing !== undefined) await store.disconnect(closing);
    },
    check: (signal) => probe((probing) => store.check(probing, signal)),
  };
  return withSinkErrors(sink, store.toSinkError);
}
