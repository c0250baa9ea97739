import type { Database } from 'better-sqlite3';
import type { SourceIdentity } from '../catalog/source.ts';
import { LONGEST_PAUSE_MS, laterPause, type Pause, pauseAt } from '../clock.ts';

/** The source that a mirror has noted. */
export interface NotedSource extends SourceIdentity {
  /**
   * A run has started with another address or selection, and no full run has completed since: the mirror may hold
   * products of both. `selection` is then the previous one.
   */
  readonly unfinished: boolean;
}

/** How requests are to be spaced; milliseconds. */
export interface ReservationRequest {
  readonly intervalMs: number;
  /** A turn that is taken late by no more than this does not delay the turns after it. */
  readonly slackMs: number;
  /** Requests, one interval apart, that are reserved at once. */
  readonly slots: number;
}

/** What all processes of a mirror know about its source. Times are milliseconds since 1970 by the local clock. */
export interface SourceReader {
  /** Null before the first run, and in mirrors of older versions until their next run. */
  noted(): NotedSource | null;
  /** The pause that the source asked for, at most a day; null if there is none or it is over. */
  pause(nowMs: number): Pause | null;
}

/**
 * Pauses and the rate limit. Every process may write them, without a lease: each call is one transaction. A process
 * that may only read the file writes nothing.
 */
export interface PaceWriter extends SourceReader {
  /**
   * As `pause`, and notes the pause as it is by this clock. So a pause that restarts, because the clock was put back,
   * does so only once.
   * @throws CatchwordError MIRROR_BUSY, MIRROR_WRITE_FAILED
   */
  keepPause(nowMs: number): Pause | null;
  /**
   * Notes a pause, unless another process has noted one that ends later.
   * @returns false if this user may only read the mirror; as `forgetPause`
   * @throws CatchwordError MIRROR_BUSY, MIRROR_WRITE_FAILED
   */
  notePause(pause: Pause): boolean;
  forgetPause(): boolean;
  /**
   * Reserves the next requests for this process. The reservation is durable before a request is made: a process that is
   * killed loses its turn, and never causes an extra request.
   * @returns the moment of the first reserved request, if it is not later than now; otherwise nothing is reserved, and
   *   the caller asks again at that moment. Null if this user may only read the mirror.
   * @throws CatchwordError MIRROR_BUSY, MIRROR_WRITE_FAILED
   */
  reserve(nowMs: number, request: ReservationRequest): number | null;
}

/** What the keeper writes about the source. */
export interface SourceWriter extends PaceWriter {
  note(source: NotedSource): void;
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
  // Older versions did not note when the source asked.
  const begun = since ?? nowMs;
  return pauseAt({ since: begun, until: Math.min(until, begun + LONGEST_PAUSE_MS) }, nowMs);
}

function preparePause(sqlite: Database): () => NotedPause {
  const read = sqlite.prepare<[], NotedPause>(
    'SELECT blocked_since AS since, blocked_until AS until FROM mirror WHERE id = 1',
  );
  return () => read.get() ?? { since: null, until: null };
}

export function createSourceReader(sqlite: Database): SourceReader {
  const source = sqlite.prepare<[], { address: string | null; selection: string | null }>(
    'SELECT source_address AS address, source_selection AS selection FROM mirror WHERE id = 1',
  );
  const noted = preparePause(sqlite);

  return {
    noted: () => {
      const { address, selection } = source.get() ?? { address: null, selection: null };
      if (address === null || selection === null) return null;
      const { unfinished = false, ...selected } = JSON.parse(selection) as NotedSelection;
      return { address, selection: JSON.stringify(selected), unfinished };
    },
    pause: (nowMs) => pauseOf(noted(), nowMs),
  };
}

export function createPaceWriter(sqlite: Database, reader: SourceReader, write: <T>(work: () => T) => T): PaceWriter {
  const noted = preparePause(sqlite);
  const setPause = sqlite.prepare('UPDATE mirror SET blocked_since = ?, blocked_until = ? WHERE id = 1');
  const next = sqlite.prepare<[], number | null>('SELECT next_request_at FROM mirror WHERE id = 1').pluck();
  const setNext = sqlite.prepare('UPDATE mirror SET next_request_at = ? WHERE id = 1');

  function set(pause: Pause | null): void {
    setPause.run(pause?.since ?? null, pause?.until ?? null);
  }

  /** @returns false if this user may only read the mirror */
  function writeIfAllowed(work: () => void): boolean {
    if (!sqlite.readonly) write(work);
    return !sqlite.readonly;
  }

  /** The next turn, if it is later than now: then there is nothing to write. */
  function waitsUntil(nowMs: number, spanMs: number): number | null {
    const at = next.get() ?? 0;
    return at > nowMs && at <= nowMs + spanMs ? at : null;
  }

  function take(nowMs: number, { intervalMs, slackMs, slots }: ReservationRequest): number {
    const spanMs = slots * intervalMs;
    // Processes never reserve further ahead than this: a later moment shows that the clock was put back.
    const at = Math.min(next.get() ?? 0, nowMs + spanMs);
    const slot = nowMs - at <= slackMs ? at : nowMs;
    setNext.run(at > nowMs ? at : slot + spanMs);
    return slot;
  }

  return {
    ...reader,
    keepPause: (nowMs) => {
      const known = noted();
      const pause = pauseOf(known, nowMs);
      const isKnown = (pause?.since ?? null) === known.since && (pause?.until ?? null) === known.until;
      if (!isKnown) writeIfAllowed(() => set(pauseOf(noted(), nowMs)));
      return pause;
    },
    notePause: (pause) => writeIfAllowed(() => set(laterPause(pauseOf(noted(), pause.since), pause))),
    forgetPause: () => writeIfAllowed(() => set(null)),
    reserve: (nowMs, request) => {
      if (sqlite.readonly) return null;
      return waitsUntil(nowMs, request.slots * request.intervalMs) ?? write(() => take(nowMs, request));
    },
  };
}

export function createSourceWriter(sqlite: Database, pace: PaceWriter): SourceWriter {
  const setSource = sqlite.prepare('UPDATE mirror SET source_address = ?, source_selection = ? WHERE id = 1');
  return {
    ...pace,
    note: ({ address, selection, unfinished }) => {
      const selected = JSON.parse(selection) as object;
      setSource.run(address, JSON.stringify(unfinished ? { ...selected, unfinished } : selected));
    },
  };
}

/**
 * The `source` of events: the products address of the service that the mirror has noted, so that all processes agree.
 * @param fallback used until a service is noted
 */
export function eventSource(source: Pick<SourceReader, 'noted'>, fallback: string): string {
  const address = source.noted()?.address;
  return address === undefined ? fallback : `${address}/v4/products`;
}
