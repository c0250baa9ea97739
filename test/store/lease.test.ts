import { rmSync } from 'node:fs';
import { query } from '@catchword/testing/sqlite';
import { expect, it } from 'vitest';
import { LEASE_TTL_MS } from '../../src/store/schema/lease.ts';
import { mirrorPath, openedStore } from './opened-store.ts';

/** Opens a mirror as two processes of other machines do: each counts as alive until its lease expires. */
function twoStores() {
  const db = mirrorPath();
  const open = (host: string) => openedStore(db, { self: { pid: 1, host, boot: null, pidNamespace: null } });
  return [open('one'), open('other')] as const;
}

it('a process that read its clock before another one took the lease does not take it away', () => {
  const [one, other] = twoStores();
  const lease = one.keeperLease.acquire(1_000_001);
  expect(() => other.keeperLease.acquire(1_000_000)).toThrow(expect.objectContaining({ code: 'MIRROR_BUSY' }));
  expect(lease.write(() => 'written')).toBe('written');
});

it('a lease that ends far ahead of the clock, which was put back, is free', () => {
  const [one, other] = twoStores();
  one.keeperLease.acquire(10 * LEASE_TTL_MS);
  expect(() => other.keeperLease.acquire(LEASE_TTL_MS)).not.toThrow();
});

it('a process whose lease another one took over after it had expired writes nothing, and cannot renew it', () => {
  const [one, other] = twoStores();
  const leaseLost = expect.objectContaining({ code: 'LEASE_LOST' });
  const lost = one.keeperLease.acquire(0);
  expect(lost.renew(LEASE_TTL_MS - 1)).toBe(true);
  expect(() => other.keeperLease.acquire(LEASE_TTL_MS + 1)).toThrow(/is running a run/);
  const [taken, living] = [other.keeperLease.acquire(2 * LEASE_TTL_MS), () => one.products.living()];
  expect(() => lost.write(({ products }) => products.addLiving(1))).toThrow(leaseLost);
  expect(() => lost.check()).toThrow(leaseLost);
  expect(lost.renew(2 * LEASE_TTL_MS + 1)).toBe(false);
  lost.release();
  expect(one.keeperLease.holder(2 * LEASE_TTL_MS + 1)).toMatchObject({ pid: 1, host: 'other' });
  expect(living()).toBe(0);
  taken.write(({ products }) => products.addLiving(1));
  expect(living()).toBe(1);
  taken.release();
  expect(() => taken.check()).toThrow(leaseLost);
  expect(() => taken.write(() => 'nothing')).toThrow(leaseLost);
  expect(() => one.keeperLease.acquire(2 * LEASE_TTL_MS + 2)).not.toThrow();
});

it('a lease is free as soon as the system ended the lock of its holder', () => {
  const db = mirrorPath();
  const [one, other] = [openedStore(db), openedStore(db)];
  one.keeperLease.acquire(0);
  expect(() => other.keeperLease.acquire(1)).toThrow(/is running a run/);
  one.close();
  expect(openedStore(db).keeperLease.holder(1)).toBeNull();
});

it('a lease that was taken over from a frozen process stays taken when that one wakes and ends its lock', () => {
  const db = mirrorPath();
  const [frozen, next] = [openedStore(db), openedStore(db)];
  frozen.keeperLease.acquire(0);
  next.keeperLease.acquire(2 * LEASE_TTL_MS);
  frozen.close();
  const late = () => openedStore(db).keeperLease.acquire(2 * LEASE_TTL_MS + 1);
  expect(late).toThrow(expect.objectContaining({ code: 'MIRROR_BUSY' }));
});

it('a lease says that its holder has no lock when somebody has removed the file of that lock', () => {
  const db = mirrorPath();
  const isLocked = () =>
    query<{ locked: number }>(db, "SELECT holder ->> '$.isLocked' AS locked FROM lease WHERE id = 1")[0]?.locked;
  const lease = openedStore(db).keeperLease.acquire(0);
  lease.renew(1);
  expect(isLocked()).toBe(1);
  // Otherwise another process could have this lock, and would take the lease away.
  rmSync(`${db}.keeper.lock`);
  lease.renew(2);
  expect(isLocked()).toBe(0);
});
