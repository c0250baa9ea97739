/** A request of the interface (control requests are not logged), in order of arrival. */
export interface RequestEntry {
  /** Time of arrival, milliseconds since 1970. */
  readonly at: number;
  /** Path and query, as sent. */
  readonly path: string;
  /** Of the answer; 0 while there is none. */
  status: number;
}

export interface RequestLog {
  add(at: number, path: string): RequestEntry;
  /** The latest 100,000 at most. */
  entries(): readonly Readonly<RequestEntry>[];
}

const MAX_ENTRIES = 100_000;

export function createRequestLog(): RequestLog {
  let entries: RequestEntry[] = [];
  return {
    add: (at, path) => {
      const entry = { at, path, status: 0 };
      // Let it grow to twice the size, so that old entries are dropped rarely and in one go.
      if (entries.length >= 2 * MAX_ENTRIES) entries = entries.slice(-MAX_ENTRIES);
      entries.push(entry);
      return entry;
    },
    entries: () => entries.slice(-MAX_ENTRIES),
  };
}
