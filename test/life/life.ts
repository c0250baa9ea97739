import { startPostgres } from '@catchword/testing/postgres';
import { freePort } from '@catchword/testing/server';
import { query } from '@catchword/testing/sqlite';
import pg from 'pg';
import { vi } from 'vitest';
import { z } from 'zod';
import type { Ended } from '../support/cli.ts';
import { removeShared, sharedByFaketime } from './clock.ts';
import { failuresIn, lastLines } from './log-lines.ts';
import { createProcessManager } from './pm2.ts';
import { createProject } from './project.ts';
import { type Readers, startReaders } from './readers.ts';
import { startReceiver } from './receiver.ts';
import { createSource } from './source.ts';
import { differences, differencesToSource, mirrorOf, tableOf } from './stores.ts';

const ITEMS = 3000;
export const TABLE = 'books';
const EQUAL_WITHIN = { timeout: 90_000, interval: 250 };
const READY_WITHIN = { timeout: 60_000, interval: 100 };

const readiness = z.object({ ready: z.boolean(), reason: z.string().nullable() });
const sinks = z.array(z.object({ name: z.string(), state: z.string() }));

/** A daily schedule half a day from now, which fires only if a clock is put forward. */
function farFromNow(): string {
  const now = new Date();
  return `${now.getUTCMinutes()} ${(now.getUTCHours() + 12) % 24} * * *`;
}

export type Life = Awaited<ReturnType<typeof beginLife>>;

/** One installation of catchword with its surroundings: the service, two stores, readers of the mirror, pm2. */
export async function beginLife() {
  const shared = sharedByFaketime();
  const project = createProject();
  const database = await startPostgres({ settings: ['fsync=off'] });
  const postgresUrl = `postgres://postgres@127.0.0.1:${database.port}/postgres`;
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  const source = await createSource(project, ITEMS);
  const receiver = await startReceiver();
  const pm2 = createProcessManager(project);
  const httpPort = await freePort();
  const dailyCron = farFromNow();
  const catchword = (...args: readonly string[]): Promise<Ended> => project.run('catchword', ...args);
  let readers: Readers | undefined;
  let failuresTaken = 0;

  project.configure({
    CATCHWORD_BASE_URL: source.url,
    CATCHWORD_API_KEY: 'SANDBOXKEY',
    CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
    CATCHWORD_USER_REFERENCE: 'sandbox-reader',
    CATCHWORD_RATE_LIMIT: '100/s',
    CATCHWORD_PER_PAGE: '200',
    CATCHWORD_FULL_CRON: dailyCron,
    CATCHWORD_DELTA_CRON: '*/2 * * * * *',
    CATCHWORD_DELTA_OVERLAP: '1s',
    CATCHWORD_HTTP_PORT: String(httpPort),
    CATCHWORD_READY_MAX_AGE: '10s',
    CATCHWORD_SINK_SHOP: `${postgresUrl}?table=${TABLE}`,
    CATCHWORD_SINK_HOOK: receiver.url,
    CATCHWORD_SINK_HOOK_SECRET: receiver.secret,
  });

  /** Null while the daemon does not respond. */
  async function askReadiness() {
    try {
      const response = await fetch(`http://127.0.0.1:${httpPort}/readyz`, { signal: AbortSignal.timeout(5_000) });
      return readiness.parse(await response.json());
    } catch {
      return null;
    }
  }

  async function differencesNow(): Promise<string[]> {
    const mirror = mirrorOf(project.db);
    return [
      ...differencesToSource(mirror, await source.truth()).map((one) => `mirror and source: ${one}`),
      ...differences(mirror, await tableOf(client, TABLE)).map((one) => `mirror and PostgreSQL: ${one}`),
      ...differences(mirror, receiver.products).map((one) => `mirror and webhook: ${one}`),
    ];
  }

  /** Reads both files, because the shipped configuration logs errors to a separate one. */
  const allFailures = () => [pm2.stdout(), pm2.stderr()].flatMap(failuresIn);

  /** Codes of the daemon's failures since the last call. */
  function takeFailures(): string[] {
    const failures = allFailures();
    const taken = failures.slice(failuresTaken).map(({ code }) => code);
    failuresTaken = failures.length;
    return [...new Set(taken)].sort();
  }

  return {
    project,
    source,
    client,
    receiver,
    pm2,
    /** The value of `CATCHWORD_FULL_CRON` at which full loads do not start by themselves. */
    dailyCron,
    catchword,
    get readers() {
      readers ??= startReaders(project, () => pm2.pid());
      return readers;
    },
    readiness: askReadiness,
    /** Starts the daemon unless it is running, and waits until it is ready. */
    up: async (): Promise<void> => {
      if (pm2.pid() === null) await pm2.start();
      await vi.waitFor(async () => {
        const answer = await askReadiness();
        if (answer?.ready !== true) throw new Error(`the daemon is not ready: ${answer?.reason ?? 'no response'}`);
      }, READY_WITHIN);
    },
    /** Stops the changes, and waits until the source, the mirror and both stores hold the same products. */
    allEqual: async (): Promise<void> => {
      await source.quiet();
      await vi.waitFor(async () => {
        const found = await differencesNow();
        if (found.length > 0) throw new Error(found.join('\n'));
      }, EQUAL_WITHIN);
    },
    lastSeq: () => query<{ seq: number }>(project.db, 'SELECT max(seq) AS seq FROM change_log')[0]?.seq ?? 0,
    sinkStates: async (): Promise<Record<string, string>> => {
      const { stdout } = await catchword('sink', 'list', '--json');
      return Object.fromEntries(sinks.parse(JSON.parse(stdout)).map(({ name, state }) => [name, state]));
    },
    takeFailures,
    /** Discards problems, which the step that caused them has reported. */
    forgetProblems: () => {
      readers?.takeProblems();
      receiver.takeProblems();
      takeFailures();
    },
    /** The output that helps to analyse a failure. */
    evidence: () =>
      [
        `the daemon (pid ${pm2.pid() ?? 'none'}) printed last:\n${lastLines(pm2.stdout(), 25)}`,
        `its failures:\n${allFailures()
          .map(({ text }) => text)
          .slice(-10)
          .join('\n')}`,
        `pm2 noted last:\n${lastLines(pm2.log(), 10)}`,
      ].join('\n\n'),
    end: async (): Promise<void> => {
      await readers?.stop();
      await pm2.close();
      await source.stop();
      await receiver.close();
      await client.end();
      await database.stop();
      removeShared(shared);
    },
  };
}
