import { isInstalled, type ServerProcess, startServer } from './server.ts';

export const natsAvailable = isInstalled('nats-server', 'nats-server');

/** Starts a NATS server with JetStream. */
export async function startNats(): Promise<ServerProcess> {
  return await startServer({
    command: 'nats-server',
    args: (port, directory) => ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', directory],
    ready: 'Server is ready',
  });
}
