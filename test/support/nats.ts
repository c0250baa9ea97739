import type { Certificate } from './certificate.ts';
import { freePort, isInstalled, type ServerProcess, startServer } from './server.ts';

export const natsAvailable = isInstalled('nats-server', 'nats-server');

export interface NatsServer extends ServerProcess {
  /** Port of its figures over HTTP. */
  readonly monitor: number;
}

/** Starts a NATS server with JetStream; with a certificate, only for clients that use TLS. */
export async function startNats(certificate?: Certificate): Promise<NatsServer> {
  const monitor = await freePort();
  const tls = certificate === undefined ? [] : ['--tls', '--tlscert', certificate.cert, '--tlskey', certificate.key];
  const figures = ['-m', String(monitor), ...tls];
  const server = await startServer({
    command: 'nats-server',
    args: (port, directory) => ['-a', '127.0.0.1', '-p', String(port), ...figures, '-js', '-sd', directory],
    ready: 'Server is ready',
  });
  return { ...server, monitor };
}
