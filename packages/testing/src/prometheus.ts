import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isInstalled, type ServerProcess, startServer } from './server.ts';

export const prometheusAvailable = isInstalled('prometheus', 'prometheus');

export interface PrometheusServer extends ServerProcess {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a Prometheus that scrapes `target` (host and port) every second as the job `catchword`. */
export async function startPrometheus(target: string, token: string): Promise<PrometheusServer> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-prometheus-'));
  const file = join(directory, 'prometheus.yml');
  const job = { job_name: 'catchword', scrape_interval: '1s', static_configs: [{ targets: [target] }] };
  const config = { scrape_configs: [{ ...job, authorization: { credentials: token } }] };
  // JSON is YAML.
  writeFileSync(file, JSON.stringify(config));
  const server = await startServer({
    command: 'prometheus',
    args: (port) => [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    ready: 'Server is ready to receive web requests',
  });
  return {
    ...server,
    url: `http://127.0.0.1:${server.port}`,
    stop: async () => {
      await server.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
