import type { Run, RunKind } from '../../src/catalog/run.ts';
import { systemClock } from '../../src/clock.ts';
import { loadConfig, requireSource } from '../../src/config.ts';
import { createLog } from '../../src/log.ts';
import { startKeeper } from '../../src/roles/pipeline.ts';

/** Makes one run in this process, as `catchword sync` does. */
export async function load(
  settings: Record<string, string>,
  kind: RunKind,
  signal = new AbortController().signal,
): Promise<Run> {
  const service = await startKeeper({
    config: requireSource(loadConfig(settings)),
    clock: systemClock,
    log: createLog('fatal'),
    fetching: true,
  });
  try {
    const run = await service.keeper.run({ kind }, signal);
    if (run === null) throw new Error('no run was started');
    return run;
  } finally {
    await service.stop();
  }
}
