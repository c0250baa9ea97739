import { once } from 'node:events';

/** A long-running part. `stop` finishes what is in hand, lets go of everything, and may be called more than once. */
export interface Service {
  readonly name: string;
  /** Rejects when this part cannot go on in this process: whoever watches the process is to start it anew. */
  readonly failed?: Promise<never>;
  stop(): Promise<void>;
}

/** `failed` of a service whose work is `running`: never ends where that ends well. */
export function failureOf(running: Promise<void>): Promise<never> {
  const failed = new Promise<never>((_, reject) => {
    running.catch(reject);
  });
  // Nobody may be watching; then a failure must not count as one that nobody looks at.
  failed.catch(() => {});
  return failed;
}

/** Stops services in the reverse order of their start: what feeds others goes first. All are stopped, whatever fails. */
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

/** Stops services because of an error. What else goes wrong then follows from that error, and must not hide it. */
export async function stopAfterFailure(services: readonly Service[]): Promise<void> {
  await stopAll(services).catch(() => {});
}

/** Runs `start`, which adds each service that it starts to the list. If it fails, stops those that were started. */
export async function startTogether<Result>(start: (services: Service[]) => Promise<Result>): Promise<Result> {
  const services: Service[] = [];
  try {
    return await start(services);
  } catch (error) {
    await stopAfterFailure(services);
    throw error;
  }
}

async function untilOver(signal: AbortSignal, services: readonly Service[]): Promise<void> {
  if (signal.aborted) return;
  // A part that waits for nothing from outside would let the process end.
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
 * @param onStopping called before they are stopped
 * @throws what ended one of the services, or else what stopping them threw
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
