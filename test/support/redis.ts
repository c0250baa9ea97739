import { isInstalled, type ServerProcess, startServer } from './server.ts';

export const redisAvailable = isInstalled('redis-server', 'redis-server');

export interface RedisServer extends ServerProcess {
  readonly url: string;
}

/** Starts a Redis without persistence, so it is empty after a restart. `args` are passed to `redis-server`. */
export async function startRedis({ args = [] as readonly string[] } = {}): Promise<RedisServer> {
  const fixed = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = await startServer({
    command: 'redis-server',
    args: (port, directory) => [...fixed, '--dir', directory, '--port', String(port), ...args],
    ready: 'Ready to accept connections',
  });
  return { ...server, url: `redis://127.0.0.1:${server.port}` };
}
