import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Sandbox, startSandbox } from '@catchword/sandbox/sandbox-server';
import { query } from '@catchword/testing/sqlite';
import { expect } from 'vitest';
import { type Ended, run, startService } from '../support/cli.ts';
import { settingsFor } from '../support/mirror.ts';
import { appendMark } from './log.ts';
import { shimEnvironment } from './shim.ts';

/** Rotates often, so that rotations are recorded too. */
const ROTATE = '60kB';
/** The variable of the sink. */
export const SINK = 'CATCHWORD_SINK_FILE';

/** Replaces what the program sets, without a change of the program. */
const NORMAL = `data:text/javascript,${encodeURIComponent(
  `import { createRequire } from 'node:module';
   const { prototype } = createRequire(process.argv[1])('better-sqlite3');
   const exec = prototype.exec;
   prototype.exec = function (sql) { return exec.call(this, sql.replace('synchronous = FULL', 'synchronous = NORMAL')); };`,
)}`;

/** Settings of a mirror in `root`, whose directories do not exist yet. */
export function settingsIn(root: string, url: string): Record<string, string> {
  return settingsFor(url, join(root, 'data', 'catalog.db'), {
    CATCHWORD_PER_PAGE: '25',
    CATCHWORD_CONCURRENCY: '3',
    [SINK]: `jsonl:${join(root, 'out', 'changes.jsonl')}?rotate=${ROTATE}`,
    CATCHWORD_DELTA_CRON: '* * * * * *',
    CATCHWORD_FULL_CRON: '0 0 1 1 *',
    LOG_LEVEL: 'info',
  });
}

/** What `status --json` prints, as far as a crash must keep it, and what the log holds then. */
export interface Known {
  readonly last_seq: number;
  readonly last_run: { readonly id: number; readonly state: string } | null;
  readonly held: readonly number[];
  readonly watermark: string | null;
  /** Of the changes up to `last_seq`. */
  readonly digest: string;
}

export function digestOf(db: string, upTo: number): string {
  const rows = query(db, 'SELECT * FROM change_log WHERE seq <= ? ORDER BY seq', upTo);
  return createHash('sha256').update(JSON.stringify(rows)).digest('hex');
}

export interface Recording {
  readonly root: string;
  readonly log: string;
  readonly sandbox: Sandbox;
}

/**
 * Records the writes of a first load, deltas, a full load with removals, one that holds its removals and is approved, and
 * of a relay that feeds a file and rotates it. One daemon is killed, so that SQLite recovers its WAL.
 * @param synchronous what SQLite is set to
 */
export async function record(directory: string, synchronous: 'FULL' | 'NORMAL', items: number): Promise<Recording> {
  const root = join(realpathSync(directory), 'watched');
  mkdirSync(root);
  const log = join(realpathSync(directory), 'log');
  const sandbox = await startSandbox({ items, withdrawnForMs: 0 });
  const env = { ...settingsIn(root, sandbox.url), ...shimEnvironment({ directory: root, log }) };
  if (synchronous === 'NORMAL') env.NODE_OPTIONS = `--import=${NORMAL}`;

  async function command(...args: string[]): Promise<Ended> {
    const ended = await run(args, env, root);
    const status = await run(['status', '--json'], env, root);
    expect(status.code, status.stderr).toBe(0);
    const printed = JSON.parse(status.stdout) as Omit<Known, 'digest'>;
    // Of a copy: SQLite would create a WAL here that is not recorded.
    const copy = join(directory, 'copy');
    cpSync(join(root, 'data'), copy, { recursive: true });
    appendMark(log, { ...printed, digest: digestOf(join(copy, 'catalog.db'), printed.last_seq) } satisfies Known);
    rmSync(copy, { recursive: true });
    return ended;
  }
  /** Waits until the mirror has, and the sink has confirmed, so many changes. Reads only while a service runs. */
  async function reaches(seq: number): Promise<void> {
    const sql = `SELECT coalesce((SELECT min(cursor) FROM sinks), 0) AS cursor,
      (SELECT coalesce(max(seq), 0) FROM changes) AS newest`;
    const read = (): unknown => query(env.CATCHWORD_DB ?? '', sql)[0];
    await expect.poll(read, { interval: 50, timeout: 120_000 }).toSatisfy((now: { cursor: number; newest: number }) => {
      return now.newest >= seq && now.cursor === now.newest;
    });
  }

  let expected = items;
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const daemon = startService(['daemon'], env, root);
    await daemon.shows('"msg":"run complete"');
    for (let round = 0; round < 2; round++) {
      sandbox.catalog.mutate({ create: 4, update: 20, remove: 2, seed: expected });
      expected += 24;
      await reaches(expected);
    }
    await daemon.stop(signal);
    // Violations show in the first part already.
    if (synchronous === 'NORMAL') return { root, log, sandbox };
  }
  expect(await command('sync', '--full', '--json')).toMatchObject({ code: 0 });
  sandbox.catalog.mutate({ update: 10, remove: 150, seed: 7 });
  const held = await command('sync', '--full', '--json');
  expect(held).toMatchObject({ code: 5 });
  const { id } = JSON.parse(held.stdout) as { id: number };
  expect(await command('approve', String(id))).toMatchObject({ code: 0 });
  const relay = startService(['relay'], env, root);
  await relay.shows('sink is open');
  await reaches(expected + 150);
  await relay.stop();
  await command('status', '--json');
  return { root, log, sandbox };
}
