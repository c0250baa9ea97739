import type { Run, RunKind } from '../../src/catalog/run.ts';
import type { Clock } from '../../src/clock.ts';
import { checkedSettings } from '../../src/commands/shared/settings.ts';
import { createLog } from '../../src/log.ts';
import { hastyClock } from '../../src/relay/contract/harness.ts';
import { startKeeper } from '../../src/roles/pipeline.ts';

/** Makes one run in this process, as `catchword sync` does, but does not wait for late deltas, nor long before retries. */
export async function load(
  settings: Record<string, string>,
  kind: RunKind,
  signal = new AbortController().signal,
  clock: Clock = hastyClock,
): Promise<Run> {
  const service = await startKeeper({
    config: checkedSettings(settings, 'source'),
    clock,
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
