import type { Database } from 'better-sqlite3';
import type { RunKind } from '../catalog/run.ts';
import { tickName } from '../catalog/tick.ts';

/** A failed run that is to be retried. */
export interface Retry {
  readonly kind: RunKind;
  /** Milliseconds since 1970, by the local clock at the moment of the failure. */
  readonly at: number;
  /** Why the run failed; one sentence. */
  readonly reason: string;
}

/** Which scheduled moments were served, and which failed run is to be retried. */
export interface ScheduleReader {
  /**
   * The newest scheduled moment that was served, milliseconds since 1970. If none was noted, the start of the newest
   * run that would have served one; null if no run did.
   */
  served(kind: RunKind): number | null;
  retry(): Retry | null;
}

/** Every process may write the schedule, without a lease. Each call is one transaction. */
export interface ScheduleWriter extends ScheduleReader {
  /** Notes that the moment was served. Ignores moments before the newest one that was served. */
  serve(kind: RunKind, atMs: number): void;
  /**
   * Forgets that moments after `nowMs` were served; call it when the clock was put back. Runs that are named after such
   * a moment lose the name, so that the moment can start a run when it comes.
   */
  forgetAfter(kind: RunKind, nowMs: number): void;
  /** Notes a run to be retried. A full run stays noted when a delta fails. */
  setRetry(retry: Retry): void;
  /** Notes that a run of this kind succeeded or was cancelled. A full run also covers a delta, but not vice versa. */
  clearRetry(kind: RunKind): void;
}

interface RetryRow {
  readonly kind: RunKind | null;
  readonly at: number | null;
  readonly reason: string | null;
}

export function createScheduleReader(sqlite: Database): ScheduleReader {
  const served = sqlite
    .prepare<{ kind: RunKind }, number | null>(
      `SELECT coalesce(
         (SELECT served_at FROM schedule_ticks WHERE kind = :kind),
         (SELECT max(started_at) FROM runs WHERE state IN ('complete', 'held') AND (kind = :kind OR :kind = 'delta')))`,
    )
    .pluck();
  const retry = sqlite.prepare<[], RetryRow>(
    'SELECT retry_kind AS kind, retry_at AS at, retry_reason AS reason FROM mirror WHERE id = 1',
  );
  return {
    served: (kind) => served.get({ kind }) ?? null,
    retry: () => {
      const { kind, at, reason } = retry.get() ?? { kind: null, at: null, reason: null };
      return kind === null || at === null ? null : { kind, at, reason: reason ?? '' };
    },
  };
}

export function createScheduleWriter(
  sqlite: Database,
  reader: ScheduleReader,
  write: <T>(work: () => T) => T,
): ScheduleWriter {
  const serve = sqlite.prepare(
    `INSERT INTO schedule_ticks (kind, served_at) VALUES (?, ?)
     ON CONFLICT (kind) DO UPDATE SET served_at = max(served_at, excluded.served_at)`,
  );
  const putBack = sqlite.prepare(
    `INSERT INTO schedule_ticks (kind, served_at) VALUES (?, ?)
     ON CONFLICT (kind) DO UPDATE SET served_at = min(served_at, excluded.served_at)`,
  );
  // The names of one kind sort like their moments.
  const release = sqlite.prepare('UPDATE runs SET tick = NULL WHERE tick > ? AND tick < ?');
  const setRetry = sqlite.prepare(
    `UPDATE mirror SET retry_kind = CASE retry_kind WHEN 'full' THEN 'full' ELSE :kind END, retry_at = :at,
       retry_reason = :reason WHERE id = 1`,
  );
  const clearRetry = sqlite.prepare(
    `UPDATE mirror SET retry_kind = NULL, retry_at = NULL, retry_reason = NULL
     WHERE id = 1 AND (retry_kind = :kind OR :kind = 'full')`,
  );
  return {
    ...reader,
    serve: (kind, atMs) => write(() => serve.run(kind, atMs)),
    forgetAfter: (kind, nowMs) => {
      write(() => {
        putBack.run(kind, nowMs);
        release.run(tickName(kind, nowMs), `${kind}@a`);
      });
    },
    setRetry: (owed) => write(() => setRetry.run({ ...owed })),
    clearRetry: (kind) => write(() => clearRetry.run({ kind })),
  };
}
