import { join } from 'node:path';
import { type Running, startProcess } from '../support/cli.ts';
import { mutate, truthOf } from '../support/mirror.ts';
import { freePort } from '../support/server.ts';
import { createMachineClock, type MachineClock } from './clock.ts';
import type { Project } from './project.ts';

const CHURN = '2/s';

/** The service: `catchword sandbox` as a process of its own, on a machine of its own, at one address for the whole life. */
export interface Source {
  readonly url: string;
  readonly clock: MachineClock;
  /** Starts it where it does not run; products change all the time. */
  busy(): Promise<void>;
  /** Starts it again without changes of its own. What it held it holds. */
  quiet(): Promise<void>;
  stop(): Promise<void>;
  mutate(mutation: Record<string, number>): Promise<void>;
  /** `POST /_sandbox/<control>` */
  control(control: string, body: object): Promise<void>;
  truth(): Promise<Map<string, string>>;
  /** How many requests it has had since it was started. */
  requests(): Promise<number>;
}

export async function createSource(project: Project, items: number): Promise<Source> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const clock = createMachineClock(project.directory, 'service');
  let running: Running | undefined;

  async function stop(): Promise<void> {
    if (running === undefined) return;
    running.child.kill('SIGTERM');
    await running.ended;
    running = undefined;
  }

  async function start(...more: readonly string[]): Promise<void> {
    await stop();
    const program = join(project.directory, 'node_modules/.bin/catchword');
    const args = ['sandbox', '--items', String(items), '--port', String(port), '--db', 'sandbox.journal'];
    running = startProcess([program, ...args, '--latency', '15', ...more], clock.env, project.directory);
    running.child.stdin?.end();
    await running.shows('The sandbox answers');
  }

  return {
    url,
    clock,
    busy: () => start('--churn', CHURN),
    quiet: () => start(),
    stop,
    mutate: (mutation) => mutate(url, mutation),
    control: async (control, body) => {
      const response = await fetch(`${url}/_sandbox/${control}`, { method: 'POST', body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`${control}: ${response.status} ${await response.text()}`);
    },
    truth: () => truthOf(url),
    requests: async () => ((await (await fetch(`${url}/_sandbox/requests`)).json()) as unknown[]).length,
  };
}
