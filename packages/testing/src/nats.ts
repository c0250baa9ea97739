import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Certificate } from './certificate.ts';
import { freePort, isInstalled, type ServerProcess, startServer } from './server.ts';

export const natsAvailable = isInstalled('nats-server', 'nats-server');

export interface NatsServer extends ServerProcess {
  /** Port of its figures over HTTP. */
  readonly monitor: number;
}

/** Options of a JetStream client: its own limit of 5 s is too short on a busy machine. */
export const PATIENT = { timeout: 120_000 };

interface NatsSetup {
  /** What its file of settings says, such as its users. */
  readonly config?: string;
  /** With one, it takes only clients that use TLS. */
  readonly certificate?: Certificate;
}

/** Starts a NATS server with JetStream. */
export async function startNats({ config = '', certificate }: NatsSetup = {}): Promise<NatsServer> {
  const monitor = await freePort();
  const tls = certificate === undefined ? [] : ['--tls', '--tlscert', certificate.cert, '--tlskey', certificate.key];
  const figures = ['-m', String(monitor), ...tls];
  const file = (directory: string): string => join(directory, 'nats.conf');
  const server = await startServer({
    command: 'nats-server',
    prepare: (directory) => writeFileSync(file(directory), config),
    args: (port, directory) => {
      const fixed = ['-c', file(directory), '-a', '127.0.0.1', '-p', String(port)];
      return [...fixed, ...figures, '-js', '-sd', directory];
    },
    ready: 'Server is ready',
  });
  return { ...server, monitor };
}
