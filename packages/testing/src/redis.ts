import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { Certificate } from './certificate.ts';
import { isInstalled, type ServerProcess, startServer } from './server.ts';

export const redisAvailable = isInstalled('redis-server', 'redis-server');

export interface RedisServer extends ServerProcess {
  readonly url: string;
}

const FIXED = ['--save', '', '--appendonly', 'no'];
const LOOPBACK = ['--bind', '127.0.0.1'];

/** Where a Redis runs: its address, and the command that runs another command there. */
interface Place {
  readonly address: string;
  readonly exec: readonly string[];
}

const HERE: Place = { address: '127.0.0.1', exec: [] };

/** The arguments that make a server listen: with a certificate, only to clients that use TLS. */
function listening(port: number, certificate: Certificate | undefined): string[] {
  if (certificate === undefined) return ['--port', String(port)];
  const { cert, key } = certificate;
  const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', cert];
  return ['--port', '0', '--tls-port', String(port), ...files, '--tls-replication', 'yes', '--tls-auth-clients', 'no'];
}

interface RedisSetup {
  /** Passed to `redis-server`. */
  readonly args?: readonly string[];
  readonly certificate?: Certificate;
  /** Another host, whose network it answers without a password. */
  readonly on?: Place;
}

/** Starts a Redis without persistence, so it is empty after a restart. */
export async function startRedis({ args = [], certificate, on = HERE }: RedisSetup = {}): Promise<RedisServer> {
  const { address, exec } = on;
  const [command, ...before] = [...exec, 'redis-server'];
  const bound = on === HERE ? LOOPBACK : ['--bind', address, '--protected-mode', 'no'];
  const server = await startServer({
    command,
    args: (port, directory) => {
      const fixed = [...before, ...FIXED, ...bound, '--dir', directory];
      return [...fixed, ...listening(port, certificate), ...args];
    },
    ready: 'Ready to accept connections',
  });
  return { ...server, url: `${certificate === undefined ? 'redis' : 'rediss'}://${address}:${server.port}` };
}

/** The name by which the sentinels of the tests know the primary. */
export const PRIMARY = 'queue-1';

interface SentinelSetup extends RedisSetup {
  /** Port of the primary. */
  readonly primary: number;
  /** How many sentinels must agree that it is gone. */
  readonly quorum: number;
}

/** Starts a sentinel that notices soon that the primary is gone. */
export async function startSentinel({
  primary,
  quorum,
  args = [],
  certificate,
}: SentinelSetup): Promise<ServerProcess> {
  const file = (directory: string): string => join(directory, 'sentinel.conf');
  const rules = [
    `sentinel monitor ${PRIMARY} 127.0.0.1 ${primary} ${quorum}`,
    `sentinel down-after-milliseconds ${PRIMARY} 1000`,
    `sentinel failover-timeout ${PRIMARY} 5000`,
  ];
  return await startServer({
    command: 'redis-server',
    prepare: (directory) => writeFileSync(file(directory), `${rules.join('\n')}\n`),
    args: (port, directory) => {
      const fixed = [file(directory), '--sentinel', '--bind', '127.0.0.1', '--dir', directory];
      return [...fixed, ...listening(port, certificate), ...args];
    },
    ready: 'Sentinel ID is',
  });
}

export interface RedisGroup {
  readonly primary: RedisServer;
  readonly replica: RedisServer;
  readonly sentinels: readonly ServerProcess[];
  /** The form of REDIS_URL that names all sentinels. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a primary, its replica and three sentinels, and waits until each knows all others. */
export async function startRedisGroup(): Promise<RedisGroup> {
  const primary = await startRedis();
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(primary.port)] });
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel({ primary: primary.port, quorum: 2 })));
  for (const { port } of sentinels) {
    const admin = new Redis(port, '127.0.0.1');
    const known = async () => {
      const facts = (await admin.call('SENTINEL', 'MASTER', PRIMARY)) as string[];
      return ['num-slaves', 'num-other-sentinels'].map((fact) => facts[facts.indexOf(fact) + 1]);
    };
    await expect.poll(known).toEqual(['1', '2']);
    admin.disconnect();
  }
  const replication = new Redis(replica.url);
  await expect.poll(() => replication.info('replication')).toContain('master_link_status:up');
  replication.disconnect();
  return {
    primary,
    replica,
    sentinels,
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${PRIMARY}`,
    stop: async () => {
      await Promise.all([...sentinels, replica, primary].map((server) => server.stop()));
    },
  };
}
