import { join } from 'node:path';
import { environment, inDirectory, measureSync, serveSandbox } from './process.ts';

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
export async function measureRate(): Promise<string> {
  const limit = `${PER_MINUTE}/min`;
  const items = String(PAGES * PER_PAGE);
  const sandbox = await serveSandbox('--no-details', '--items', items, '--rate-limit', limit);
  try {
    return await inDirectory(async (directory) => {
      const more = { CATCHWORD_RATE_LIMIT: limit, CATCHWORD_PER_PAGE: String(PER_PAGE) };
      const { ms, requests: made } = await measureSync(
        environment(sandbox.url, join(directory, 'catalog.db'), more),
        '--full',
      );
      const ideal = (made * 60_000) / PER_MINUTE;
      const response = await fetch(`${sandbox.url}/_sandbox/requests`);
      const requests = (await response.json()) as { at: number; status: number }[];
      const rejected = requests.filter(({ status }) => status === 429).length;
      const busiest = busiestMinute(requests.map(({ at }) => at));
      return `at ${PER_MINUTE} requests a minute: ${made} requests in ${(ms / 1000).toFixed(1)} s, ${(ms / ideal).toFixed(3)} times the minimum; busiest minute ${busiest}, rejected ${rejected}`;
    });
  } finally {
    await sandbox.stop();
  }
}
