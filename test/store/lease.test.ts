import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { LEASE_TTL_MS } from '../../src/store/schema/lease.ts';
import { openStore } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/mirror.ts';

/** Opens a mirror as two processes of other machines do: each counts as alive until its lease expires. */
function twoStores() {
  const db = join(temporaryDirectory(), 'catalog.db');
  const stores = ['one', 'other'].map((host) =>
    openStore(db, { self: { pid: 1, host, boot: null, pidNamespace: null } }),
  );
  onTestFinished(() => {
    for (const store of stores) store.close();
  });
  return stores as [(typeof stores)[0], (typeof stores)[0]];
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

it('a process whose lease another one took over writes nothing, and cannot renew it', () => {
  const [one, other] = twoStores();
  const lost = one.keeperLease.acquire(0);
  const taken = other.keeperLease.acquire(LEASE_TTL_MS + 1);
  const living = () => one.products.living();
  const leaseLost = expect.objectContaining({ code: 'LEASE_LOST' });
  expect(() => lost.write(({ products }) => products.addLiving(1))).toThrow(leaseLost);
  expect(() => lost.check()).toThrow(leaseLost);
  expect(lost.renew(LEASE_TTL_MS + 2)).toBe(false);
  expect(living()).toBe(0);
  taken.write(({ products }) => products.addLiving(1));
  expect(living()).toBe(1);
  taken.release();
  expect(() => taken.check()).toThrow(leaseLost);
});
