import { getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readLicenses } from '../../src/client/licenses/licenses.ts';
import type { Clock } from '../../src/clock.ts';
import { temporaryDirectory } from '../support/mirror.ts';
import { connectTo, failure, golden, hastyClock, NEVER, type Reply, serve } from './connection.ts';

const STALE: Reply = { status: 401, body: '<error code="601" message="no longer valid"/>' };
const TROUBLE: Reply = { status: 503, headers: { 'retry-after': '20' } };

interface PatientClock extends Clock {
  /** Resolves when somebody sleeps. */
  readonly asleep: Promise<void>;
  readonly sleepers: () => number;
}

/** A clock on which nothing but a signal ends a sleep. */
function patientClock(): PatientClock {
  let sleepers = 0;
  let fallAsleep = (): void => {};
  const asleep = new Promise<void>((resolve) => {
    fallAsleep = resolve;
  });
  return {
    ...hastyClock(),
    asleep,
    sleepers: () => sleepers,
    sleep: async (_ms, signal) => {
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

describe('a connection that is closed', () => {
  it('ends the calls that have no answer, and takes no further ones', async () => {
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

  it('ends the calls that wait for another try', async () => {
    const clock = patientClock();
    const { url, asked } = await serve(() => TROUBLE);
    const { caller, ...connection } = connectTo(url, {}, clock);
    const calls = [1, 2, 3].map(() => failure(readLicenses(caller, {}, NEVER)));
    await expect.poll(clock.sleepers).toBe(3);
    const before = asked.length;
    await connection.close();
    for (const call of calls) expect(await call).toMatchObject(CLOSED);
    expect(clock.sleepers()).toBe(0);
    // None of them took the end of its wait for the time to try again.
    expect(asked).toHaveLength(before);
  });

  it('ends the renewal of a token for which nobody waits any longer', async () => {
    const clock = patientClock();
    const gone = new AbortController();
    const { url } = await serve(({ url: path }) => (path.includes('licenses') ? STALE : TROUBLE));
    const { caller, ...connection } = connectTo(url, { userReference: 'me' }, clock);
    const call = failure(readLicenses(caller, {}, gone.signal));
    await clock.asleep;
    gone.abort();
    expect(await call).toMatchObject({ code: 'INTERRUPTED', message: 'the request was given up' });
    expect(clock.sleepers()).toBe(1);
    await connection.close();
    expect(clock.sleepers()).toBe(0);
  });

  it('does not wait for the lock of another process', async () => {
    const tokenStore = join(temporaryDirectory(), 'token');
    writeFileSync(`${tokenStore}.lock`, `${hostname()} ${process.pid} x`);
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
});

describe('the signal of a call', () => {
  it('is not held on to when the call is done', async () => {
    const { signal } = new AbortController();
    const { url } = await serve(({ headers }, index) =>
      index === 0 ? TROUBLE : headers['x-token'] === 'new' ? golden('licenses-none.xml') : verified(index),
    );
    const { caller } = connectTo(url, { userReference: 'me' });
    await readLicenses(caller, {}, signal);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

/** First the token is refused, then another one is there. */
function verified(index: number): Reply | string {
  if (index === 1) return STALE;
  return '<credentials><credential reference="me" guid="G" access-token="new" email=""/></credentials>';
}
