import type { RunKind } from '@catchword/catalog/run-types';
import { tickName } from '@catchword/catalog/tick';
import type { Queries } from '../schema/queries.ts';
import type { Transact } from '../schema/transaction.ts';

/** A failed run that is to be retried. */
export interface Retry {
  readonly kind: RunKind;
  /** Milliseconds since 1970, by the local clock at the moment of the failure. */
  readonly at: number;
  /** Why the run failed; one sentence. */
  readonly reason: string;
}

export type TickReader = ReturnType<typeof createTickReader>;

/** Which scheduled moments were served, and which failed run is to be retried. */
export function createTickReader({ row, value }: Queries) {
  const served = value<[{ kind: RunKind }], number | null>(
    `SELECT coalesce(
       (SELECT served_at FROM schedule_ticks WHERE kind = :kind),
       (SELECT max(started_at) FROM runs WHERE state IN ('complete', 'held') AND (kind = :kind OR :kind = 'delta')))`,
  );
  const retry = row<[], Retry>(
    `SELECT retry_kind AS kind, retry_at AS at, retry_reason AS reason FROM mirror
     WHERE retry_kind IS NOT NULL AND retry_at IS NOT NULL AND retry_reason IS NOT NULL`,
  );
  return {
    /**
     * The newest scheduled moment that was served, milliseconds since 1970. If none was noted, the start of the newest
     * run that would have served one; null if no run did.
     */
    served: (kind: RunKind) => served({ kind }),
    /** The same for both kinds. */
    servedOfEach: () => ({ full: served({ kind: 'full' }), delta: served({ kind: 'delta' }) }),
    retry: () => retry() ?? null,
  };
}

/** Every process may write the schedule, without a lease. Each call is one transaction. */
export function createTickWriter({ write }: Queries, reader: TickReader, transact: Transact) {
  const setServed = (pick: 'max' | 'min') =>
    write<[kind: RunKind, atMs: number]>(
      `INSERT INTO schedule_ticks (kind, served_at) VALUES (?, ?)
       ON CONFLICT (kind) DO UPDATE SET served_at = ${pick}(served_at, excluded.served_at)`,
    );
  const serve = setServed('max');
  const putBack = setServed('min');
  // The names of one kind sort like their moments.
  const release = write('UPDATE runs SET tick = NULL WHERE tick > ? AND tick < ?');
  const setRetry = write<[Retry]>(
    `UPDATE mirror SET retry_kind = CASE retry_kind WHEN 'full' THEN 'full' ELSE :kind END, retry_at = :at,
       retry_reason = :reason WHERE id = 1`,
  );
  const clearRetry = write<[{ kind: RunKind }]>(
    `UPDATE mirror SET retry_kind = NULL, retry_at = NULL, retry_reason = NULL
     WHERE id = 1 AND (retry_kind = :kind OR :kind = 'full')`,
  );
  return {
    ...reader,
    /** Notes that the moment was served. Ignores moments before the newest one that was served. */
    serve: (kind: RunKind, atMs: number) => transact(() => serve(kind, atMs)),
    /** Forgets that moments after `nowMs` were served, and the names of runs after them: they can start runs again. */
    forgetAfter: (kind: RunKind, nowMs: number) =>
      transact(() => {
        putBack(kind, nowMs);
        release(tickName(kind, nowMs), `${kind}@a`);
      }),
    /** Notes a run to be retried. A full run stays noted when a delta fails. */
    setRetry: (retry: Retry) => transact(() => setRetry(retry)),
    /** Notes that a run of this kind succeeded or was cancelled. A full run also covers a delta, but not vice versa. */
    clearRetry: (kind: RunKind) => transact(() => clearRetry({ kind })),
  };
}
