import { EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import { type Clock, systemClock } from '@catchword/base/clock';
import type { Plans } from '@catchword/catalog/tick';
import { temporaryDirectory } from '@catchword/testing/temporary-directory';
import { pino } from 'pino';
import { expect, onTestFinished } from 'vitest';
import { openHarness } from '../../src/contract/harness.ts';
import { startWeb, type WebOptions } from '../../src/http/web-server.ts';
import { filled } from '../support/place.ts';
import { get } from './reader.ts';

/** A schedule that starts nothing and has missed nothing. */
export const NO_PLANS: Plans = {
  nextFull: null,
  nextDelta: null,
  missedFull: null,
  missedDelta: null,
  timezone: 'UTC',
};

export const SOURCE = 'https://catalog.example/v4/products';

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [key: string]: unknown;
}

/** A clock that a test can put forward. */
export function settableClock(): Clock & { aheadMs: number } {
  const clock = { ...systemClock, aheadMs: 0, now: () => Date.now() + clock.aheadMs };
  return clock;
}

/** Options of a server at a free port. */
export const WEB = {
  host: '127.0.0.1',
  port: 0,
  token: undefined,
  source: SOURCE,
  readyMaxAgeMs: 86_400_000,
  rateLimit: null,
  overlapMs: 300_000,
  minFreeBytes: null,
  behindLimitMs: 1_800_000,
  channels: [],
  effective: [],
  plans: () => NO_PLANS,
  upcoming: () => [],
  clock: systemClock,
};

/** Starts the web role, with a log that a test can wait for. */
export async function serve(db: string, given: Partial<WebOptions> = {}) {
  /** Every line so far. */
  const log: LogLine[] = [];
  const lines = new EventEmitter();
  const write = (line: string): void => {
    log.push(JSON.parse(line) as LogLine);
    lines.emit('line');
  };
  const web = await startWeb({ ...WEB, db, log: pino({ level: 'trace' }, { write }), ...given });
  onTestFinished(() => web.stop());
  return {
    web,
    log,
    stream: `${web.url}/api/changes/stream`,
    /** Waits for the first line with this message. */
    logged: async (message: string): Promise<LogLine> => {
      for (;;) {
        const found = log.find(({ msg }) => msg === message);
        if (found !== undefined) return found;
        await once(lines, 'line');
      }
    },
  };
}

/** A mirror that was loaded once from a sandbox, and its server. */
export async function serveFilled(options: Parameters<typeof filled>[0], web: Partial<WebOptions> = {}) {
  const made = await filled(options);
  return { ...made, ...(await serve(made.db, web)) };
}

/** A mirror that a test changes, and its pages. */
export async function serveHarness() {
  const harness = openHarness();
  onTestFinished(() => harness.close());
  const { web } = await serve(harness.store.path);
  const page = (path: string) => get(`${web.url}${path}`);
  return {
    ...harness,
    web,
    page,
    /** The text of a page that must exist. */
    html: async (path: string): Promise<string> => {
      const { status, text } = await page(path);
      expect({ path, status }).toEqual({ path, status: 200 });
      return text;
    },
  };
}

/** A path without a mirror. */
export function emptyMirror(): string {
  return join(temporaryDirectory(), 'catalog.db');
}
