import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Database } from 'better-sqlite3';
import { CatchwordError } from '../errors.ts';
import { createQueries } from './queries.ts';

export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Ids of the boot and of the process namespace in which `pid` is valid; null if unknown. */
  readonly boot: string | null;
  readonly pidNamespace: string | null;
}

/** One row of the table for each lease. See writers.ts for what each protects. */
export const LEASES = {
  keeper: { id: 1, doing: 'is running a run on this mirror' },
  relay: { id: 2, doing: 'feeds the sinks of this mirror' },
  daemon: { id: 3, doing: 'is the daemon of this mirror' },
} as const;

/** How long a holder may be silent, in milliseconds. */
export const LEASE_TTL_MS = 30_000;

/** This process, as a holder. */
export function thisProcess(): Holder {
  const self = { pid: process.pid, host: hostname() };
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return { ...self, boot, pidNamespace: readlinkSync('/proc/self/ns/pid') };
  } catch {
    // Not Linux: whether another process is alive is unknown, so only expiry ends its lease.
    return { ...self, boot: null, pidNamespace: null };
  }
}

/** True only if it is certain: the holder ran here, before a reboot or under a process id that is free now. */
function isDead(holder: Holder, self: Holder): boolean {
  if (self.boot === null || holder.host !== self.host || holder.pidNamespace !== self.pidNamespace) return false;
  if (holder.boot !== self.boot) return true;
  if (holder.pid === self.pid) return false;
  try {
    process.kill(holder.pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

interface LeaseRow {
  readonly epoch: number;
  readonly holder: string | null;
  readonly expires_at: number | null;
}

/** A lease that was acquired: the only way to its writer. */
export type Leased<Writer> = ReturnType<Lease<Writer>['acquire']>;
export type Lease<Writer> = ReturnType<typeof createLease<Writer>>;

/**
 * Gives one process at a time the right to write. Each holder gets a higher epoch than the one before.
 *
 * A holder renews its lease; one that stops renewing loses it when it expires. A holder that is known to be dead (same
 * machine, same boot, no such process) loses it at once, so that a restart after a kill does not have to wait.
 *
 * @param write runs its argument in one write transaction
 */
export function createLease<Writer>(
  sqlite: Database,
  { id, doing }: (typeof LEASES)[keyof typeof LEASES],
  writer: Writer,
  self: Holder,
  write: <T>(work: () => T) => T,
) {
  const { row, write: update } = createQueries(sqlite);
  const read = row<[number], LeaseRow>('SELECT epoch, holder, expires_at FROM lease WHERE id = ?');
  const take = update(
    `INSERT INTO lease (id, epoch, holder, expires_at) VALUES (:id, :epoch, :holder, :until)
     ON CONFLICT (id) DO UPDATE SET epoch = :epoch, holder = :holder, expires_at = :until`,
  );
  const extend = update('UPDATE lease SET expires_at = ? WHERE id = ? AND epoch = ?');
  const free = update('UPDATE lease SET holder = NULL, expires_at = NULL WHERE id = ? AND epoch = ?');

  function current(): LeaseRow {
    return read(id) ?? { epoch: 0, holder: null, expires_at: null };
  }

  /** The process that holds a lease which has not expired. */
  function holder(nowMs: number): Holder | null {
    const row = current();
    if (row.holder === null || row.expires_at === null || row.expires_at <= nowMs) return null;
    // Otherwise a clock that was set back would keep a dead holder for as long.
    if (row.expires_at > nowMs + LEASE_TTL_MS) return null;
    const found = JSON.parse(row.holder) as Holder;
    return isDead(found, self) ? null : found;
  }

  function leased(epoch: number) {
    let isReleased = false;

    /** @throws CatchwordError LEASE_LOST */
    function check(): void {
      if (!isReleased && current().epoch === epoch) return;
      throw new CatchwordError('LEASE_LOST', 'another process has taken over this mirror', {
        hint: 'Nothing was lost: the other process resumes from the last checkpoint.',
      });
    }

    return {
      check,
      /**
       * Runs `work` in one transaction, after checking in it that the lease is still held.
       * @throws CatchwordError LEASE_LOST; as `createWriteTransaction`
       */
      write: <T>(work: (writer: Writer) => T): T =>
        write(() => {
          check();
          return work(writer);
        }),
      /** @returns false when the lease was lost */
      renew: (nowMs: number): boolean => write(() => extend(nowMs + LEASE_TTL_MS, id, epoch)) === 1,
      release: (): void => {
        isReleased = true;
        write(() => free(id, epoch));
      },
    };
  }

  return {
    holder,
    /**
     * @param nowMs local clock
     * @throws CatchwordError MIRROR_BUSY naming the holder
     */
    acquire: (nowMs: number) =>
      write(() => {
        const other = holder(nowMs);
        if (other !== null) {
          throw new CatchwordError('MIRROR_BUSY', `process ${other.pid} on ${other.host} ${doing}`, {
            hint: 'Wait until it ends, or see what it does: npx catchword status.',
          });
        }
        const epoch = current().epoch + 1;
        take({ id, epoch, holder: JSON.stringify(self), until: nowMs + LEASE_TTL_MS });
        return leased(epoch);
      }),
  };
}
