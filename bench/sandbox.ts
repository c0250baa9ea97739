/**
 * Measures how fast the sandbox serves a million lean products, to show that it does not limit other measurements. `npx
 * tsx bench/sandbox.ts [items] [--gzip] [--details]`
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { SANDBOX_DEFAULTS } from '@catchword/sandbox/options';
import { startSandbox } from '@catchword/sandbox/sandbox-server';
import { Pool } from 'undici';

const CONCURRENCY = 8;
const PER_PAGE = 1000;
const items = Number(process.argv.find((argument) => /^\d+$/.test(argument)) ?? 1_000_000);
const gzip = process.argv.includes('--gzip');
const details = process.argv.includes('--details');

type Report = { readonly url: string } | { readonly cpuSeconds: number; readonly residentBytes: number };

async function serve(): Promise<void> {
  const sandbox = await startSandbox({ items, details });
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuSeconds: (user + system) / 1e6, residentBytes: process.memoryUsage.rss() } satisfies Report);
  });
  process.on('disconnect', () => void sandbox.stop());
  process.send?.({ url: sandbox.url } satisfies Report);
}

async function measure(): Promise<void> {
  const child = fork(new URL(import.meta.url), process.argv.slice(2), { env: { ...process.env, BENCH_SERVE: '1' } });
  const next = async (): Promise<Report> => {
    const [report] = (await once(child, 'message')) as [Report];
    return report;
  };
  const usage = async () => {
    const report = next();
    child.send('usage');
    const message = await report;
    if ('url' in message) throw new Error('the child sent an unexpected message');
    return message;
  };
  const first = await next();
  if (!('url' in first)) throw new Error('the child sent an unexpected message');

  const pool = new Pool(first.url, { connections: CONCURRENCY });
  const headers = {
    [SANDBOX_DEFAULTS.apiKeyHeader]: SANDBOX_DEFAULTS.apiKey,
    [SANDBOX_DEFAULTS.accessTokenHeader]: SANDBOX_DEFAULTS.accessToken,
    ...(gzip && { 'accept-encoding': 'gzip' }),
  };
  const pages = Math.ceil(items / PER_PAGE);
  let page = 0;
  let bytes = 0;
  const before = await usage();
  const startedAt = performance.now();
  const read = async () => {
    while (page < pages) {
      const path = `/v4/products?page=${++page}&per_page=${PER_PAGE}`;
      const response = await pool.request({ method: 'GET', path, headers });
      if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
      for await (const piece of response.body) bytes += (piece as Buffer).length;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, read));
  const wallSeconds = (performance.now() - startedAt) / 1000;
  const after = await usage();
  await pool.close();
  child.disconnect();
  await once(child, 'exit');

  const cpuSeconds = after.cpuSeconds - before.cpuSeconds;
  const perSecond = (seconds: number) => `${Math.round(items / seconds).toLocaleString('en')}/s`;
  process.stdout.write(
    `${items} ${details ? 'detailed' : 'lean'} products, ${pages} pages, ${(bytes / 1e6).toFixed(0)} MB` +
      `${gzip ? ' gzip' : ''}, ${CONCURRENCY} at a time\n` +
      `wall     ${wallSeconds.toFixed(2)} s  ${perSecond(wallSeconds)}\n` +
      `CPU      ${cpuSeconds.toFixed(2)} s  ${perSecond(cpuSeconds)} on one core\n` +
      `memory   ${(after.residentBytes / 1e6).toFixed(0)} MB resident\n`,
  );
}

await (process.env.BENCH_SERVE === '1' ? serve() : measure());
