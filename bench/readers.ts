/**
 * Measures many readers at once. `npx tsx bench/readers.ts [products]`, after `npm run build`.
 *
 * 1. A daemon that mirrors a changing source, with 200 readers of the stream and 500 scrapes at a time.
 * 2. 500 readers of the stream, more than are admitted.
 * 3. Readers that take nothing: 150 of pages of 8 MB, and 100 of a stream of products of 200 kB.
 */
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import {
  environment,
  inDirectory,
  measureSync,
  peakBytes,
  print,
  residentBytes,
  serveRole,
  serveSandbox,
} from './process.ts';

const products = Number(process.argv[2] ?? 100_000);
const READERS = 200;
const SCRAPES = 500;
const ROUNDS = 15;

async function ask(url: string, headers: Record<string, string> = {}, agent?: Agent): Promise<IncomingMessage> {
  const asked = request(url, { headers, ...(agent === undefined ? { agent: false } : { agent }) }).end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return response;
}

interface Follower {
  /** The last change, in order; null before the first. */
  last: number | null;
  wrong: number;
  ends: string[];
  leave(): void;
}

/** Reads a stream, and checks that no change is missing, doubled or out of order. */
async function follow(url: string): Promise<Follower> {
  const response = await ask(url, { accept: 'text/event-stream' });
  const follower: Follower = { last: null, wrong: 0, ends: [], leave: () => response.destroy() };
  let rest = '';
  response.on('error', () => {});
  response.setEncoding('latin1').on('data', (chunk: string) => {
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      if (block.includes('event: end')) follower.ends.push(/"code":"(\w+)"/.exec(block)?.[1] ?? '');
      const seq = /^id: [\w-]+:(\d+):/m.exec(block)?.[1];
      if (seq === undefined) continue;
      // The first block names where the stream starts.
      if (follower.last !== null && Number(seq) !== follower.last + 1) follower.wrong++;
      follower.last = Number(seq);
    }
  });
  return follower;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;

async function lastSeq(url: string): Promise<number> {
  return ((await (await fetch(`${url}/api/status`)).json()) as { last_seq: number }).last_seq;
}

/** Waits until every follower has the newest change, at most a minute. @returns how many have not */
async function settled(url: string, followers: readonly Follower[]): Promise<number> {
  const newest = await lastSeq(url);
  const behind = () => followers.filter(({ last }) => (last ?? 0) < newest).length;
  for (let waits = 0; waits < 600 && behind() > 0; waits++) await delay(100);
  return behind();
}

async function scrape(url: string, agent: Agent): Promise<number> {
  const startedAt = performance.now();
  const response = await ask(`${url}/metrics`, {}, agent);
  let text = '';
  for await (const chunk of response.setEncoding('latin1')) text += chunk;
  if (response.statusCode !== 200 || !text.includes('catchword_products')) throw new Error('a scrape failed');
  return performance.now() - startedAt;
}

async function many(directory: string): Promise<void> {
  const sandbox = await serveSandbox('--no-details', '--items', String(products));
  const more = { CATCHWORD_HTTP_PORT: '0', CATCHWORD_DELTA_CRON: '* * * * * *', CATCHWORD_FULL_CRON: 'off' };
  const env = environment(sandbox.url, join(directory, 'many.db'), { ...more, CATCHWORD_DELTA_OVERLAP: '1s' });
  await measureSync(env, '--full');
  const daemon = await serveRole('daemon', env);
  await daemon.logged('run complete');
  const before = residentBytes(daemon.pid);
  const firstSeq = await lastSeq(daemon.url);
  const url = `${daemon.url}/api/changes/stream?after=latest`;
  const followers = await Promise.all(Array.from({ length: READERS }, () => follow(url)));
  const agent = new Agent({ keepAlive: true });
  const tookMs: number[] = [];
  const alone = await scrape(daemon.url, agent);
  const resident: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await fetch(`${sandbox.url}/_sandbox/mutate`, {
      method: 'POST',
      body: JSON.stringify({ update: 300, create: 20, remove: 5, seed: round + 1 }),
    });
    const startedAt = performance.now();
    tookMs.push(...(await Promise.all(Array.from({ length: SCRAPES }, () => scrape(daemon.url, agent)))));
    resident.push(residentBytes(daemon.pid));
    await delay(Math.max(0, 1_000 - (performance.now() - startedAt)));
  }
  // The last changes are found by a delta of the seconds after.
  await delay(5_000);
  const behind = await settled(daemon.url, followers);
  const events = (await lastSeq(daemon.url)) - firstSeq;
  const wrong = followers.reduce((sum, follower) => sum + follower.wrong, 0);
  const ended = followers.flatMap(({ ends }) => ends);
  for (const follower of followers) follower.leave();
  agent.destroy();
  await delay(5_000);
  print(
    `${READERS} readers got ${events} changes each: ${wrong} missed or out of order, ${behind} behind, ended: ${ended.join() || 'none'}`,
  );
  print(
    `${tookMs.length} scrapes, ${SCRAPES} at a time: p50 ${percentile(tookMs, 0.5).toFixed(0)} ms, p99 ` +
      `${percentile(tookMs, 0.99).toFixed(0)} ms; one alone ${alone.toFixed(1)} ms`,
  );
  print(
    `daemon: ${mb(before)} before, ${mb(Math.min(...resident))} to ${mb(Math.max(...resident))} during, ` +
      `${mb(residentBytes(daemon.pid))} after, peak ${mb(peakBytes(daemon.pid))}`,
  );
  await daemon.stop();
  await sandbox.stop();
}

/** Readers that arrive together, all from the first change on; the source has ended. */
async function crowd(env: Record<string, string>): Promise<void> {
  const web = await serveRole('web', env);
  const before = residentBytes(web.pid);
  const startedAt = performance.now();
  const all = await Promise.all(Array.from({ length: 500 }, () => follow(`${web.url}/api/changes/stream`)));
  const refused = all.filter(({ ends }) => ends.includes('TOO_MANY_STREAMS'));
  await delay(500);
  const admitted = all.filter(({ ends }) => ends.length === 0);
  const behind = await settled(web.url, admitted);
  const wrong = all.reduce((sum, follower) => sum + follower.wrong, 0);
  print(
    `500 readers of ${await lastSeq(web.url)} changes: ${admitted.length} admitted, of which ${admitted.length - behind} had all ` +
      `after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s, ${wrong} missed; ${500 - admitted.length} ` +
      `told to come back (${refused.length} before they read anything)`,
  );
  print(`web: ${mb(before)} before, peak ${mb(peakBytes(web.pid))}`);
  for (const follower of all) follower.leave();
  await web.stop();
}

/** Readers that ask and take nothing. */
async function stalled(env: Record<string, string>, name: string, count: number, path: string): Promise<void> {
  const web = await serveRole('web', env);
  const before = residentBytes(web.pid);
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(Number(new URL(web.url).port), '127.0.0.1');
    socket.on('error', () => {}).pause();
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    return socket;
  });
  await delay(8_000);
  const during = residentBytes(web.pid);
  const { status } = await fetch(`${web.url}/api/changes?limit=10`);
  print(
    `${name}: ${mb(before)} before, ${mb(during)} during, peak ${mb(peakBytes(web.pid))}; another reader gets ${status}`,
  );
  for (const socket of sockets) socket.destroy();
  await web.stop();
}

/** Makes all products of a mirror larger, as if the source had sent them so. */
function enlarge(db: string, bytes: number): void {
  const sqlite = new Database(db);
  sqlite.prepare("UPDATE products SET body = json_insert(body, '$.x', hex(randomblob(?)))").run(bytes / 2);
  sqlite.close();
}

await inDirectory(async (directory) => {
  await many(directory);
  const sandbox = await serveSandbox('--details', '--items', '10000');
  const env = environment(sandbox.url, join(directory, 'detailed.db'), { CATCHWORD_HTTP_PORT: '0' });
  await measureSync(env, '--full');
  const few = await serveSandbox('--details', '--items', '500');
  const large = environment(few.url, join(directory, 'large.db'), { CATCHWORD_HTTP_PORT: '0' });
  await measureSync(large, '--full');
  enlarge(join(directory, 'large.db'), 200_000);
  await crowd(env);
  await stalled(env, '150 readers take nothing of pages of 8 MB', 150, '/api/changes?limit=10000');
  await stalled(large, '100 readers take nothing of products of 200 kB', 100, '/api/changes/stream');
  await sandbox.stop();
  await few.stop();
});
