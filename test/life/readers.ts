import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { vi } from 'vitest';
import { z } from 'zod';
import { runProcess, startProcess } from '../support/cli.ts';
import type { Project } from './project.ts';

/** The README's command, unchanged. */
const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const README_LINE = /^sqlite3 .*data\/catalog\.db "SELECT [^"]+"$/m.exec(README)?.[0];
if (README_LINE === undefined) throw new Error('the README no longer shows how sqlite3 reads the mirror');

const PAUSE_MS = 1000;
/** An ending process ends within this time. */
const RESTART_MS = 500;

/** One statement, so that it reads one state of the mirror. Nothing is pruned in such a short time. */
const QUERY = `SELECT json_object(
  'living', (SELECT count(*) FROM catalog),
  'logged', (SELECT coalesce(sum(CASE op WHEN 'updated' THEN 0 WHEN 'removed' THEN -1 ELSE 1 END), 0) FROM change_log),
  'newest', (SELECT coalesce(max(changed_seq), 0) FROM catalog),
  'seq', (SELECT coalesce(max(seq), 0) FROM change_log),
  'records', (SELECT count(*) FROM change_log))`.replaceAll('\n', ' ');

const reading = z.strictObject({
  living: z.number(),
  logged: z.number(),
  newest: z.number(),
  seq: z.number(),
  records: z.number(),
});
type Reading = z.infer<typeof reading>;

/** Opens the mirror for each input line, runs it as a query and prints one line. */
const PYTHON = `
import sqlite3, sys
for line in sys.stdin:
    try:
        db = sqlite3.connect('file:data/catalog.db?mode=ro', uri=True)
        print(db.execute(line).fetchone()[0], flush=True)
        db.close()
    except Exception as error:
        print('failed:', repr(error), flush=True)
`;

/**
 * Deleted files of the mirror that the process has open: its writes to them are lost. A lock file is none of them: its
 * holder deletes it right before it releases it.
 */
function deletedFiles(pid: number | null, db: string): string[] {
  if (pid === null) return [];
  const directory = `/proc/${pid}/fd`;
  try {
    const links = readdirSync(directory).map((name) => {
      try {
        return readlinkSync(`${directory}/${name}`);
      } catch {
        return '';
      }
    });
    return links.filter(
      (link) => link.startsWith(db) && link.endsWith(' (deleted)') && !link.endsWith('.lock (deleted)'),
    );
  } catch {
    // It has ended.
    return [];
  }
}

function wrongWith({ living, logged, newest, seq, records }: Reading, atLeast: number): string[] {
  const wrong: string[] = [];
  if (living !== logged) wrong.push(`the catalog has ${living} products, its log comes to ${logged}`);
  if (newest > seq) wrong.push(`a product is as of change ${newest}, the log ends at ${seq}`);
  if (records !== seq) wrong.push(`the log has ${records} records up to ${seq}`);
  if (seq < atLeast) wrong.push(`the log ends at ${seq}, and had ended at ${atLeast}`);
  return wrong;
}

export type Readers = ReturnType<typeof startReaders>;

/** Readers that query the mirror every second, with Debian's `sqlite3` and with Python, whatever happens to it. */
export function startReaders(project: Project, daemon: () => number | null) {
  const python = startProcess(['python3', '-u', '-c', PYTHON], {}, project.directory);
  const { stdin, stdout } = python.child;
  if (stdin === null || stdout === null) throw new Error('python3 has no pipes');
  const lines = createInterface({ input: stdout });
  const stopping = new AbortController();
  let problems: string[] = [];
  let count = 0;
  const highest = { sqlite3: 0, python: 0 };

  function judge(reader: keyof typeof highest, text: string): void {
    count++;
    try {
      const read = reading.parse(JSON.parse(text));
      problems.push(...wrongWith(read, highest[reader]).map((wrong) => `${reader}: ${wrong}`));
      highest[reader] = read.seq;
    } catch {
      problems.push(`${reader} could not read: ${text.trim()}`);
    }
    const deleted = deletedFiles(daemon(), project.db);
    if (deleted.length > 0) problems.push(`after ${reader} had read, the daemon has ${deleted.join(', ')}`);
  }

  /** @param waits whether the command waits for a lock; otherwise it may fail while the daemon starts or ends */
  async function shell(command: string, waits: boolean): Promise<string> {
    let startedBy: number | null = null;
    for (;;) {
      const before = daemon();
      const { code, stdout: out, stderr } = await runProcess(['sh', '-c', command], {}, project.directory);
      if (code === 0 && stderr === '') return out;
      const isLocked = !waits && stderr.includes('database is locked');
      await delay(RESTART_MS);
      // A daemon that was just starting locks it once.
      const isAgain = before !== null && before === startedBy && before === daemon();
      if (!isLocked || isAgain) problems.push(`${command}: ${out}${stderr}`.trim());
      if (!isLocked) return '';
      startedBy = before;
    }
  }

  async function askPython(): Promise<string> {
    const answered = once(lines, 'line') as Promise<[string]>;
    stdin?.write(`${QUERY}\n`);
    const ended = python.ended.then(({ stderr }): [string] => [`python3 ended: ${stderr}`]);
    return (await Promise.race([answered, ended]))[0];
  }

  async function round(): Promise<void> {
    count++;
    await shell(String(README_LINE), true);
    // Without -readonly and a timeout, which people forget: this reader may write, and deletes the WAL if it is the
    // last one.
    judge('sqlite3', await shell(`sqlite3 data/catalog.db "${QUERY}"`, false));
    judge('python', await askPython());
  }

  let turn: Promise<unknown> = Promise.resolve();
  function exclusively<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work);
    turn = result.catch(() => {});
    return result;
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      await exclusively(round);
      await delay(PAUSE_MS, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }
  const running = loop();

  return {
    /** Waits until both have seen a change with this number or a later one. */
    saw: async (seq: number): Promise<void> =>
      await vi.waitFor(
        () => {
          if (Math.min(...Object.values(highest)) < seq) {
            throw new Error(`readers do not see change ${seq}: they are at ${JSON.stringify(highest)}`);
          }
        },
        { timeout: 120_000, interval: 100 },
      ),
    /** Returns and clears the problems with reads, or with the daemon after them. */
    takeProblems: () => {
      const taken = [...new Set(problems)];
      problems = [];
      return taken;
    },
    /** Reads so far. */
    count: () => count,
    /** Does its argument while reading is suspended. */
    without: exclusively,
    /** Allows the log to end earlier than before, because a backup was restored. */
    forget: () => Object.assign(highest, { sqlite3: 0, python: 0 }),
    stop: async (): Promise<void> => {
      stopping.abort();
      await running;
      stdin.end();
      await python.ended;
    },
  };
}
