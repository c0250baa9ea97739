import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemCodeOf } from '@catchword/base/errors';

/** Whether a server is installed. If it is not, CI fails; elsewhere the tests that need it are skipped. */
export function isInstalled(command: string, name: string, option = '--version'): boolean {
  const found = spawnSync(command, [option]).status === 0;
  const isCi = process.env.CI !== undefined;
  if (!found) process.stderr.write(`${name} is not installed: tests with it ${isCi ? 'fail' : 'are skipped'}\n`);
  return found || isCi;
}

/** Each worker has this many ports, below those that Linux gives to outgoing connections and for port 0. */
const PORTS = 1_000;
const FIRST_PORT = 12_000 + PORTS * Number(process.env.VITEST_POOL_ID ?? 0);
let next = process.pid;

/** A port that was free a moment ago, and that the system does not choose for others. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + (next++ % PORTS);
    const server = createServer();
    const isFree = new Promise<boolean>((resolve, reject) => {
      server.once('error', (error) => (systemCodeOf(error) === 'EADDRINUSE' ? resolve(false) : reject(error)));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (await isFree) return port;
  }
}

export interface ServerProcess {
  readonly port: number;
  /** Its files; removed when it is stopped. */
  readonly directory: string;
  /** Sends the signal, and waits for the process to end if the signal ends it. */
  kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT' | 'SIGSTOP' | 'SIGCONT'): Promise<void>;
  /** Starts the same command at the same port again, after it was killed. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

interface Command {
  readonly command: string;
  /** Called once for each port that is tried. */
  readonly args: (port: number, directory: string) => readonly string[];
  /** Its output when it is ready. Connecting is not enough, because another process may have taken the port. */
  readonly ready: string;
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Prepares the directory. */
  readonly prepare?: (directory: string) => void;
  /** Default: SIGKILL. */
  readonly stopSignal?: 'SIGINT';
}

interface Launched {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
}

/** A free port may be taken between its choice and its use, so other ports are tried. */
const TRIES = 5;

/** @returns null if another process has the port */
async function launch(
  { command, args, ready, user }: Command,
  port: number,
  directory: string,
): Promise<Launched | null> {
  const child = spawn(command, args(port, directory), { stdio: ['ignore', 'pipe', 'pipe'], ...user });
  const onExit = (): void => {
    child.kill('SIGKILL');
  };
  process.on('exit', onExit);
  child.once('exit', () => process.off('exit', onExit));
  const ended = once(child, 'exit');
  let output = '';
  const serves = await new Promise<boolean>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (output.includes(ready)) resolve(true);
      });
    }
    child.once('close', () => resolve(false));
    ended.catch(reject);
  });
  if (serves) {
    // Further output is read, so that the process never blocks, and discarded.
    for (const stream of [child.stdout, child.stderr]) stream.removeAllListeners('data').resume();
    return { child, ended };
  }
  if (/address already in use/i.test(output)) return null;
  throw new Error(`${command} did not start:\n${output}`);
}

/**
 * Starts a server for the tests and waits until it is ready. It is killed by process id, at the latest when this
 * process ends.
 */
export async function startServer(command: Command): Promise<ServerProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-server-'));
  command.prepare?.(directory);

  async function launchAt(choose: () => Promise<number>): Promise<Launched & { readonly port: number }> {
    for (let tried = 0; tried < TRIES; tried++) {
      const port = await choose();
      const launched = await launch(command, port, directory);
      if (launched !== null) return { ...launched, port };
      await delay(50);
    }
    throw new Error(`${command.command} found no free port`);
  }

  let current = await launchAt(freePort);
  const { port } = current;

  async function kill(signal: NodeJS.Signals): Promise<void> {
    current.child.kill(signal);
    if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await current.ended;
  }

  return {
    port,
    directory,
    kill,
    restart: async () => {
      current = await launchAt(async () => port);
    },
    stop: async () => {
      await kill(command.stopSignal ?? 'SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
