import type { Database } from 'better-sqlite3';
import type { RunKind } from '../catalog/run.ts';
import { tickName } from '../catalog/tick.ts';

/** A run that failed and is tried again. */
export interface Retry {
  readonly kind: RunKind;
  /** Milliseconds since 1970, by the local clock at the moment of the failure. */
  readonly at: number;
  /** Why the run failed; one sentence. */
  readonly reason: string;
}

/** Which scheduled moments were served, and which failed run is owed. */
export interface ScheduleStore {
  /**
   * The newest moment of the schedule that was served, milliseconds since 1970. Where none was noted: when the newest run
   * began that would have served it; null where there is none.
   */
  served(kind: RunKind): number | null;
  /** Notes that the moment was served; an earlier moment than the noted one changes nothing. */
  serve(kind: RunKind, atMs: number): void;
  /**
   * For a clock that was put back: moments after `nowMs` were not served, whatever was noted while the clock was ahead.
   * Runs that bear the name of such a moment lose it, so that the moment can start a run when it comes.
   */
  forgetAfter(kind: RunKind, nowMs: number): void;
  retry(): Retry | null;
  /** A full run that is owed stays owed when a delta fails. */
  setRetry(retry: Retry): void;
  /** A run of this kind succeeded or was cancelled: a full run covers a delta, a delta does not cover a full run. */
  clearRetry(kind: RunKind): void;
}

interface RetryRow {
  readonly kind: RunKind | null;
  readonly at: number | null;
  readonly reason: string | null;
}

export function createScheduleStore(sqlite: Database, write: <T>(work: () => T) => T): ScheduleStore {
  const served = sqlite
    .prepare<{ kind: RunKind }, number | null>(
      `SELECT coalesce(
         (SELECT served_at FROM schedule_ticks WHERE kind = :kind),
         (SELECT max(started_at) FROM runs WHERE state IN ('complete', 'held') AND (kind = :kind OR :kind = 'delta')))`,
    )
    .pluck();
  const serve = sqlite.prepare(
    `INSERT INTO schedule_ticks (kind, served_at) VALUES (?, ?)
     ON CONFLICT (kind) DO UPDATE SET served_at = max(served_at, excluded.served_at)`,
  );
  const putBack = sqlite.prepare(
    `INSERT INTO schedule_ticks (kind, served_at) VALUES (?, ?)
     ON CONFLICT (kind) DO UPDATE SET served_at = min(served_at, excluded.served_at)`,
  );
  // Names of one kind sort as their moments do.
  const release = sqlite.prepare('UPDATE runs SET tick = NULL WHERE tick > ? AND tick < ?');
  const retry = sqlite.prepare<[], RetryRow>(
    'SELECT retry_kind AS kind, retry_at AS at, retry_reason AS reason FROM mirror WHERE id = 1',
  );
  const setRetry = sqlite.prepare(
    `UPDATE mirror SET retry_kind = CASE retry_kind WHEN 'full' THEN 'full' ELSE :kind END, retry_at = :at,
       retry_reason = :reason WHERE id = 1`,
  );
  const clearRetry = sqlite.prepare(
    `UPDATE mirror SET retry_kind = NULL, retry_at = NULL, retry_reason = NULL
     WHERE id = 1 AND (retry_kind = :kind OR :kind = 'full')`,
  );
  return {
    served: (kind) => served.get({ kind }) ?? null,
    serve: (kind, atMs) => {
      write(() => serve.run(kind, atMs));
    },
    forgetAfter: (kind, nowMs) => {
      write(() => {
        putBack.run(kind, nowMs);
        release.run(tickName(kind, nowMs), `${kind}@a`);
      });
    },
    retry: () => {
      const { kind, at, reason } = retry.get() ?? { kind: null, at: null, reason: null };
      return kind === null || at === null ? null : { kind, at, reason: reason ?? '' };
    },
    setRetry: (owed) => {
      write(() => setRetry.run({ ...owed }));
    },
    clearRetry: (kind) => {
      write(() => clearRetry.run({ kind }));
    },
  };
}
