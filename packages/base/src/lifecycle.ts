import { once } from 'node:events';
import type { Clock } from './clock.ts';
import { hasCode } from './errors.ts';

/** A long-running part. `stop` finishes the work in hand and releases everything; it may be called more than once. */
export interface Service {
  readonly name: string;
  /** Rejects when this part cannot go on, so that the process must end and be restarted. */
  readonly failed?: Promise<never>;
  stop(): Promise<void>;
}

/** Signals that ask a process to stop. SIGHUP comes when its terminal closes. */
export const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Prevents that SIGUSR1 opens Node's debugger, with which every local user could run code in this process. Node 20 has no
 * option for that. A debugger that the signal opened before this program ran is closed.
 * @param options NODE_OPTIONS of the process: a debugger that was asked for stays
 */
export function refuseDebugger(options = ''): void {
  process.on('SIGUSR1', () => {});
  const { url, close } = process.getBuiltinModule('node:inspector');
  if (url() !== undefined && ![options, ...process.execArgv].some((one) => /--inspect(?!-port)/.test(one))) close();
}

/**
 * How long each address of a host is tried before the next one; milliseconds. Node.js allows 250, so a server on another
 * continent could never be reached from a network without a route for its other address.
 */
export const ADDRESS_MS = 3_000;

/** Gives each address so long in this process, whichever driver connects. */
export function waitForSlowAddresses(): void {
  process.getBuiltinModule('node:net').setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_MS);
}

/** Limits of a thread. Half of what V8 lets young objects take by default, to save memory. */
export const THREAD_LIMITS = { maxYoungGenerationSizeMb: 24 };

/** Makes `failed` of a service whose work is `running`: it stays pending if the work succeeds. */
export function failureOf(running: Promise<void>): Promise<never> {
  const failed = new Promise<never>((_, reject) => {
    running.catch(reject);
  });
  // Prevents an unhandled rejection; awaited elsewhere.
  failed.catch(() => {});
  return failed;
}

interface Repeated {
  readonly name: string;
  readonly clock: Clock;
  /** Milliseconds between the end of one turn and the start of the next. */
  readonly everyMs: number;
  /** If it throws, the service fails, and no turn follows. */
  readonly turn: (stopping: AbortSignal) => Promise<void> | void;
}

/** A service that takes a turn at once, and another one regularly until it is stopped. */
export function repeat({ name, clock, everyMs, turn }: Repeated): Service & { readonly failed: Promise<never> } {
  const stopping = new AbortController();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await turn(stopping.signal);
      await clock.sleep(everyMs, stopping.signal).catch(() => {});
    }
  }

  const running = run();
  return {
    name,
    failed: failureOf(running),
    stop: async () => {
      stopping.abort();
      await running.catch(() => {});
    },
  };
}

/** Stops all services in the reverse order of their start. @returns their errors */
async function errorsOfStopping(services: readonly Service[]): Promise<unknown[]> {
  const errors: unknown[] = [];
  for (const service of [...services].reverse()) {
    try {
      await service.stop();
    } catch (error) {
      errors.push(error);
    }
  }
  return errors;
}

/** Stops all services in the reverse order of their start, then throws the first error. */
export async function stopAll(services: readonly Service[]): Promise<void> {
  const errors = await errorsOfStopping(services);
  if (errors.length > 0) throw errors[0];
}

/** Runs `start`, which adds each service that it starts to the list. If `start` fails, stops the services in the list. */
export async function startTogether<Result>(start: (services: Service[]) => Promise<Result>): Promise<Result> {
  const services: Service[] = [];
  try {
    return await start(services);
  } catch (error) {
    // Later errors follow from this one and must not hide it.
    await stopAll(services).catch(() => {});
    throw error;
  }
}

/** Waits until `signal` aborts or a service fails, then stops all. @throws the error of that service, or of stopping */
export async function serveUntil(signal: AbortSignal, services: readonly Service[], onStopping = (): void => {}) {
  // Without a timer the process would end if no service waits for anything.
  const alive = setInterval(() => {}, 2 ** 30);
  const over = new AbortController();
  const failures = services.flatMap(({ failed }) => failed ?? []);
  try {
    if (!signal.aborted) await Promise.race([once(signal, 'abort', { signal: over.signal }), ...failures]);
  } catch (error) {
    onStopping();
    const errors = await errorsOfStopping(services);
    // A mirror that was written over may first fail as a damaged one; closing it shows why.
    throw errors.find((one) => hasCode(one, 'MIRROR_REPLACED')) ?? error;
  } finally {
    clearInterval(alive);
    over.abort();
  }
  onStopping();
  await stopAll(services);
}
