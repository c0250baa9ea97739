/** A request of the interface. Control requests are not logged. */
export interface RequestEntry {
  /** Time of arrival, milliseconds since 1970. */
  readonly at: number;
  /** Path and query as sent. */
  readonly path: string;
  /** Status of the reply; 0 until there is one. */
  status: number;
}

const MAX_ENTRIES = 100_000;

export function createRequestLog() {
  let entries: RequestEntry[] = [];
  return {
    add: (at: number, path: string): RequestEntry => {
      const entry = { at, path, status: 0 };
      // Growing to twice the size drops old entries rarely and all at once.
      if (entries.length >= 2 * MAX_ENTRIES) entries = entries.slice(-MAX_ENTRIES);
      entries.push(entry);
      return entry;
    },
    entries: (): readonly Readonly<RequestEntry>[] => entries.slice(-MAX_ENTRIES),
  };
}

export type RequestLog = ReturnType<typeof createRequestLog>;
