import { once } from 'node:events';

/** A long-running part. `stop` finishes what is in hand, lets go of everything, and may be called more than once. */
export interface Service {
  readonly name: string;
  /** Rejects when this part cannot go on in this process: whoever watches the process is to start it anew. */
  readonly failed?: Promise<never>;
  stop(): Promise<void>;
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

/**
 * Waits until `signal` aborts.
 *
 * @throws whatever ends one of the services before that
 */
export async function serveUntil(signal: AbortSignal, services: readonly Service[]): Promise<void> {
  if (signal.aborted) return;
  const over = new AbortController();
  const failures = services.flatMap(({ failed }) => failed ?? []);
  try {
    await Promise.race([once(signal, 'abort', { signal: over.signal }), ...failures]);
  } finally {
    over.abort();
  }
}
