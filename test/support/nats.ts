import { freePort, isInstalled, type ServerProcess, startServer } from './server.ts';

export const natsAvailable = isInstalled('nats-server', 'nats-server');

export interface NatsServer extends ServerProcess {
  /** Port of its figures over HTTP. */
  readonly monitor: number;
}

/** Starts a NATS server with JetStream. */
export async function startNats(): Promise<NatsServer> {
  const monitor = await freePort();
  const figures = ['-m', String(monitor)];
  const server = await startServer({
    command: 'nats-server',
    args: (port, directory) => ['-a', '127.0.0.1', '-p', String(port), ...figures, '-js', '-sd', directory],
    ready: 'Server is ready',
  });
  return { ...server, monitor };
}
