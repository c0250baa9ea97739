import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isInstalled, type ServerProcess, startServer } from './server.ts';

export const redisAvailable = isInstalled('redis-server', 'redis-server');

export interface RedisServer extends ServerProcess {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a Redis without persistence, so it is empty after a restart. `args` are passed to `redis-server`. */
export async function startRedis({ args = [] as readonly string[] } = {}): Promise<RedisServer> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-redis-'));
  const fixed = ['--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'no'];
  const server = await startServer({
    command: 'redis-server',
    args: (port) => [...fixed, '--port', String(port), ...args],
    ready: 'Ready to accept connections',
  });
  return {
    ...server,
    url: `redis://127.0.0.1:${server.port}`,
    stop: async () => {
      await server.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
