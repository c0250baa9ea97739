import type { Clock } from '@catchword/base/clock';
import { createLog } from '@catchword/base/log';
import type { Run, RunKind } from '@catchword/catalog/run-types';
import { checkedSettings } from '../../src/cli/commands/shared/checked-settings.ts';
import { startKeeper } from '../../src/cli/roles/pipeline.ts';
import { hastyClock } from '../../src/contract/harness.ts';
import { reasonText } from '../../src/report/reason-text.ts';

/** A run whose reasons are sentences, as commands show them. */
export type ToldRun = Omit<Run, 'reasons'> & { readonly reasons: readonly string[] };

export function told(run: Run): ToldRun {
  return { ...run, reasons: run.reasons.map(reasonText) };
}

/** Makes one run in this process, as `catchword sync` does, but does not wait for late deltas, nor long before retries. */
export async function load(
  settings: Record<string, string>,
  kind: RunKind,
  signal = new AbortController().signal,
  clock: Clock = hastyClock,
): Promise<ToldRun> {
  const service = await startKeeper({
    config: checkedSettings(settings, 'source'),
    clock,
    log: createLog('fatal'),
    fetching: true,
  });
  try {
    const run = await service.keeper.run({ kind }, signal);
    if (run === null) throw new Error('no run was started');
    return told(run);
  } finally {
    await service.stop();
  }
}
