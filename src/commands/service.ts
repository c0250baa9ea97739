import { type Connection, connect } from '../client/connect.ts';
import { loadConfig, requireSource, type SourceConfig } from '../config.ts';
import type { CommandContext } from './context.ts';

/** Does `work` with a connection to the service, at the configured rate, and closes it. */
export async function withService<Result>(
  { environment, clock }: CommandContext,
  work: (connection: Connection, config: SourceConfig) => Promise<Result>,
): Promise<Result> {
  const config = requireSource(loadConfig(environment));
  const connection = connect(config, config.rateLimit, clock);
  try {
    return await work(connection, config);
  } finally {
    await connection.close();
  }
}
