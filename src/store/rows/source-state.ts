import { LONGEST_PAUSE_MS, laterPause, type Pause, pauseAt } from '@catchword/base/clock';
import type { SourceIdentity } from '@catchword/catalog/source-identity';
import type { LearnedRate } from '@catchword/pace/learned-rate';
import type { Reserve } from '@catchword/pace/pacer';
import type { Clocks } from '../../proof/watermark.ts';
import type { Queries } from '../schema/queries.ts';
import type { Transact } from '../schema/transaction.ts';

/** The source that a mirror has noted. */
export interface NotedSource extends SourceIdentity {
  /**
   * A run has started with another address or selection, or a backup was restored, and no full run has completed since:
   * the mirror may hold products of both, or lack removals. `selection` is then the previous one.
   */
  readonly unfinished: boolean;
  /** Fields that the newest full run ignored, by setting, as pointers between commas; undefined: not known. */
  readonly ignored?: Readonly<Record<string, string>> | undefined;
}

/** The page size in which a whole pass was read: of a list, or a smaller one than the pass began with. */
export interface LearnedPage {
  /** CATCHWORD_PER_PAGE then. */
  readonly asked: number;
  readonly perPage: number;
  /** When it was learned, by this machine's clock. */
  readonly at: number;
}

/** After this time the configured size is tried again: the source may only have been slow. */
const LEARNED_PAGE_MS = 7 * 86_400_000;

function pauseOf(noted: Pause | undefined, nowMs: number): Pause | null {
  if (noted === undefined) return null;
  const { since, until } = noted;
  return pauseAt({ since, until: Math.min(until, since + LONGEST_PAUSE_MS) }, nowMs);
}

export type SourceReader = ReturnType<typeof createSourceReader>;

/** What all processes of a mirror know about its source. Times are milliseconds since 1970 by the local clock. */
export function createSourceReader({ row, value }: Queries) {
  const learnedRate = value<[], string | null>('SELECT learned_rate FROM mirror WHERE id = 1');
  const page = value<[], string | null>('SELECT learned_page FROM mirror WHERE id = 1');
  const learnedPage = () => JSON.parse(page() ?? 'null') as LearnedPage | null;
  const notedPause = row<[], Pause>(
    `SELECT blocked_since AS since, blocked_until AS until FROM mirror
     WHERE blocked_since IS NOT NULL AND blocked_until IS NOT NULL`,
  );
  const source = row<[], SourceIdentity>(
    `SELECT source_address AS address, source_selection AS selection FROM mirror
     WHERE source_address IS NOT NULL AND source_selection IS NOT NULL`,
  );

  return {
    /** Null before the first run. */
    noted: (): NotedSource | null => {
      const found = source();
      if (found === undefined) return null;
      const { unfinished = false, ignored, ...selection } = JSON.parse(found.selection) as Partial<NotedSource>;
      return { address: found.address, selection: JSON.stringify(selection), unfinished, ignored };
    },
    /** The rate that was learned where none is configured; null if the source has not refused a request. */
    learnedRate: () => JSON.parse(learnedRate() ?? 'null') as LearnedRate | null,
    /** Null if the source answers pages of the configured size, or that was not tried for a week. */
    learnedPage: (nowMs: number): LearnedPage | null => {
      const found = learnedPage();
      return found !== null && found.perPage < found.asked && Math.abs(nowMs - found.at) < LEARNED_PAGE_MS
        ? found
        : null;
    },
    /** The page size in which a list was read last; null: not known. */
    listedSize: (): number | null => learnedPage()?.perPage ?? null,
    notedPause,
    /** The pause that the source asked for, at most a day; null if there is none or it is over. */
    pause: (nowMs: number) => pauseOf(notedPause(), nowMs),
  };
}

/** Whether only a full run can complete the mirror: it was never filled, or `NotedSource.unfinished`. */
export function needsFullRun(reader: {
  readonly watermark: () => number | null;
  readonly source: SourceReader;
}): boolean {
  return reader.watermark() === null || reader.source.noted()?.unfinished === true;
}

export type PaceWriter = ReturnType<typeof createPaceWriter>;

/**
 * Pauses and the rate limit. Every process may write them, without a lease: each call is one transaction. All may throw
 * CatchwordError MIRROR_BUSY and MIRROR_WRITE_FAILED.
 */
export function createPaceWriter(queries: Queries, reader: SourceReader, transact: Transact) {
  const { isReadonly, number, write } = queries;
  const setPause = write('UPDATE mirror SET blocked_since = ?, blocked_until = ? WHERE id = 1');
  const next = number('SELECT next_request_at FROM mirror WHERE id = 1');
  const setNext = write('UPDATE mirror SET next_request_at = ? WHERE id = 1');
  const setLearned = write('UPDATE mirror SET learned_rate = ? WHERE id = 1');

  /** @returns false if this user may only read the mirror */
  function set(pauseNow: () => Pause | null): boolean {
    if (isReadonly) return false;
    transact(() => {
      const pause = pauseNow();
      setPause(pause?.since ?? null, pause?.until ?? null);
    });
    return true;
  }

  return {
    ...reader,
    /** As `pause`, and notes it as it is by this clock: a pause restarts only once when the clock was put back. */
    keepPause: (nowMs: number): Pause | null => {
      const known = reader.notedPause();
      const pause = pauseOf(known, nowMs);
      const isKnown = pause?.since === known?.since && pause?.until === known?.until;
      if (!isKnown) set(() => reader.pause(nowMs));
      return pause;
    },
    /** Notes a pause, unless a noted one ends later. @returns false, as `forgetPause`, if the mirror is read-only */
    notePause: (pause: Pause) => set(() => laterPause(reader.pause(pause.since), pause)),
    forgetPause: () => set(() => null),
    /** Notes what was learned of the rate. Does nothing if this user may only read the mirror. */
    learnRate: (learn: (known: LearnedRate | null) => LearnedRate | null): void => {
      if (isReadonly) return;
      transact(() => {
        const learned = learn(reader.learnedRate());
        setLearned(learned === null ? null : JSON.stringify(learned));
      });
    },
    /**
     * As `Reserve`; null if this user may only read the mirror. The reservation is durable before a request is made: a
     * process that is killed loses its turn, and never causes an extra request.
     */
    reserve: (nowMs: number, { intervalMs, slackMs, slots }: Parameters<Reserve>[1]): number | null => {
      if (isReadonly) return null;
      const spanMs = slots * intervalMs;
      const turn = next();
      // There is nothing to write.
      if (turn > nowMs && turn <= nowMs + spanMs) return turn;
      return transact(() => {
        // Processes never reserve further ahead than this: a later moment shows that the clock was put back.
        const at = Math.min(next(), nowMs + spanMs);
        const slot = nowMs - at <= slackMs ? at : nowMs;
        setNext(at > nowMs ? at : slot + spanMs);
        return slot;
      });
    },
  };
}

/** What the keeper writes about the source. */
export function createSourceWriter({ write }: Queries, pace: PaceWriter) {
  // A limit was learned from one address; another one may have another limit.
  const setSource = write(
    `UPDATE mirror SET learned_rate = iif(source_address <> :address, NULL, learned_rate),
     learned_page = iif(source_address <> :address, NULL, learned_page),
     source_address = :address, source_selection = :selection WHERE id = 1`,
  );
  const setPage = write('UPDATE mirror SET learned_page = ? WHERE id = 1');
  return {
    ...pace,
    learnPage: (page: LearnedPage) => setPage(JSON.stringify(page)),
    /** Notes the source. Fields that were ignored stay noted unless others are given. */
    note: ({ address, selection, unfinished, ignored = pace.noted()?.ignored }: NotedSource): void => {
      const selected = { ...(JSON.parse(selection) as object), ignored, ...(unfinished && { unfinished }) };
      setSource({ address, selection: JSON.stringify(selected) });
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

export function createWatermarkReader({ row, value }: Queries) {
  const clockSeen = row<[], Clocks>(
    'SELECT source_seen AS source, local_seen AS local FROM mirror WHERE source_seen IS NOT NULL AND local_seen IS NOT NULL',
  );
  return {
    /** Source time up to which every change is in the mirror, milliseconds since 1970; null before the first run. */
    watermark: value<[], number | null>('SELECT watermark FROM mirror WHERE id = 1'),
    /**
     * Where the next delta starts, before any overlap: the watermark, or earlier if the source's clock was put back or
     * forward, or if what deltas told is to be told again.
     */
    readUpTo: value<[], number | null>(
      'SELECT min(watermark, source_seen, ifnull(reread_from, watermark)) FROM mirror',
    ),
    /** The source's clock and this machine's when the watermark was last set. */
    clockSeen: () => clockSeen() ?? null,
    /** The same at the first answer of an earlier run: the newest one that had it by `localMs`. */
    clockBefore: row<[runId: number, localMs: number], Clocks>(
      `SELECT source_time AS source, answered_at AS local FROM runs WHERE id < ? AND answered_at <= ?
       ORDER BY id DESC LIMIT 1`,
    ),
    /** The earliest source time of a run; null before the first answer. */
    firstAnswer: value<[], number | null>('SELECT min(source_time) FROM runs'),
  };
}

export function createWatermarkWriter({ write }: Queries) {
  const advance = write(
    `UPDATE mirror SET watermark = max(coalesce(watermark, 0), :to), source_seen = :to, local_seen = :local,
       reread_from = NULL WHERE id = 1`,
  );
  const reread = write('UPDATE mirror SET reread_from = min(coalesce(reread_from, :from), :from) WHERE id = 1');
  return {
    /** Lets the next delta start at this time, or earlier. */
    readAgainFrom: (fromMs: number) => reread({ from: fromMs }),
    /** Moves the watermark forward; never back. @param localMs this machine's clock when the source's was `toMs` */
    advanceWatermark: (toMs: number, localMs: number) => advance({ to: toMs, local: localMs }),
  };
}
