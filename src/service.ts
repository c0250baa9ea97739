/** A long-running part. `stop` finishes what is in hand, lets go of everything, and may be called more than once. */
export interface Service {
  readonly name: string;
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
