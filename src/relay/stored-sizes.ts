import type { StoredSize } from './sink.ts';
import type { SinkConfig } from './sink-config.ts';
import { answerWithin } from './with-timeout.ts';

/** How long a store may take to report its size; milliseconds. */
const TIMEOUT_MS = 2_000;

/** Asks stores of events how much they keep, by the names of their sinks; null for a store that does not answer. */
export async function storedSizes(configs: readonly SinkConfig[]): Promise<ReadonlyMap<string, StoredSize | null>> {
  const asked = configs.map(async (config) => {
    // Invalid settings are reported by the relay and by doctor.
    const sink = await config.make().catch(() => null);
    const size = sink?.size?.bind(sink);
    if (size === undefined) return [];
    return [[config.name, await answerWithin(TIMEOUT_MS, size).catch(() => null)] as const];
  });
  return new Map((await Promise.all(asked)).flat());
}
