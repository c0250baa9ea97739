import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, isInstalled } from './server.ts';

export const redisAvailable = isInstalled('redis-server', 'redis-server');

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Sends the signal; waits for the end of the process where the signal ends it. */
  kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): Promise<void>;
  /** A new, empty server at the same address. */
  restart(): Promise<void>;
  stop(): Promise<void>;
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
