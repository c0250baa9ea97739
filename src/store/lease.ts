import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Database } from 'better-sqlite3';
import { CatchwordError } from '../errors.ts';

/**
 * Who may write runs of this mirror, or feed its sinks: one process at a time, each with a higher epoch than the one
 * before.
 *
 * A holder renews; one that stops renewing loses the lease when it expires. A holder that is known to be dead (same
 * machine, same boot, no such process) loses it at once, so that a restart after a kill need not wait.
 */
export interface LeaseStore {
  /**
   * @param nowMs local clock
   * @returns the new epoch
   * @throws CatchwordError MIRROR_BUSY naming the holder
   */
  acquire(nowMs: number): number;
  /** @returns false when the lease was lost */
  renew(epoch: number, nowMs: number): boolean;
  release(epoch: number): void;
  /** @throws CatchwordError LEASE_LOST; call it inside the transaction that it guards */
  check(epoch: number): void;
  /** The process that holds a lease which has not expired. */
  holder(nowMs: number): Holder | null;
}

export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Ids of the boot and of the process namespace in which `pid` means something; null where unknown. */
  readonly boot: string | null;
  readonly pidNamespace: string | null;
}

/** What a lease is for; one row of the table each. */
export const LEASES = {
  runs: { id: 1, doing: 'is running a run on this mirror' },
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
    // Not Linux: whether another process lives is not known, expiry decides.
    return { ...self, boot: null, pidNamespace: null };
  }
}

/** True only where it is certain: the holder ran here, before a reboot or under a process id that is free now. */
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

export function createLeaseStore(
  sqlite: Database,
  write: <T>(work: () => T) => T,
  { id, doing }: (typeof LEASES)[keyof typeof LEASES],
  self: Holder = thisProcess(),
): LeaseStore {
  const read = sqlite.prepare<[number], LeaseRow>('SELECT epoch, holder, expires_at FROM lease WHERE id = ?');
  const take = sqlite.prepare(
    `INSERT INTO lease (id, epoch, holder, expires_at) VALUES (:id, :epoch, :holder, :until)
     ON CONFLICT (id) DO UPDATE SET epoch = :epoch, holder = :holder, expires_at = :until`,
  );
  const extend = sqlite.prepare('UPDATE lease SET expires_at = ? WHERE id = ? AND epoch = ?');
  const free = sqlite.prepare('UPDATE lease SET holder = NULL, expires_at = NULL WHERE id = ? AND epoch = ?');

  function current(): LeaseRow {
    return read.get(id) ?? { epoch: 0, holder: null, expires_at: null };
  }

  function holder(nowMs: number): Holder | null {
    const row = current();
    if (row.holder === null || row.expires_at === null || row.expires_at <= nowMs) return null;
    // A clock that was set back would otherwise keep a dead holder for as long.
    if (row.expires_at > nowMs + LEASE_TTL_MS) return null;
    const found = JSON.parse(row.holder) as Holder;
    return isDead(found, self) ? null : found;
  }

  return {
    holder,
    acquire: (nowMs) =>
      write(() => {
        const other = holder(nowMs);
        if (other !== null) {
          throw new CatchwordError('MIRROR_BUSY', `process ${other.pid} on ${other.host} ${doing}`, {
            hint: 'Wait for it, or see what it does with: npx catchword status.',
          });
        }
        const epoch = current().epoch + 1;
        take.run({ id, epoch, holder: JSON.stringify(self), until: nowMs + LEASE_TTL_MS });
        return epoch;
      }),
    renew: (epoch, nowMs) => write(() => extend.run(nowMs + LEASE_TTL_MS, id, epoch).changes === 1),
    release: (epoch) => {
      write(() => free.run(id, epoch));
    },
    check: (epoch) => {
      if (current().epoch !== epoch) {
        throw new CatchwordError('LEASE_LOST', 'another process has taken over this mirror', {
          hint: 'Nothing was lost: the other one goes on from the last checkpoint.',
        });
      }
    },
  };
}
