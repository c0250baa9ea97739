import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** Whether a server is installed. On CI its absence is an error, elsewhere tests that need it are left out. */
export function isInstalled(command: string, name: string): boolean {
  const found = spawnSync(command, ['--version']).status === 0;
  if (!found && process.env.CI !== undefined) throw new Error(`${name} is needed on CI`);
  if (!found) process.stderr.write(`${name} is not installed: tests with it are left out\n`);
  return found;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

export interface ServerProcess {
  kill(signal: NodeJS.Signals): Promise<void>;
  /** The same command again, after it was killed. */
  restart(): Promise<void>;
}

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly port: number;
  readonly user?: { readonly uid: number; readonly gid: number };
}

/** Starts a server of the tests' own and waits until its port answers. It is ended by its process id, at the latest when this process ends. */
export async function startServer({ command, args, port, user }: Command): Promise<ServerProcess> {
  let child: ChildProcess;
  let ended: Promise<unknown>;

  async function start(): Promise<void> {
    child = spawn(command, args, { stdio: 'ignore', ...user });
    ended = once(child, 'exit');
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}`);
      await delay(10);
    }
  }

  const onExit = (): void => {
    child.kill('SIGKILL');
  };
  await start();
  process.on('exit', onExit);
  return {
    kill: async (signal) => {
      child.kill(signal);
      await ended;
      process.off('exit', onExit);
    },
    restart: async () => {
      process.on('exit', onExit);
      await start();
    },
  };
}
