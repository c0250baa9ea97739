import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '@catchword/base/clock';
import { CatchwordError } from '@catchword/base/errors';
import type { FetchTask, PageResponse } from '@catchword/catalog/page-types';
import type { Random } from '@catchword/sandbox/catalog/random';
import { bytesOf } from '@catchword/testing/page';
import type { CatalogClient } from 'catchword-client/catalog-client';
import type { Leased } from '../../src/store/schema/lease.ts';
import type { KeeperWriter } from '../../src/store/schema/writers.ts';
import type { Store } from '../../src/store/store.ts';

/* What is around the daemon of years.ts: time, the source, and what goes wrong. */

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HALF_HOUR = 30 * MINUTE;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** Half a day past midnight in no zone: the first nights are whole. */
export const START = Date.parse('2026-01-01T12:00:00Z');

/** What disturbs the daemon; in true time. */
export interface Incident {
  readonly kind: 'crash' | 'stop' | 'suspended' | 'clock back' | 'clock ahead' | 'outage' | 'slow';
  readonly at: number;
  /** How long the daemon is down, the clock wrong, or the source disturbed. */
  readonly lengthMs: number;
  /** How wrong the clock is. */
  readonly shiftMs: number;
}

/** The time that passes. Sleepers of a process that is frozen wake late. */
export function createTime(random: Random) {
  let now = START;
  let skewMs = 0;
  let sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  async function wakeNext(until: number): Promise<boolean> {
    let next = sleepers[0];
    for (const sleeper of sleepers) if (next === undefined || sleeper.at < next.at) next = sleeper;
    if (next === undefined || next.at > until) return false;
    sleepers = sleepers.filter((sleeper) => sleeper !== next);
    now = Math.max(now, next.at);
    next.wake();
    await turn();
    return true;
  }

  const clock: Clock = {
    now: () => now + skewMs,
    random,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const onAbort = (): void => {
          sleepers = sleepers.filter((other) => other !== sleeper);
          reject(signal?.reason);
        };
        const wake = (): void => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        };
        const sleeper = { at: now + Math.max(0, ms), wake };
        sleepers.push(sleeper);
        signal?.addEventListener('abort', onAbort);
      }),
  };
  return {
    clock,
    now: () => now,
    shift: (byMs: number): void => {
      skewMs += byMs;
    },
    /** Lets time pass at once; then those wake that should have woken. */
    jumpTo: async (ms: number): Promise<void> => {
      now = Math.max(now, ms);
      await turn();
      while (await wakeNext(now));
    },
    /** Lets time pass until the next sleeper wakes. */
    step: () => wakeNext(Number.POSITIVE_INFINITY),
    sleeping: () => sleepers.length,
  };
}

/** A catalog of a few products, which answers like the service. */
export function createSource(random: Random, nowMs: () => number, clock: Clock) {
  const products = new Map<number, { version: number; at: number }>();
  let versions = 0;
  let isCalm = false;
  let isDown = false;
  let latencyMs = 200;

  /** Adds the first product that is not there, so that their numbers stay small. */
  function add(): void {
    let id = 1;
    while (products.has(id)) id++;
    products.set(id, { version: ++versions, at: nowMs() });
  }
  for (let number = 0; number < 12; number++) add();

  function bodyOf([id, { version }]: [number, { version: number }]): string {
    return `{"vbid":"P${id}","title":"Book ${id}","version":${version}}`;
  }

  async function read({ window, from }: FetchTask, signal: AbortSignal): Promise<PageResponse> {
    const requestedAt = clock.now();
    await clock.sleep(latencyMs, signal);
    if (isDown) throw new CatchwordError('SOURCE_UNAVAILABLE', 'the service answered 503');
    const found = [...products].filter(([, { at }]) => from === null || at >= from);
    const offset = (window.page - 1) * window.perPage;
    const items = found.slice(offset, offset + window.perPage).map(bodyOf);
    const totals = `"num_items":${found.length},"page":${window.page},"per_page":${window.perPage}`;
    const text = `{${totals},"total_pages":${Math.ceil(found.length / window.perPage)},"items":[${items.join(',')}]}`;
    const sourceTime = Math.floor(nowMs() / SECOND) * SECOND;
    return { body: bytesOf(text), sourceTime, requestedAt, receivedAt: clock.now() };
  }

  const client: CatalogClient = { read, close: async () => {} };
  return {
    client,
    bodies: () => [...products].map(bodyOf).sort(),
    /** About one change in three hours. */
    churn: (): void => {
      if (isCalm) return;
      const drawn = random();
      const ids = [...products.keys()];
      const id = ids[Math.floor(random() * ids.length)] ?? 1;
      if (drawn < 0.14) products.set(id, { version: ++versions, at: nowMs() });
      else if (drawn < 0.16 && products.size < 14) add();
      else if (drawn < 0.17 && products.size > 10) products.delete(id);
    },
    /** From now on, nothing changes. */
    calm: (): void => {
      isCalm = true;
    },
    setDown: (down: boolean): void => {
      isDown = down;
    },
    setLatency: (ms: number): void => {
      latencyMs = ms;
    },
  };
}

/** Kills the keeper at one of its transactions: its connection is closed, so it writes nothing more. */
export function createKiller(random: Random) {
  let left = Number.POSITIVE_INFINITY;
  let dead = false;
  return {
    arm: (): void => {
      left = 1 + Math.floor(random() * 9);
    },
    /** Whether the keeper was killed since the last question. */
    hasStruck: (): boolean => {
      const was = dead;
      dead = false;
      return was;
    },
    disarm: (): void => {
      left = Number.POSITIVE_INFINITY;
    },
    guard: (opened: Store): Store => {
      const where = random();
      function strike(): never {
        left = Number.POSITIVE_INFINITY;
        dead = true;
        opened.close();
        throw new Error('killed');
      }
      function acquire(nowMs: number): Leased<KeeperWriter> {
        const leased = opened.keeperLease.acquire(nowMs);
        return {
          ...leased,
          write: (work) => {
            const strikes = --left <= 0;
            if (strikes && where < 0.4) strike();
            const result = leased.write((writer) => {
              const inner = work(writer);
              // Closing rolls the transaction back.
              if (strikes && where < 0.7) strike();
              return inner;
            });
            if (strikes) strike();
            return result;
          },
        };
      }
      return { ...opened, keeperLease: { ...opened.keeperLease, acquire } };
    },
  };
}

/** Draws what goes wrong: every few days one thing, which is over before the next. */
export function drawIncidents(random: Random, endMs: number): Incident[] {
  const kinds = ['crash', 'stop', 'suspended', 'clock back', 'clock ahead', 'outage', 'slow', 'crash'] as const;
  const found: Incident[] = [];
  // The first nights, and the last ones, are quiet.
  let at = START + 3 * DAY;
  for (let number = 0; ; number++) {
    at += (2 + 3 * random()) * DAY;
    const kind = kinds[number % kinds.length] ?? 'stop';
    // From minutes to four days; most are short.
    const lengthMs = kind === 'slow' ? 10 * HOUR : MINUTE * 5 * (96 * 12) ** (random() * 0.999);
    const shiftMs =
      kind === 'clock back' ? -(1 + 5 * random()) * HOUR : kind === 'clock ahead' ? 30 * HOUR * random() : 0;
    if (at + lengthMs + 3 * DAY > endMs) return found;
    found.push({ kind, at, lengthMs, shiftMs });
    at += lengthMs;
  }
}
