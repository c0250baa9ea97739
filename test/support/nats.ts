import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isInstalled, type ServerProcess, startServer } from './server.ts';

export const natsAvailable = isInstalled('nats-server', 'nats-server');

export interface NatsServer extends ServerProcess {
  /** JetStream's storage directory. */
  readonly directory: string;
  stop(): Promise<void>;
}

export async function startNats(): Promise<NatsServer> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-nats-'));
  const server = await startServer({
    command: 'nats-server',
    args: (port) => ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', directory],
    ready: 'Server is ready',
  });
  return {
    ...server,
    directory,
    stop: async () => {
      await server.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
