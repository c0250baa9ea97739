import { once } from 'node:events';
import type { CommandContext } from './command-context.ts';

/** Resolves when stdout takes more, or the command is stopped. */
export async function drained({ stdout, signal }: CommandContext): Promise<void> {
  await once(stdout, 'drain', { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
