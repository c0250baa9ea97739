import { isInstalled, type ServerProcess, startServer } from './server.ts';

export const redisAvailable = isInstalled('redis-server', 'redis-server');

export interface RedisServer extends ServerProcess {
  readonly url: string;
}

/** Where a Redis runs: its address, and the command that runs another command there. */
interface Place {
  readonly address: string;
  readonly exec: readonly string[];
}

const HERE: Place = { address: '127.0.0.1', exec: [] };

/**
 * Starts a Redis without persistence, so it is empty after a restart. `args` are passed to `redis-server`. On another
 * host it answers that host's network, without a password.
 */
export async function startRedis({ args = [] as readonly string[], on = HERE } = {}): Promise<RedisServer> {
  const { address, exec } = on;
  const isOpen = ['--bind', address, '--protected-mode', on === HERE ? 'yes' : 'no'];
  const fixed = [...isOpen, '--save', '', '--appendonly', 'no'];
  const [command = 'redis-server', ...before] = exec;
  const server = await startServer({
    command,
    args: (port, directory) => [
      ...before,
      ...(exec.length > 0 ? ['redis-server'] : []),
      ...fixed,
      '--dir',
      directory,
      '--port',
      String(port),
      ...args,
    ],
    ready: 'Ready to accept connections',
  });
  return { ...server, url: `redis://${address}:${server.port}` };
}
