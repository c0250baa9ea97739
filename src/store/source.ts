import type { Database } from 'better-sqlite3';
import type { SourceIdentity } from '../catalog/source.ts';
import { LONGEST_PAUSE_MS, type Pause, pauseAt } from '../clock.ts';
import type { WriteTransaction } from './transaction.ts';

/** The source that a mirror has noted. */
export interface NotedSource extends SourceIdentity {
  /**
   * Another address or selection was begun with, and no full run has read everything since: the mirror may hold some of
   * both. `selection` is then the one before.
   */
  readonly unfinished: boolean;
}

/** How requests are to be spaced; milliseconds. */
export interface ReservationRequest {
  readonly intervalMs: number;
  /** A turn that is taken so much too late does not move those behind it. */
  readonly slackMs: number;
  /** Requests, one interval apart, that are reserved at once. */
  readonly slots: number;
}

export interface Reservation {
  /** Not later than now: the moment of the first reserved request. Later: nothing is reserved; ask again then. */
  readonly at: number;
  /** Nothing is reserved because the source asked for a pause. */
  readonly paused: boolean;
}

/** What all processes of a mirror know of its source. Times are milliseconds since 1970 by the local clock. */
export interface SourceStore {
  /** Null before the first run, and in mirrors of before until their next run. */
  noted(): NotedSource | null;
  note(source: NotedSource): void;
  /** The pause that the source asked for, at most a day; null where there is none, or where it is over. */
  pause(nowMs: number): Pause | null;
  /** Null takes the pause away. */
  setPause(pause: Pause | null): void;
  /**
   * Reserves the next requests for this process. The reservation is durable before a request is made, so that a process
   * that is killed gives its turn up, and never causes one too many.
   * @throws CatchwordError MIRROR_BUSY, MIRROR_WRITE_FAILED
   */
  reserve(nowMs: number, request: ReservationRequest): Reservation;
}

interface Limits {
  readonly since: number | null;
  readonly until: number | null;
  readonly next: number | null;
}

interface NotedSelection {
  readonly unfinished?: boolean;
}

function pauseOf({ since, until }: Limits, nowMs: number): Pause | null {
  if (until === null) return null;
  // In mirrors of before it is not known when it was asked for.
  const begun = since ?? nowMs;
  return pauseAt({ since: begun, until: Math.min(until, begun + LONGEST_PAUSE_MS) }, nowMs);
}

export function createSourceStore(sqlite: Database, write: WriteTransaction): SourceStore {
  const source = sqlite.prepare<[], { address: string | null; selection: string | null }>(
    'SELECT source_address AS address, source_selection AS selection FROM mirror WHERE id = 1',
  );
  const setSource = sqlite.prepare('UPDATE mirror SET source_address = ?, source_selection = ? WHERE id = 1');
  const limits = sqlite.prepare<[], Limits>(
    'SELECT blocked_since AS since, blocked_until AS until, next_request_at AS next FROM mirror WHERE id = 1',
  );
  const setPause = sqlite.prepare('UPDATE mirror SET blocked_since = ?, blocked_until = ? WHERE id = 1');
  const setNext = sqlite.prepare('UPDATE mirror SET next_request_at = ? WHERE id = 1');

  function current(): Limits {
    return limits.get() ?? { since: null, until: null, next: null };
  }

  /** Null where what is noted holds as it is, and the source must not be asked yet: then there is nothing to write. */
  function stillWaits(nowMs: number, spanMs: number): Reservation | null {
    const known = current();
    const pause = pauseOf(known, nowMs);
    if (pause !== null && (pause.since !== known.since || pause.until !== known.until)) return null;
    const next = known.next ?? 0;
    const at = Math.max(next, pause?.until ?? 0);
    if (at <= nowMs || next > nowMs + spanMs) return null;
    return { at, paused: pause !== null && pause.until >= next };
  }

  function take(nowMs: number, { intervalMs, slackMs, slots }: ReservationRequest): Reservation {
    const spanMs = slots * intervalMs;
    const known = current();
    const pause = pauseOf(known, nowMs);
    // No process reserves further ahead than this: a later moment shows that the clock was put back.
    const next = Math.min(known.next ?? 0, nowMs + spanMs);
    const at = Math.max(next, pause?.until ?? 0);
    setPause.run(pause?.since ?? null, pause?.until ?? null);
    if (at > nowMs) {
      setNext.run(next);
      return { at, paused: pause !== null && pause.until >= next };
    }
    const slot = nowMs - next <= slackMs ? next : nowMs;
    setNext.run(slot + spanMs);
    return { at: slot, paused: false };
  }

  return {
    noted: () => {
      const { address, selection } = source.get() ?? { address: null, selection: null };
      if (address === null || selection === null) return null;
      const { unfinished = false, ...selected } = JSON.parse(selection) as NotedSelection;
      return { address, selection: JSON.stringify(selected), unfinished };
    },
    note: ({ address, selection, unfinished }) => {
      const selected = JSON.parse(selection) as object;
      setSource.run(address, JSON.stringify(unfinished ? { ...selected, unfinished } : selected));
    },
    pause: (nowMs) => pauseOf(current(), nowMs),
    setPause: (pause) => {
      write(() => setPause.run(pause?.since ?? null, pause?.until ?? null));
    },
    reserve: (nowMs, request) =>
      stillWaits(nowMs, request.slots * request.intervalMs) ?? write(() => take(nowMs, request)),
  };
}

/**
 * The `source` of events: the products of the service that the mirror has noted, so that it is the same in every process.
 * @param fallback where none is noted yet
 */
export function eventSource(source: Pick<SourceStore, 'noted'>, fallback: string): string {
  const address = source.noted()?.address;
  return address === undefined ? fallback : `${address}/v4/products`;
}
