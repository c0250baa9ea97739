import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { measure, serve } from './process.ts';

const PER_MINUTE = 600;
const PAGES = 1_000;
const PER_PAGE = 100;

/** The highest number of requests in any minute. */
function busiestMinute(times: readonly number[]): number {
  let first = 0;
  let most = 0;
  for (const [index, time] of times.entries()) {
    while ((times[first] ?? 0) <= time - 60_000) first++;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

/**
 * Measures a load from a source that allows 600 requests a minute: how close it comes, and whether it exceeds the
 * limit.
 */
export async function measureRate(cli: string): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'catchword-bench-'));
  const items = String(PAGES * PER_PAGE);
  const sandbox = await serve(process.execPath, [
    cli,
    'sandbox',
    '--no-details',
    '--json',
    '--port',
    '0',
    '--items',
    items,
    '--rate-limit',
    `${PER_MINUTE}/min`,
  ]);
  try {
    const { url } = JSON.parse(sandbox.line) as { url: string };
    const env = {
      CATCHWORD_BASE_URL: url,
      CATCHWORD_API_KEY: 'SANDBOXKEY',
      CATCHWORD_ACCESS_TOKEN: 'sandboxtoken',
      CATCHWORD_RATE_LIMIT: `${PER_MINUTE}/min`,
      CATCHWORD_PER_PAGE: String(PER_PAGE),
      CATCHWORD_DB: join(directory, 'catalog.db'),
      LOG_LEVEL: 'error',
    };
    const { stdout } = await measure([cli, 'sync', '--full', '--json'], env);
    const run = JSON.parse(stdout) as { started_at: string; finished_at: string; requests: number };
    const seconds = (Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000;
    const ideal = run.requests / (PER_MINUTE / 60);
    const response = await fetch(`${url}/_sandbox/requests`);
    const requests = (await response.json()) as { at: number; status: number }[];
    const rejected = requests.filter(({ status }) => status === 429).length;
    const busiest = busiestMinute(requests.map(({ at }) => at));
    return `at ${PER_MINUTE} requests a minute: ${run.requests} requests in ${seconds.toFixed(1)} s, ${(seconds / ideal).toFixed(3)} times the minimum; busiest minute ${busiest}, rejected ${rejected}`;
  } finally {
    await sandbox.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}
