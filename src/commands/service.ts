import { type Connection, connect } from '../client/connect.ts';
import type { SourceConfig } from '../config.ts';
import type { CommandContext } from './context.ts';
import { loadSettings } from './settings.ts';

/** Does `work` with a connection to the service, at the configured rate, and closes it. */
export async function withService<Result>(
  context: CommandContext,
  work: (connection: Connection, config: SourceConfig) => Promise<Result>,
): Promise<Result> {
  const config = loadSettings(context, 'source');
  const connection = connect(config, config.rateLimit, context.clock);
  try {
    return await work(connection, config);
  } finally {
    await connection.close();
  }
}
