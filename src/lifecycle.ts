import { once } from 'node:events';

/**
 * A long-running part of the program. `stop` finishes the work in progress and releases everything; it is idempotent.
 */
export interface Service {
  readonly name: string;
  /** Rejects if this part cannot continue; the process then exits, and its supervisor restarts it. */
  readonly failed?: Promise<never>;
  stop(): Promise<void>;
}

/** Makes the `failed` of a service from its work: rejects if `running` rejects, and otherwise never settles. */
export function failureOf(running: Promise<void>): Promise<never> {
  const failed = new Promise<never>((_, reject) => {
    running.catch(reject);
  });
  // Prevents an unhandled rejection if `failed` is not awaited.
  failed.catch(() => {});
  return failed;
}

/** Stops all services in the reverse order of their start, even if one fails to stop. @throws the first failure */
export async function stopAll(services: readonly Service[]): Promise<void> {
  const errors: unknown[] = [];
  for (const service of [...services].reverse()) {
    try {
      await service.stop();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/** Stops services after an error. Ignores further failures, which would hide that error. */
export async function stopAfterFailure(services: readonly Service[]): Promise<void> {
  await stopAll(services).catch(() => {});
}

async function untilOver(signal: AbortSignal, services: readonly Service[]): Promise<void> {
  if (signal.aborted) return;
  // Keeps the process alive even if no service waits for I/O.
  const alive = setInterval(() => {}, 2 ** 30);
  const over = new AbortController();
  const failures = services.flatMap(({ failed }) => failed ?? []);
  try {
    await Promise.race([once(signal, 'abort', { signal: over.signal }), ...failures]);
  } finally {
    clearInterval(alive);
    over.abort();
  }
}

/**
 * Waits until `signal` aborts or a service fails, then stops all services.
 *
 * @param onStopping called before the services are stopped
 * @throws the error of the service that failed, or else the first error of stopping them
 */
export async function serveUntil(
  signal: AbortSignal,
  services: readonly Service[],
  onStopping: () => void = () => {},
): Promise<void> {
  try {
    await untilOver(signal, services);
  } catch (error) {
    onStopping();
    await stopAfterFailure(services);
    throw error;
  }
  onStopping();
  await stopAll(services);
}
