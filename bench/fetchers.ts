/**
 * Measures how a load gets faster with more fetchers, each on a host of its own (a network namespace, which needs root),
 * and how fast the keeper is if the pages arrive at once. `npx tsx bench/fetchers.ts [latency in ms] [fetchers …]`,
 * after `npm run build`; takes 14 minutes.
 */
import { cpus, loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxOptions } from '@catchword/sandbox/options';
import { z } from 'zod';
import { table } from '../src/report/text.ts';
import { openScene } from '../test/many/scene.ts';
import { cpuSeconds, print } from './process.ts';

const PAGES = 200;
const PER_PAGE = 100;
const [latency = '2000', ...counts] = process.argv.slice(2);
const latencyMs = Number(latency);
const fetchersList = counts.length > 0 ? counts.map(Number) : [1, 2, 4, 8, 16];
/** Enough products for some seconds of the keeper's work. */
const MANY = 300_000;

const COMPLETE = z.object({
  msg: z.literal('run complete'),
  result: z.object({
    pages: z.number(),
    requests: z.number(),
    items: z.number(),
    startedAt: z.string(),
    finishedAt: z.string(),
  }),
});

interface Load {
  readonly fetchers: number;
  readonly sandbox: Partial<SandboxOptions>;
  readonly settings: Record<string, string>;
}

/** Makes one full run with so many fetchers. */
async function measure({ fetchers, sandbox, settings }: Load) {
  const scene = await openScene({ sandbox, settings });
  try {
    const hosts = Array.from({ length: fetchers }, (_, index) => scene.host(`fetcher${index}`));
    await Promise.all(hosts.map((host) => scene.startRole(host, 'fetcher').shows('"msg":"started"')));
    // What starting them cost is over.
    await delay(2_000);
    const keeper = scene.startRole(scene.keeperHost, 'keeper');
    const log = await keeper.shows('"msg":"run complete"');
    const seconds = cpuSeconds(keeper.child.pid ?? 0);
    const line = log.split('\n').find((text) => text.includes('"msg":"run complete"')) ?? '';
    const { result } = COMPLETE.parse(JSON.parse(line));
    const ms = Date.parse(result.finishedAt) - Date.parse(result.startedAt);
    return { ...result, ms, keeperCpuSeconds: seconds };
  } finally {
    await scene.close();
  }
}

function busy(): string {
  return `load of the machine ${loadavg()
    .map((value) => value.toFixed(1))
    .join(', ')}`;
}

print(`${cpus()[0]?.model ?? ''}, ${cpus().length} processors, Node.js ${process.version}; ${busy()}`);
const rows: string[][] = [];
for (const fetchers of fetchersList) {
  // Windows overlap, and the run ends with a delta: a few pages more.
  const items = Math.round(PAGES * PER_PAGE * 0.79);
  const settings = { CATCHWORD_PER_PAGE: String(PER_PAGE), CATCHWORD_CONCURRENCY: '1' };
  const { requests, ms } = await measure({ fetchers, sandbox: { items, latencyMs }, settings });
  const ideal = (requests * latencyMs) / fetchers;
  // The first page tells how many there are, and the last delta asks what changed meanwhile: nothing is read with them.
  const least = (2 + Math.ceil((requests - 2) / fetchers)) * latencyMs;
  const seconds = [ms, ideal, least].map((value) => (value / 1000).toFixed(1));
  rows.push([String(fetchers), String(requests), ...seconds, (ms / ideal).toFixed(3), (ms / least).toFixed(3)]);
  print(`${fetchers} fetchers: ${rows.at(-1)?.slice(1).join(' ')}; ${busy()}`);
}
print(table(['fetchers', 'requests', 'seconds', 'ideal', 'least', 'to ideal', 'to least'], rows));
const { ms, items, keeperCpuSeconds } = await measure({ fetchers: 2, sandbox: { items: MANY }, settings: {} });
const perSecond = (seconds: number) => Math.round(items / seconds);
print(
  `without latency, 2 fetchers, 1,000 products a page: ${perSecond(ms / 1000)} products/s, ` +
    `${perSecond(keeperCpuSeconds)} for each second of the keeper's processor time; ${busy()}`,
);
