import type { Clock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import type { Run, RunKind } from '../../src/catalog/run-types.ts';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { startKeeper } from '../../src/cli/roles/pipeline.ts';
import { hastyClock } from '../../src/relay/contract/harness.ts';

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
