import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SandboxOptions } from '@catchword/sandbox/options';
import { FAST_DIRECTORY } from '@catchword/testing/fast-directory';
import { startRedis } from '@catchword/testing/redis';
import { CLI, type Running, startProcess } from '../support/cli.ts';
import { settingsFor } from '../support/mirror.ts';
import { type Host, openNetwork } from './network.ts';

const SERVICE = fileURLToPath(new URL('service.ts', import.meta.url));
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PORT = 4010;

interface SceneOptions {
  readonly sandbox: Partial<SandboxOptions>;
  readonly settings?: Record<string, string>;
  /** Where the mirror is; default: in memory. */
  readonly directory?: string;
}

export type Scene = Awaited<ReturnType<typeof openScene>>;

/** The service, Redis and the keeper's machine, each a host of its own; further hosts are added with `host`. */
export async function openScene({ sandbox, settings = {}, directory: parent = FAST_DIRECTORY }: SceneOptions) {
  const network = openNetwork();
  const directory = mkdtempSync(join(parent, 'catchword-hosts-'));
  const running = new Set<Running>();
  const servers: Awaited<ReturnType<typeof startRedis>>[] = [];

  /** Starts any program on a host. */
  function startOn(host: Host, command: readonly string[], env: Record<string, string>, cwd = directory): Running {
    const started = startProcess([...host.exec, ...command], env, cwd);
    started.child.stdin?.end();
    running.add(started);
    return started;
  }

  async function redisOn(host: Host) {
    const server = await startRedis({ on: host });
    servers.push(server);
    return server;
  }

  async function close(): Promise<void> {
    for (const one of running) one.child.kill('SIGKILL');
    await Promise.all([...running].map((one) => one.ended));
    for (const server of servers) await server.stop();
    network.close();
    rmSync(directory, { recursive: true, force: true });
  }

  try {
    const serviceHost = network.host('service');
    const url = `http://${serviceHost.address}:${PORT}`;
    const args = ['--import', 'tsx', SERVICE, serviceHost.address, String(PORT), JSON.stringify(sandbox)];
    const service = startOn(serviceHost, [process.execPath, ...args], {}, ROOT);
    await service.shows('the service answers');
    const redisHost = network.host('redis');
    const redis = await redisOn(redisHost);
    const db = join(directory, 'catalog.db');
    const env = settingsFor(url, db, { REDIS_URL: redis.url, LOG_LEVEL: 'info', ...settings });
    return {
      url,
      db,
      directory,
      service,
      redis,
      redisHost,
      keeperHost: network.host('keeper'),
      host: network.host,
      redisOn,
      /** Starts a role of catchword on a host. Fetchers have no mirror. */
      startRole: (host: Host, role: string, more: Record<string, string> = {}): Running => {
        const mirror = role === 'fetcher' ? { CATCHWORD_DB: '/nowhere/needed.db' } : {};
        return startOn(host, [process.execPath, CLI, role], { ...env, ...mirror, ...more });
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
