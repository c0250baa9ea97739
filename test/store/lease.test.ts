import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { LEASE_TTL_MS } from '../../src/store/lease.ts';
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
