import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const CLI = fileURLToPath(new URL('../dist/cli.js', import.meta.url));

export interface Measured {
  readonly stdout: string;
  /** Duration of the process. */
  readonly wallMs: number;
  /** Peak resident set, bytes. */
  readonly peakBytes: number;
  /** Bytes written to disk (write_bytes of /proc/<pid>/io). */
  readonly writtenBytes: number;
  /** Processor time of its two busiest threads, seconds. */
  readonly busiest: readonly number[];
}

type Look = Pick<Measured, 'peakBytes' | 'writtenBytes'>;

/** Reads the kernel's figures of a process; the last ones before it ends are used. */
function look(pid: number): Look | null {
  try {
    const peakKb = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    const written = /^write_bytes: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1];
    return { peakBytes: Number(peakKb ?? 0) * 1024, writtenBytes: Number(written ?? 0) };
  } catch {
    return null;
  }
}

/** Peak resident set of a process so far, bytes; 0 if it has ended. */
export function peakBytes(pid: number): number {
  return look(pid)?.peakBytes ?? 0;
}

/** Resident set of a process now, bytes; 0 if it has ended. */
export function residentBytes(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Processor time of a process so far, seconds; 0 if it has ended. */
export function cpuSeconds(pid: number | string): number {
  try {
    // The name, in brackets, may contain spaces. Times are in ticks of 10 ms.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return 0;
  }
}

function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

const LOOK_MS = 20;

/** Runs a Node.js program to its end. @throws if it fails */
export async function measure(args: readonly string[], env: Record<string, string> = {}): Promise<Measured> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  let last: Look = { peakBytes: 0, writtenBytes: 0 };
  /** Processor time by thread; some end before the process does. */
  const threads = new Map<string, number>();
  const timer = setInterval(() => {
    const now = look(child.pid ?? 0);
    // The kernel reports no memory for a process that is ending.
    if (now !== null && now.peakBytes > 0) last = now;
    for (const id of threadsOf(child.pid ?? 0)) {
      threads.set(id, Math.max(threads.get(id) ?? 0, cpuSeconds(`${child.pid}/task/${id}`)));
    }
  }, LOOK_MS);
  const [code] = (await once(child, 'close')) as [number];
  clearInterval(timer);
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
  const busiest = [...threads.values()].sort((a, b) => b - a).slice(0, 2);
  return { stdout, wallMs: performance.now() - startedAt, ...last, busiest };
}

/** Starts `catchword sandbox` in its own process. `environment` has the settings of its clients. */
export async function serveSandbox(...args: readonly string[]) {
  const child = spawn(process.execPath, [CLI, 'sandbox', '--json', '--port', '0', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => reject(new Error(`the sandbox ended with ${code}`)));
    child.stdout.setEncoding('utf8').once('data', resolve);
  });
  const ended = once(child, 'close');
  return {
    ...(JSON.parse(line) as { readonly url: string; readonly environment: Record<string, string> }),
    pid: child.pid ?? 0,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** A role in its own process. */
interface Served {
  readonly url: string;
  readonly pid: number;
  /** Waits for a line of the log. */
  readonly logged: (message: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

/** Starts `daemon` or `web`, and waits until it listens. */
export async function serveRole(role: string, env: Record<string, string>): Promise<Served> {
  const child = spawn(process.execPath, [CLI, role], {
    env: { ...process.env, ...env, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const seen = new Map<string, Record<string, unknown>>();
  createInterface({ input: child.stderr }).on('line', (text) => {
    const line = JSON.parse(text) as Record<string, unknown>;
    seen.set(String(line.msg), line);
    if (Number(line.level) >= 50) print(text);
  });
  const logged = async (message: string) => {
    while (!seen.has(message)) {
      if (child.exitCode !== null) throw new Error(`${role} ended with ${child.exitCode}`);
      await delay(50);
    }
  };
  await logged('listening');
  const ended = once(child, 'exit');
  return {
    url: String(seen.get('listening')?.address),
    pid: child.pid ?? 0,
    logged,
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Makes a run with `catchword sync`. */
export async function measureSync(env: Record<string, string>, ...args: readonly string[]) {
  const measured = await measure([CLI, 'sync', '--json', ...args], env);
  const run = JSON.parse(measured.stdout) as { started_at: string; finished_at: string; requests: number };
  return { ms: Date.parse(run.finished_at) - Date.parse(run.started_at), requests: run.requests, measured };
}

/** Changes products of a sandbox. */
export async function mutate(url: string, update: number, seed: number): Promise<void> {
  await fetch(`${url}/_sandbox/mutate`, { method: 'POST', body: JSON.stringify({ update, seed }) });
}

/** With the default, each run asks for the changes of the five minutes before. */
export const SHORT_OVERLAP = { CATCHWORD_DELTA_OVERLAP: '1s' };

/** Waits until no run with `SHORT_OVERLAP` asks for changes that were made before. */
export async function outlast(): Promise<void> {
  await delay(3_000);
}

/** Changes products, and makes the full run of a night: nearly all changes of a day are older than its overlap. */
export async function measureNight(url: string, db: string, update: number, seed: number) {
  await mutate(url, update, seed);
  await outlast();
  return await measureSync(environment(url, db, SHORT_OVERLAP), '--full');
}

/** Creates a directory for `work`, and removes it afterwards. */
export async function inDirectory<T>(work: (directory: string) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-bench-'));
  try {
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The settings of a command that reads the sandbox at `url`. */
export function environment(url: string, db: string, more: Record<string, string> = {}): Record<string, string> {
  return {
    CATCHWORD_BASE_URL: url,
    CATCHWORD_API_KEY: 'SANDBOXKEY',
    CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
    CATCHWORD_RATE_LIMIT: 'off',
    CATCHWORD_DB: db,
    LOG_LEVEL: 'error',
    ...more,
  };
}
