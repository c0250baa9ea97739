import { copyFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { createLog } from '@catchword/base/log';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { expect, it, onTestFinished } from 'vitest';
import { hastyClock } from '../../src/contract/harness.ts';
import { startStandby } from '../../src/operate/schedule/standby.ts';
import { openStore } from '../../src/store/store.ts';

it('a process that stands by takes over a mirror that was replaced meanwhile', async () => {
  const directory = temporaryDirectory();
  const db = join(directory, 'catalog.db');
  openStore(db).close();
  copyFileSync(db, `${db}.backup`);
  // A holder on another machine counts as alive until its lease expires.
  const active = openStore(db, { self: { pid: 1, host: 'elsewhere', boot: null, pidNamespace: null } });
  active.daemonLease.acquire(Date.now());
  let starts = 0;
  const standby = await startStandby({
    role: 'daemon',
    db,
    mode: undefined,
    clock: hastyClock,
    log: createLog('silent'),
    start: async () => {
      starts++;
    },
  });
  onTestFinished(() => standby.stop());
  expect(starts).toBe(0);
  renameSync(`${db}.backup`, db);
  await expect.poll(() => starts).toBe(1);
});
