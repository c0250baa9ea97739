import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { z } from 'zod';
import { type Ended, runProcess } from '../support/cli.ts';
import type { Project } from './project.ts';

const PATIENCE = { timeout: 45_000, interval: 50 };

const list = z.array(
  z.object({
    name: z.string(),
    pm2_env: z.object({
      pm_pid_path: z.string(),
      pm_out_log_path: z.string(),
      pm_err_log_path: z.string(),
      restart_time: z.number(),
      status: z.string(),
    }),
  }),
);

/** pm2's information about the one process that the shipped configuration starts. */
type Managed = z.infer<typeof list>[number];

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** pm2 with its own home directory, running the project's daemon with the shipped configuration. */
export function createProcessManager(project: Project) {
  const home = join(project.directory, 'pm2');
  const env = {
    PM2_HOME: home,
    PM2_DISABLE_VERSION_CHECK: 'true',
    // Resets the restart delay at once; otherwise it grows with each restart, up to 15 seconds.
    PM2_WORKER_INTERVAL: '300',
    EXP_BACKOFF_RESET_TIMER: '1',
  };
  let managed: Managed | undefined;

  async function pm2(...args: readonly string[]): Promise<Ended> {
    // The daemon inherits the environment of this command, and so the machine's clock.
    const ended = await runProcess(['pm2', ...args], { ...env, ...project.clock.env }, project.directory);
    if (ended.code !== 0) throw new Error(`pm2 ${args.join(' ')}: ${ended.stdout}${ended.stderr}`);
    return ended;
  }

  async function look(): Promise<Managed | undefined> {
    const { stdout } = await pm2('jlist');
    [managed] = list.parse(JSON.parse(stdout.slice(stdout.lastIndexOf('\n[') + 1)));
    return managed;
  }

  /** The daemon's process id; null while it is not running. */
  function pid(): number | null {
    const found = Number(textOf(managed?.pm2_env.pm_pid_path ?? ''));
    return found > 0 && isAlive(found) ? found : null;
  }

  return {
    /** Starts or restarts the daemon and waits until it reports that it is ready. */
    start: async (): Promise<void> => {
      if (managed === undefined) await pm2('start', 'node_modules/catchword/ecosystem.config.cjs');
      else await pm2('restart', managed.name);
      const now = await look();
      if (now?.pm2_env.status !== 'online') throw new Error(`pm2 started nothing: ${JSON.stringify(now)}`);
    },
    /** Waits until the daemon has ended. */
    stop: async (): Promise<void> => {
      const last = pid();
      if (managed !== undefined) await pm2('stop', managed.name);
      await vi.waitFor(() => {
        if (last !== null && isAlive(last)) throw new Error(`process ${last} did not end after pm2 stop`);
      }, PATIENCE);
    },
    pid,
    /** Waits for a running daemon other than `before`. */
    pidAfter: async (before: number | null): Promise<number> =>
      await vi.waitFor(() => {
        const found = pid();
        if (found !== null && found !== before) return found;
        throw new Error(`pm2 did not start the daemon again after process ${before} had ended`);
      }, PATIENCE),
    /** The daemon's output so far. */
    stdout: () => textOf(managed?.pm2_env.pm_out_log_path ?? ''),
    stderr: () => textOf(managed?.pm2_env.pm_err_log_path ?? ''),
    /** pm2's own log. */
    log: () => textOf(join(home, 'pm2.log')),
    close: async (): Promise<void> => {
      const own = Number(textOf(join(home, 'pm2.pid')));
      const last = pid();
      await pm2('kill').catch(() => {});
      for (const left of [last, own]) if (left !== null && left > 0 && isAlive(left)) process.kill(left, 'SIGKILL');
    },
  };
}
