import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Place } from './place.ts';

export const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

export interface Ended {
  /** Null if a signal ended the process. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Waits until stdout or stderr contains `text`. @returns all of stderr so far */
  shows(text: string): Promise<string>;
  /** Sends a signal, and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
}

/** The user that runs a program. */
interface As {
  readonly uid?: number;
  readonly gid?: number;
}

/** Adds what every process needs; nothing else of this machine's environment. */
function environment(env: Record<string, string>): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', TZ: process.env.TZ ?? '', ...env };
}

/** Starts `catchword` in a directory of the test. */
export function start(
  args: readonly string[],
  env: Record<string, string>,
  cwd: string,
  stdin?: string | Buffer,
  as?: As,
): Running {
  const running = startWaiting(args, env, cwd, as);
  running.child.stdin?.end(stdin);
  return running;
}

/** Does the same, and kills the process when the test ends. */
export function startService(args: readonly string[], env: Record<string, string>, cwd: string): Running {
  const running = start(args, env, cwd);
  onTestFinished(() => void running.child.kill('SIGKILL'));
  return running;
}

/** Waits until a process listens, which it does on loopback only. @returns the address */
export async function addressOf(running: Running): Promise<string> {
  const listening = /"address":"(http:\/\/127\.0\.0\.1:\d+)","msg":"listening"/;
  const [, address] = listening.exec(await running.shows('"msg":"listening"')) ?? [];
  if (address === undefined) throw new Error('it does not listen on loopback');
  return address;
}

/** Does the same as `start`, but leaves stdin open. */
export function startWaiting(args: readonly string[], env: Record<string, string>, cwd: string, as?: As): Running {
  return startProcess([process.execPath, CLI, ...args], env, cwd, as);
}

/**
 * Runs a command on a new terminal, prints what the terminal shows, and stops the command after "run complete": by SIGTERM,
 * by SIGHUP, or by closing the terminal, after which its shell sends SIGHUP, too.
 */
const TERMINAL = `
import os, pty, signal, sys
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[2], sys.argv[2:])
seen, asked = b'', False
while True:
    try: part = os.read(fd, 65536)
    except OSError: break
    if not part: break
    seen += part
    if b'run complete' in seen and not asked:
        asked = True
        if sys.argv[1] == 'close':
            os.close(fd)
            os.kill(pid, signal.SIGHUP)
            break
        os.kill(pid, signal.SIGHUP if sys.argv[1] == 'hangup' else signal.SIGTERM)
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

/** Runs `catchword` on a terminal until a run is complete; `stdout` is what the terminal shows. */
export async function runOnTerminal(
  args: readonly string[],
  env: Record<string, string>,
  cwd: string,
  end: 'stop' | 'hangup' | 'close' = 'stop',
): Promise<Ended> {
  return await runProcess(['python3', '-c', TERMINAL, end, process.execPath, CLI, ...args], env, cwd);
}

/** Starts any program, and leaves stdin open. */
export function startProcess(
  [file = '', ...args]: readonly string[],
  env: Record<string, string>,
  cwd: string,
  as?: As,
): Running {
  const child = spawn(file, args, {
    ...as,
    cwd,
    env: environment(env),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const watchers = new Set<() => void>();
  const more = (): void => {
    for (const watch of watchers) watch();
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    more();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    more();
  });
  const ended = once(child, 'close').then(([code, signal]: (number | NodeJS.Signals | null)[]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    stdout,
    stderr,
  }));
  const shows = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const watch = (): void => {
        if (!stdout.includes(text) && !stderr.includes(text)) return;
        watchers.delete(watch);
        resolve(stderr);
      };
      watchers.add(watch);
      watch();
      ended.then(() => reject(new Error(`ended without printing ${text}:\n${stdout}\n${stderr}`))).catch(reject);
    });
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> => {
    child.kill(signal);
    return await ended;
  };
  return { child, ended, shows, stop };
}

/** Runs any program, without stdin. */
export async function runProcess(command: readonly string[], env: Record<string, string>, cwd: string): Promise<Ended> {
  const { child, ended } = startProcess(command, env, cwd);
  child.stdin?.end();
  return await ended;
}

/** Sends a signal to a command while it writes `file`. If the command was faster than the signal, it runs again. */
export async function stopWhileWriting(
  args: readonly string[],
  file: string,
  signal: NodeJS.Signals,
  { settings, directory }: Pick<Place, 'settings' | 'directory'>,
): Promise<Ended> {
  const whole = join(directory, file);
  const writes = (): boolean => (statSync(`${whole}.part`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  for (let tries = 1; ; tries++) {
    const running = start(args, settings, directory);
    const over = running.ended.then(() => true);
    while (!writes() && !(await Promise.race([over, delay(2, false)])));
    const ended = await running.stop(signal);
    if (tries === 10 || !existsSync(whole)) return ended;
    rmSync(whole);
  }
}

export async function run(
  args: readonly string[],
  env: Record<string, string>,
  cwd: string,
  stdin?: string | Buffer,
): Promise<Ended> {
  return await start(args, env, cwd, stdin).ended;
}

/** Runs `catchword` in a shell, with redirections such as `< users.csv`. */
export async function runRedirected(
  args: readonly string[],
  redirections: string,
  env: Record<string, string>,
  cwd: string,
): Promise<Ended> {
  return await runProcess(['sh', '-c', `exec "$0" "$@" ${redirections}`, process.execPath, CLI, ...args], env, cwd);
}
