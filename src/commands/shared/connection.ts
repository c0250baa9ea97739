import { sourceAddress } from '../../catalog/source.ts';
import { type Connection, connect } from '../../client/connection.ts';
import type { SourceConfig } from '../../config.ts';
import { messageOf } from '../../errors.ts';
import { mirrorExists } from '../../store/place.ts';
import { openStore, type Store } from '../../store/store.ts';
import type { CommandContext } from './context.ts';
import { mirrorPacer, toPerson } from './rate-limit.ts';
import { loadSettings } from './settings.ts';

/** The mirror of this service, whose processes keep one rate limit together; null where there is none. */
function openMirror(context: CommandContext, { db, dbMode: mode, baseUrl }: SourceConfig): Store | null {
  try {
    if (!mirrorExists(db)) return null;
    const store = openStore(db, { mustExist: true, forReading: true, mode });
    if (store.source.noted()?.address === sourceAddress(baseUrl)) return store;
    store.close();
  } catch (error) {
    // These commands need no mirror.
    context.stderr.write(`${messageOf(error)}: this process keeps CATCHWORD_RATE_LIMIT by itself\n`);
  }
  return null;
}

/** Does `work` with a connection to the service, at the configured rate, and closes it. */
export async function withService<Result>(
  context: CommandContext,
  work: (connection: Connection, config: SourceConfig) => Promise<Result>,
): Promise<Result> {
  const config = loadSettings(context, 'source');
  const { clock } = context;
  const here = openMirror(context, config);
  try {
    const pacer = mirrorPacer({ config, clock, tell: toPerson(context) }, here);
    const connection = connect(config, config.rateLimit, clock, pacer);
    try {
      return await work(connection, config);
    } finally {
      await connection.close();
    }
  } finally {
    here?.close();
  }
}
