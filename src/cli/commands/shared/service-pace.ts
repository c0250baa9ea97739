import { sourceId } from '../../../catalog/source-identity.ts';
import type { Pacer } from '../../../pace/pacer.ts';
import type { SourceConfig } from '../../../settings/config.ts';
import type { Store } from '../../../store/store.ts';
import { KEEPS_PACE_ALONE, mirrorPacer } from '../../../sync/shared-pace.ts';
import type { CommandContext } from './command-context.ts';
import { toPerson } from './person-notices.ts';

/**
 * Paces the requests of a command together with those of the fetchers, if there is a Redis, and of the mirror's other
 * processes. A Redis that does not answer is named, and the command then shares the pace only through the mirror.
 * @param mirror null if there is none
 */
export async function openPace(
  context: Pick<CommandContext, 'clock' | 'stderr'>,
  config: SourceConfig,
  mirror: Store | null,
): Promise<{ readonly pacer: Pacer; readonly close: () => void }> {
  const { clock } = context;
  const tell = toPerson(context);
  const { redisUrl } = config;
  if (redisUrl === undefined) return { pacer: mirrorPacer({ config, clock, tell }, mirror), close: () => {} };
  const { connectTurns } = await import('../../../queue/bullmq/connect-turns.ts');
  const message = mirror === null ? KEEPS_PACE_ALONE : 'CATCHWORD_RATE_LIMIT is shared only in this mirror';
  const onGone = (reason: string): void => tell({ message, fields: { reason } });
  const turns = connectTurns({ redisUrl, source: sourceId(config) }, onGone);
  return { pacer: mirrorPacer({ config, clock, tell }, mirror, turns), close: turns.close };
}
