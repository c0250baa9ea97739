import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether tests with a real Redis can run. On CI its absence is an error, elsewhere these tests are left out. */
export const redisAvailable = spawnSync('redis-server', ['--version']).status === 0;
if (!redisAvailable && process.env.CI !== undefined) throw new Error('redis-server is needed on CI');
if (!redisAvailable) process.stderr.write('redis-server is not installed: tests with Redis are left out\n');

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Sends the signal; waits for the end of the process where the signal ends it. */
  kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void>;
  /** A new, empty server at the same address. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Starts a Redis that keeps nothing on disk. `args` go to `redis-server`, such as `--requirepass`, `secret`. */
export async function startRedis({ args = [] as readonly string[] } = {}): Promise<RedisServer> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-redis-'));
  const port = await freePort();
  let child: ChildProcess;
  let ended: Promise<unknown>;

  async function start(): Promise<void> {
    const fixed = ['--bind', '127.0.0.1', '--port', String(port), '--dir', directory];
    const started = spawn('redis-server', [...fixed, '--save', '', '--appendonly', 'no', ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child = started;
    ended = once(started, 'exit');
    let output = '';
    for await (const chunk of started.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      output += chunk;
      if (output.includes('Ready to accept connections')) break;
    }
    if (started.exitCode !== null) throw new Error(`redis-server did not start:\n${output}`);
    started.stdout.resume();
  }

  async function kill(signal: NodeJS.Signals): Promise<void> {
    child.kill(signal);
    if (signal === 'SIGKILL' || signal === 'SIGTERM') await ended;
  }

  function onExit(): void {
    child.kill('SIGKILL');
  }

  await start();
  process.on('exit', onExit);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill,
    restart: async () => {
      if (child.exitCode === null && child.signalCode === null) await kill('SIGKILL');
      await start();
    },
    stop: async () => {
      process.off('exit', onExit);
      if (child.exitCode === null && child.signalCode === null) await kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
