import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@catchword/testing/server';
import { type Running, startProcess } from '../support/cli.ts';
import { mutate, truthOf } from '../support/mirror.ts';
import { createMachineClock } from './clock.ts';
import type { Project } from './project.ts';

/** Two changes a second, as with `--churn 2/s`, but made here so that they can be paused. */
const CHURN_MS = 500;
const CHURN = [{ update: 1 }, { create: 1 }, { update: 1 }, { remove: 1 }] as const;

/** The service: `catchword sandbox` in its own process, with its own clock, always at the same address. */
export async function createSource(project: Project, items: number) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const clock = createMachineClock(project.directory, 'service');
  let running: Running | undefined;
  let churning: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;

  /** Retries once, because a kept-alive connection may be closed just when it is reused. */
  async function change(mutation: Record<string, number>): Promise<void> {
    await mutate(url, mutation).catch(() => mutate(url, mutation));
  }

  async function churn(signal: AbortSignal): Promise<void> {
    for (let done = 0; !signal.aborted; done++) {
      await change(CHURN[done % CHURN.length] ?? {});
      await delay(CHURN_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** Stops the continuous changes; waits for the current one. */
  async function quiet(): Promise<void> {
    churning?.stop.abort();
    await churning?.ended;
    churning = undefined;
  }

  return {
    url,
    clock,
    start: async (): Promise<void> => {
      const program = join(project.directory, 'node_modules/.bin/catchword');
      const args = ['sandbox', '--items', String(items), '--port', String(port), '--db', 'sandbox.journal'];
      running = startProcess([program, ...args, '--latency', '15'], clock.env, project.directory);
      running.child.stdin?.end();
      await running.shows('The sandbox answers');
    },
    /** Starts changing products continuously. */
    busy: () => {
      if (churning !== undefined) return;
      const stop = new AbortController();
      churning = { stop, ended: churn(stop.signal) };
      // Reported by `quiet`.
      churning.ended.catch(() => {});
    },
    quiet,
    stop: async (): Promise<void> => {
      await quiet();
      running?.child.kill('SIGTERM');
      await running?.ended;
      running = undefined;
    },
    mutate: change,
    /** `POST /_sandbox/<control>` */
    control: async (control: string, body: object): Promise<void> => {
      const response = await fetch(`${url}/_sandbox/${control}`, { method: 'POST', body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`${control}: ${response.status} ${await response.text()}`);
    },
    truth: () => truthOf(url),
    /** Number of requests since it was started. */
    requests: async () => ((await (await fetch(`${url}/_sandbox/requests`)).json()) as unknown[]).length,
  };
}
