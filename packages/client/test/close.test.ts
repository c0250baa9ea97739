// @module-tag service
import { getEventListeners } from 'node:events';
import { join } from 'node:path';
import { holdFile } from '@catchword/base/file-lock';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { readLicenses } from 'catchword-client/licenses/licenses';
import { expect, it, onTestFinished } from 'vitest';
import { connectTo, failure, golden, hastyClock, NEVER, type Reply, serve } from './connection.ts';
import { STALE } from './stale-token.ts';

const TROUBLE: Reply = { status: 503, headers: { 'retry-after': '20' } };

/** A clock whose sleeps end only by a signal. */
function patientClock() {
  let sleepers = 0;
  let fallAsleep = (): void => {};
  const asleep = new Promise<void>((resolve) => {
    fallAsleep = resolve;
  });
  return {
    ...hastyClock(),
    /** Resolves when the first sleep begins. */
    asleep,
    sleepers: () => sleepers,
    sleep: async (_ms: number, signal?: AbortSignal): Promise<void> => {
      sleepers++;
      fallAsleep();
      await new Promise<void>((resolve) => {
        if (signal?.aborted === true) resolve();
        signal?.addEventListener('abort', () => resolve(), { once: true });
      });
      sleepers--;
      throw new Error('aborted');
    },
  };
}

const CLOSED = { code: 'INTERRUPTED', retryable: false, message: expect.stringContaining('is closed') as string };

it('closing a connection aborts calls in flight, and rejects later ones', async () => {
  let arrived = (): void => {};
  const arrival = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const { url, asked } = await serve(() => {
    arrived();
    return null;
  });
  const { caller, ...connection } = connectTo(url);
  const call = failure(readLicenses(caller, {}, NEVER));
  await arrival;
  await connection.close();
  expect(await call).toMatchObject(CLOSED);
  expect(await failure(readLicenses(caller, {}, NEVER))).toMatchObject(CLOSED);
  expect(asked).toHaveLength(1);
  await connection.close();
});

it('closing a connection aborts calls that wait for a retry', async () => {
  const clock = patientClock();
  const { url, asked } = await serve(() => TROUBLE);
  const { caller, ...connection } = connectTo(url, {}, clock);
  const calls = [1, 2, 3].map(() => failure(readLicenses(caller, {}, NEVER)));
  await expect.poll(clock.sleepers).toBe(3);
  const before = asked.length;
  await connection.close();
  for (const call of calls) expect(await call).toMatchObject(CLOSED);
  expect(clock.sleepers()).toBe(0);
  // None of them was retried.
  expect(asked).toHaveLength(before);
});

it('closing a connection aborts a token renewal after its caller has aborted', async () => {
  const clock = patientClock();
  const gone = new AbortController();
  const { url } = await serve(({ url: path }) => (path.includes('licenses') ? STALE : TROUBLE));
  const { caller, ...connection } = connectTo(url, { userReference: 'me' }, clock);
  const call = failure(readLicenses(caller, {}, gone.signal));
  await clock.asleep;
  gone.abort();
  expect(await call).toMatchObject({ code: 'INTERRUPTED', message: 'the request was aborted' });
  expect(clock.sleepers()).toBe(1);
  await connection.close();
  expect(clock.sleepers()).toBe(0);
});

it('closing a connection aborts the wait for the lock of the token store', async () => {
  const tokenStore = join(temporaryDirectory(), 'token');
  const release = holdFile(tokenStore);
  onTestFinished(() => release?.());
  const clock = patientClock();
  const { url, asked } = await serve(() => STALE);
  const { caller, ...connection } = connectTo(url, { userReference: 'me', tokenStore }, clock);
  const call = failure(readLicenses(caller, {}, NEVER));
  await clock.asleep;
  await connection.close();
  expect(await call).toMatchObject(CLOSED);
  expect(clock.sleepers()).toBe(0);
  expect(asked).toHaveLength(1);
});

it('the signal of a call has no listener left after the call', async () => {
  const { signal } = new AbortController();
  const { url } = await serve(({ headers }, index) =>
    index === 0 ? TROUBLE : headers['x-token'] === 'new' ? golden('licenses-none.xml') : verified(index),
  );
  const { caller } = connectTo(url, { userReference: 'me' });
  await readLicenses(caller, {}, signal);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

/** Rejects the token first, and then returns another one. */
function verified(index: number): Reply | string {
  if (index === 1) return STALE;
  return '<credentials><credential reference="me" guid="G" access-token="new" email=""/></credentials>';
}
