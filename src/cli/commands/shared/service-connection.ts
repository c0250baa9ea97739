import { messageOf } from '@catchword/base/errors';
import { sourceAddress, sourceId } from '@catchword/catalog/source-identity';
import type { Pacer } from '@catchword/pace/pacer';
import type { SourceConfig } from '@catchword/settings/config';
import { type Connection, connect } from 'catchword-client/client-connection';
import type { Command } from 'commander';
import type { Store } from '../../../store/store.ts';
import { KEEPS_PACE_ALONE, mirrorPacer } from '../../../sync/shared-pace.ts';
import { openMirrorIfAny } from '../../roles/open-mirror.ts';
import { loadSettings } from './checked-settings.ts';
import type { CommandContext } from './command-context.ts';
import { type JsonOption, print, type Result } from './output-format.ts';
import { toPerson } from './person-notices.ts';

/** Opens the mirror of this service, whose processes share one rate limit; null if there is none. */
function openMirror(context: CommandContext, config: SourceConfig): Store | null {
  try {
    const store = openMirrorIfAny(config);
    if (store?.source.noted()?.address === sourceAddress(config.baseUrl)) return store;
    store?.close();
  } catch (error) {
    // These commands work without a mirror.
    toPerson(context)({ message: KEEPS_PACE_ALONE, fields: { reason: messageOf(error) } });
  }
  return null;
}

/**
 * Paces the requests of a command together with those of the fetchers, if there is a Redis, and of the mirror's other
 * processes. A Redis that does not answer is named, and the command then shares the pace only through the mirror.
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
  const { connectTurns } = await import('@catchword/queue-redis/redis-pace');
  const message = mirror === null ? KEEPS_PACE_ALONE : 'CATCHWORD_RATE_LIMIT is shared only in this mirror';
  const onGone = (reason: string): void => tell({ message, fields: { reason } });
  const turns = connectTurns({ redisUrl, source: sourceId(config) }, onGone);
  return { pacer: mirrorPacer({ config, clock, tell }, mirror, turns), close: turns.close };
}

/** Runs `work` with a connection to the service, at the configured rate. */
export async function withService(
  context: CommandContext,
  work: (connection: Connection, config: SourceConfig) => Promise<void>,
): Promise<void> {
  const config = loadSettings(context, 'source');
  const { clock } = context;
  const mirror = openMirror(context, config);
  const pace = await openPace(context, config, mirror);
  let connection: Connection | undefined;
  try {
    connection = connect(config, config.rateLimit, clock, pace.pacer);
    await work(connection, config);
  } finally {
    await connection?.close();
    pace.close();
    mirror?.close();
  }
}

export interface CallResult extends Result {
  /** Names the write, such as `created 978…`, for the error of an output that cannot be written. */
  readonly done?: string;
}

/** What a command calls the service with. */
export type Service = Pick<Connection, 'caller' | 'tokens'> & {
  readonly config: SourceConfig;
  readonly signal: AbortSignal;
};

/** The result of a write that was answered with a good status, and nothing else. */
export function withoutBody(done: string): CallResult {
  return { done, json: null, text: `${done}; the service accepted it with an empty answer` };
}

/**
 * Completes a command that calls the service: notes what was written, and prints the result.
 * @param call also gets the arguments of the command, and its options
 */
export function serviceCommand<Given extends readonly unknown[]>(
  context: CommandContext,
  command: Command,
  call: (service: Service, ...given: Given) => Promise<CallResult>,
): Command {
  return command.option('--json', 'print one JSON document').action((...given: unknown[]) =>
    withService(context, async ({ caller, tokens }, config) => {
      const service = { caller, tokens, config, signal: context.signal };
      const result = await call(service, ...(given as unknown as Given));
      if (result.done !== undefined) context.wrote(result.done);
      print(context, command.opts<JsonOption>(), result);
    }),
  );
}
