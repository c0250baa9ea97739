import type { Database } from 'better-sqlite3';
import type { SourceIdentity } from '../catalog/source.ts';
import { LONGEST_PAUSE_MS, laterPause, type Pause, pauseAt } from '../clock.ts';
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

/** What all processes of a mirror know of its source. Times are milliseconds since 1970 by the local clock. */
export interface SourceStore {
  /** Null before the first run, and in mirrors of before until their next run. */
  noted(): NotedSource | null;
  note(source: NotedSource): void;
  /** The pause that the source asked for, at most a day; null where there is none, or where it is over. */
  pause(nowMs: number): Pause | null;
  /**
   * As `pause`. What is noted becomes what the clock says of it: a pause that begins now, because the clock was put back
   * since, begins only once. In a mirror that this user may only read it stays as it is.
   * @throws CatchwordError MIRROR_BUSY, MIRROR_WRITE_FAILED
   */
  keepPause(nowMs: number): Pause | null;
  /**
   * A pause that another process was asked for stays if it ends later.
   * @returns false where this user may only read the mirror; as `forgetPause`
   * @throws CatchwordError MIRROR_BUSY, MIRROR_WRITE_FAILED
   */
  notePause(pause: Pause): boolean;
  forgetPause(): boolean;
  /**
   * Reserves the next requests for this process. The reservation is durable before a request is made, so that a process
   * that is killed gives its turn up, and never causes one too many.
   * @returns not later than now: the moment of the first reserved request. Later: nothing is reserved; ask again then.
   *   Null where this user may only read the mirror.
   * @throws CatchwordError MIRROR_BUSY, MIRROR_WRITE_FAILED
   */
  reserve(nowMs: number, request: ReservationRequest): number | null;
}

interface NotedPause {
  readonly since: number | null;
  readonly until: number | null;
}

interface NotedSelection {
  readonly unfinished?: boolean;
}

function pauseOf({ since, until }: NotedPause, nowMs: number): Pause | null {
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
  const notedPause = sqlite.prepare<[], NotedPause>(
    'SELECT blocked_since AS since, blocked_until AS until FROM mirror WHERE id = 1',
  );
  const setPause = sqlite.prepare('UPDATE mirror SET blocked_since = ?, blocked_until = ? WHERE id = 1');
  const next = sqlite.prepare<[], number | null>('SELECT next_request_at FROM mirror WHERE id = 1').pluck();
  const setNext = sqlite.prepare('UPDATE mirror SET next_request_at = ? WHERE id = 1');

  function current(): NotedPause {
    return notedPause.get() ?? { since: null, until: null };
  }

  function set(pause: Pause | null): void {
    setPause.run(pause?.since ?? null, pause?.until ?? null);
  }

  /** @returns false where this user may only read the mirror */
  function writeIfAllowed(work: () => void): boolean {
    if (!sqlite.readonly) write(work);
    return !sqlite.readonly;
  }

  /** Later than now: what is noted holds as it is, and there is nothing to write. */
  function waitsUntil(nowMs: number, spanMs: number): number | null {
    const at = next.get() ?? 0;
    return at > nowMs && at <= nowMs + spanMs ? at : null;
  }

  function take(nowMs: number, { intervalMs, slackMs, slots }: ReservationRequest): number {
    const spanMs = slots * intervalMs;
    // No process reserves further ahead than this: a later moment shows that the clock was put back.
    const at = Math.min(next.get() ?? 0, nowMs + spanMs);
    const slot = nowMs - at <= slackMs ? at : nowMs;
    setNext.run(at > nowMs ? at : slot + spanMs);
    return slot;
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
    keepPause: (nowMs) => {
      const known = current();
      const pause = pauseOf(known, nowMs);
      const isKnown = (pause?.since ?? null) === known.since && (pause?.until ?? null) === known.until;
      if (!isKnown) writeIfAllowed(() => set(pauseOf(current(), nowMs)));
      return pause;
    },
    notePause: (pause) => writeIfAllowed(() => set(laterPause(pauseOf(current(), pause.since), pause))),
    forgetPause: () => writeIfAllowed(() => set(null)),
    reserve: (nowMs, request) => {
      if (sqlite.readonly) return null;
      return waitsUntil(nowMs, request.slots * request.intervalMs) ?? write(() => take(nowMs, request));
    },
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
