import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

export interface Ended {
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves with stderr so far when stderr or stdout contains `text`; rejects if the process ends before. */
  shows(text: string): Promise<string>;
}

/** The user that a program runs as. */
interface As {
  readonly uid?: number;
  readonly gid?: number;
}

/** Passes only these variables, none of the machine's own; `TZ` is that of all tests. */
function environment(env: Record<string, string>): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', TZ: process.env.TZ ?? '', ...env };
}

/** Starts `catchword` in its own directory, without a .env. */
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

/** As `start`, for a process that runs until it is stopped; it is killed when the test ends. */
export function startService(args: readonly string[], env: Record<string, string>, cwd: string): Running {
  const running = start(args, env, cwd);
  onTestFinished(() => void running.child.kill('SIGKILL'));
  return running;
}

/** As `start`, with stdin left open. */
export function startWaiting(args: readonly string[], env: Record<string, string>, cwd: string, as?: As): Running {
  return startProcess([process.execPath, CLI, ...args], env, cwd, as);
}

/** Runs a command in a new terminal, prints its output, and stops it after "run complete". */
const TERMINAL = `
import os, pty, signal, sys
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
seen, asked = b'', False
while True:
    try: part = os.read(fd, 65536)
    except OSError: break
    if not part: break
    seen += part
    if b'run complete' in seen and not asked:
        asked = True
        os.kill(pid, signal.SIGTERM)
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

/** As `run`, in a terminal (Python's), until a run is complete; all output is in `stdout`. */
export async function runOnTerminal(args: readonly string[], env: Record<string, string>, cwd: string): Promise<Ended> {
  const { child, ended } = startProcess(['python3', '-c', TERMINAL, process.execPath, CLI, ...args], env, cwd);
  child.stdin?.end();
  return await ended;
}

/** As `start`, with any program, and stdin left open. */
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
  return { child, ended, shows };
}

export async function run(
  args: readonly string[],
  env: Record<string, string>,
  cwd: string,
  stdin?: string | Buffer,
): Promise<Ended> {
  return await start(args, env, cwd, stdin).ended;
}

/** Runs it in a shell; `redirections` such as `< users.csv` follow the arguments. */
export async function runRedirected(
  args: readonly string[],
  redirections: string,
  env: Record<string, string>,
  cwd: string,
): Promise<Ended> {
  const command = ['sh', '-c', `exec "$0" "$@" ${redirections}`, process.execPath, CLI, ...args];
  const { child, ended } = startProcess(command, env, cwd);
  child.stdin?.end();
  return await ended;
}
