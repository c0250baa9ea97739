import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createLog } from '@catchword/base/log';
import { listen } from '@catchword/testing/listen';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { createHandClock } from '@catchword/testing/test-clocks';
import { expect, it, onTestFinished } from 'vitest';
import { startWhenPortIsFree } from '../../src/http/wait-for-port.ts';
import { startWeb } from '../../src/http/web-server.ts';
import { openStore } from '../../src/store/store.ts';
import { WEB } from './place.ts';

const log = createLog('silent');

/** Starts web for a mirror while another server uses its port. */
async function waitingWeb() {
  const db = join(temporaryDirectory(), 'catalog.db');
  openStore(db).close();
  const other = createServer();
  const port = await listen(other);
  const clock = createHandClock(Date.now());
  const start = () => startWeb({ ...WEB, db, port, clock, log });
  const service = await startWhenPortIsFree(start, { clock, log });
  // Closing a mirror that was replaced fails once more.
  onTestFinished(() => service.stop().catch(() => {}));
  const isReachable = () =>
    fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  return { db, other, clock, service, isReachable };
}

it('web fails after it waited for its port as it would without the wait', async () => {
  const { db, other, clock, service, isReachable } = await waitingWeb();
  other.close();
  await once(other, 'close');
  await clock.pass(2_000);
  await expect.poll(isReachable).toBe(true);
  rmSync(db);
  const failed = expect(service.failed).rejects.toMatchObject({ code: 'MIRROR_REPLACED' });
  await clock.pass(60_000);
  await failed;
});

it('web stops while it waits for its port, and after', async () => {
  const waiting = await waitingWeb();
  await waiting.service.stop();
  const { other, clock, service, isReachable } = await waitingWeb();
  other.close();
  await once(other, 'close');
  await clock.pass(2_000);
  await expect.poll(isReachable).toBe(true);
  await service.stop();
  expect(await isReachable()).toBe(false);
});
