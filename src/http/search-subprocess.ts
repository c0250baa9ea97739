import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { withDeadline } from '@catchword/base/abort';
import type { Clock } from '@catchword/base/clock';
import { type Answer, CatchwordError, fromAnswer, hasCode } from '@catchword/base/errors';
import type { Service } from '@catchword/base/lifecycle';
import type { ReadSteps, Steps } from './read-steps.ts';
import type { StepRequest } from './search-program.ts';

/*
 * Searches, and evaluates the expressions of readers, in a process of its own, one after another:
 *
 *     wait for the turn ──► more than 5 s: SEARCH_TIMEOUT
 *          │
 *     start the process, if none is running
 *          │
 *     search, or a step of a page ──► more than 2 s: SEARCH_TIMEOUT, and the process is killed
 *
 * SQLite computes most of a search, and all of an expression, in one call that nothing interrupts, so a thread could not be
 * stopped. The process only reads, and has no secret; it may be killed at any time.
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
  /** Steps after which a new process takes over. For safety: each new view keeps some 30 kB there (statements.ts). */
  steps: 5_000,
};

const SIMPLER = 'Use a simpler expression: docs/views.md says what each may take.';

export interface SearchApartOptions {
  /** Path of the mirror, which exists. */
  readonly db: string;
  /** The `source` of events if the mirror has not stored its own. */
  readonly source: string;
  readonly clock: Clock;
  readonly limits?: Partial<typeof LIMITS>;
  /** The compiled program of the process. */
  readonly program?: URL;
}

/** Does steps in a process that starts with the first one, and ends after one that fails or when it is idle. */
export function createSearchSubprocess(options: SearchApartOptions): Service & Steps {
  const { db, source, clock, program = new URL('./search-program.js', import.meta.url) } = options;
  const limits = { ...LIMITS, ...options.limits };
  function late([name]: StepRequest): CatchwordError {
    const isSearch = name === 'search';
    const hint = isSearch ? 'Search for fewer words; a beginning of one letter, such as a*, matches much.' : SIMPLER;
    const what = isSearch ? 'the search' : 'where or fields';
    return new CatchwordError('SEARCH_TIMEOUT', `${what} took longer than ${limits.runMs / 1000} seconds`, { hint });
  }
  const stopping = new AbortController();
  let running: ChildProcess | undefined;
  /** Steps that the running process was asked for. */
  let asked = 0;
  let idle: NodeJS.Timeout | undefined;
  let turn: Promise<unknown> = Promise.resolve();

  function end(): void {
    clearTimeout(idle);
    running?.kill('SIGKILL');
    running = undefined;
  }

  /** Waits for the next answer. @throws `late` after `timeoutMs`, or an Error if the process ended */
  async function answerOf(child: ChildProcess, request: StepRequest, timeoutMs: number): Promise<unknown> {
    const over = new AbortController();
    const until = { signal: over.signal };
    const message = once(child, 'message', until).then(([answer]) => fromAnswer(answer as Answer<unknown>));
    const ended = once(child, 'exit', until).then(([code, signal]) => {
      throw new Error(`the process that searches has ended (${signal ?? code})`);
    });
    const limit = { timeoutMs, reason: () => late(request) };
    try {
      return await withDeadline(stopping.signal, limit, () => Promise.race([message, ended]));
    } finally {
      over.abort();
    }
  }

  async function started(request: StepRequest): Promise<ChildProcess> {
    // It needs no setting, and gets no secret.
    const alone = { execArgv: [], env: {} };
    const child = fork(fileURLToPath(program), [db, source], {
      ...alone,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    running = child;
    asked = 0;
    // Writing to a process that has just ended is not a failure by itself: `exit` follows.
    child.on('error', () => {});
    child.once('exit', () => {
      if (running === child) running = undefined;
    });
    await answerOf(child, request, limits.startMs);
    return child;
  }

  async function run(request: StepRequest): Promise<unknown> {
    clearTimeout(idle);
    try {
      if (asked >= limits.steps) end();
      const child = running ?? (await started(request));
      asked++;
      child.send(request);
      return await answerOf(child, request, limits.runMs);
    } catch (error) {
      if (!hasCode(error, 'USAGE')) end();
      throw error;
    } finally {
      idle = setTimeout(end, limits.idleMs).unref();
    }
  }

  async function inTurn(...request: StepRequest): Promise<unknown> {
    const askedAt = clock.now();
    const found = turn.then(() => {
      stopping.signal.throwIfAborted();
      if (Math.abs(clock.now() - askedAt) <= limits.waitMs) return run(request);
      const hint = 'Retry in a few seconds.';
      throw new CatchwordError('SEARCH_TIMEOUT', 'other searches take too long', { hint });
    });
    turn = found.catch(() => {});
    return found;
  }

  /** The process gives what the step of this name gives. */
  const step = <Name extends keyof ReadSteps>(name: Name) =>
    ((...given: unknown[]) => inTurn(name, ...given)) as Steps[Name];
  return {
    name: 'search',
    search: step('search'),
    digest: step('digest'),
    products: step('products'),
    changes: step('changes'),
    preview: step('preview'),
    stop: async () => {
      stopping.abort(new CatchwordError('INTERRUPTED', 'catchword is stopping', { hint: 'Retry in a few seconds.' }));
      end();
    },
  };
}
