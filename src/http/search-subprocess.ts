import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { withDeadline } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { type Answer, CatchwordError, fromAnswer, hasCode } from '../base/errors.ts';
import type { Service } from '../base/lifecycle.ts';
import type { SearchHit } from '../store/rows/product-rows.ts';
import type { SearchRequest } from './search-program.ts';

/*
 * Searches in a process of its own, one after another:
 *
 *     wait for the turn ──► more than 5 s: SEARCH_TIMEOUT
 *          │
 *     start the process, if none is running
 *          │
 *     search ──► more than 2 s: SEARCH_TIMEOUT, and the process is killed
 *
 * SQLite computes most of a search in one call that nothing interrupts, so a thread could not be stopped. The process
 * only reads; it may be killed at any time.
 */

const LIMITS = {
  /** Longest search, milliseconds. For safety: one holds up the others. */
  runMs: 2_000,
  /** Longest wait of a search for its turn, milliseconds. */
  waitMs: 5_000,
  /** Longest start of the process, milliseconds. */
  startMs: 20_000,
  /** Time without a search after which the process ends, milliseconds. It takes about 70 MB. */
  idleMs: 600_000,
};

/** @throws CatchwordError USAGE, SEARCH_TIMEOUT, INTERRUPTED; an Error if the mirror cannot be read */
export type Search = (text: string, limit: number) => Promise<readonly SearchHit[]>;

export interface SearchApartOptions {
  /** Path of the mirror, which exists. */
  readonly db: string;
  readonly clock: Clock;
  readonly limits?: Partial<typeof LIMITS>;
  /** The compiled program of the process. */
  readonly program?: URL;
}

/** Searches in a process that starts with the first request, and ends after one that fails or when it is idle. */
export function createSearchApart(options: SearchApartOptions): Service & { readonly search: Search } {
  const { db, clock, program = new URL('./search-program.js', import.meta.url) } = options;
  const limits = { ...LIMITS, ...options.limits };
  const late = new CatchwordError('SEARCH_TIMEOUT', `the search took longer than ${limits.runMs / 1000} seconds`, {
    hint: 'Search for fewer words; a beginning of one letter, such as a*, matches much.',
  });
  const stopping = new AbortController();
  let running: ChildProcess | undefined;
  let idle: NodeJS.Timeout | undefined;
  let turn: Promise<unknown> = Promise.resolve();

  function end(): void {
    clearTimeout(idle);
    running?.kill('SIGKILL');
    running = undefined;
  }

  /** Waits for the next hits. @throws `late` after `timeoutMs`, or an Error if the process ended */
  async function nextHits(child: ChildProcess, timeoutMs: number): Promise<readonly SearchHit[]> {
    const over = new AbortController();
    const until = { signal: over.signal };
    const message = once(child, 'message', until).then(([answer]) =>
      fromAnswer(answer as Answer<readonly SearchHit[]>),
    );
    const ended = once(child, 'exit', until).then(([code, signal]) => {
      throw new Error(`the process that searches has ended (${signal ?? code})`);
    });
    const limit = { timeoutMs, reason: () => late };
    try {
      return await withDeadline(stopping.signal, limit, () => Promise.race([message, ended]));
    } finally {
      over.abort();
    }
  }

  async function started(): Promise<ChildProcess> {
    // It needs no setting, and gets no secret.
    const alone = { execArgv: [], env: {} };
    const child = fork(fileURLToPath(program), [db], { ...alone, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    running = child;
    // Writing to a process that has just ended is not a failure by itself: `exit` follows.
    child.on('error', () => {});
    child.once('exit', () => {
      if (running === child) running = undefined;
    });
    await nextHits(child, limits.startMs);
    return child;
  }

  async function run(request: SearchRequest): Promise<readonly SearchHit[]> {
    clearTimeout(idle);
    try {
      const child = running ?? (await started());
      child.send(request);
      return await nextHits(child, limits.runMs);
    } catch (error) {
      if (!hasCode(error, 'USAGE')) end();
      throw error;
    } finally {
      idle = setTimeout(end, limits.idleMs).unref();
    }
  }

  return {
    name: 'search',
    search: (text, limit) => {
      const askedAt = clock.now();
      const found = turn.then(() => {
        stopping.signal.throwIfAborted();
        if (Math.abs(clock.now() - askedAt) <= limits.waitMs) return run({ text, limit });
        const hint = 'Retry in a few seconds.';
        throw new CatchwordError('SEARCH_TIMEOUT', 'other searches take too long', { hint });
      });
      turn = found.catch(() => {});
      return found;
    },
    stop: async () => {
      stopping.abort(new CatchwordError('INTERRUPTED', 'catchword is stopping', { hint: 'Retry in a few seconds.' }));
      end();
    },
  };
}
