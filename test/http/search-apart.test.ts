import { fork } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@catchword/base/clock';
import { expect, it, onTestFinished } from 'vitest';
import { createReadSteps, inThisThread } from '../../src/http/read-steps.ts';
import { createSearchSubprocess, type SearchApartOptions } from '../../src/http/search-subprocess.ts';
import { reading } from '../operate/daemon.ts';
import { filled } from '../support/place.ts';
import { emptyMirror, SOURCE, serve, serveFilled } from './place.ts';
import { get, openReader } from './reader.ts';
import { programThat, programThatWaits } from './stand-in-program.ts';

/** The program as it is installed. */
const PROGRAM = new URL('../../dist/search-program.js', import.meta.url);
/** No limit is reached unless a test is about it. */
const PATIENT = { runMs: 3_600_000, waitMs: 3_600_000, startMs: 3_600_000 };
const MANY = 'w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15 w16 w17';

function apart(db: string, options: Partial<SearchApartOptions> = {}) {
  const limits = { ...PATIENT, ...options.limits };
  const made = createSearchSubprocess({ db, source: SOURCE, clock: systemClock, program: PROGRAM, ...options, limits });
  onTestFinished(() => made.stop());
  return made;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('a search in a process of its own finds what the mirror finds, and keeps its errors', async () => {
  const { db } = await filled({ items: 300, details: true });
  const store = reading(db);
  const { search } = apart(db);
  for (const text of ['history', 'hist* of', '9*', 'no such word']) {
    expect(await search(text, 20), text).toEqual(store.search(text, 20));
  }
  await expect(search(MANY, 20)).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringContaining('17 words'),
  });
  expect(await search('the', 3)).toEqual(store.search('the', 3));
});

it('the process of searches judges views as this thread does, and keeps their errors', { tags: ['slow'] }, async () => {
  const { db } = await filled({ items: 300, details: true });
  const here = inThisThread(createReadSteps(reading(db), SOURCE, systemClock));
  const there = apart(db);
  const given = { where: "title LIKE '%a%'", fields: "json_object('t', title, 'x', body->'$.nowhere')" };
  for (const steps of [here, there])
    await expect(steps.digest({ where: 'titel = 1' })).rejects.toMatchObject({ code: 'USAGE', hint: /title/ });
  expect(await there.digest(given)).toBe(await here.digest(given));
  // A busy machine makes more steps, each smaller.
  const products = async ({ products: step }: typeof here) => {
    const found: unknown[] = [];
    for (let next: string | null = ''; next !== null; ) {
      const read: Awaited<ReturnType<typeof step>> = await step(given, next, 200, 20, Number.MAX_SAFE_INTEGER);
      found.push(...(JSON.parse(`[${read.text}]`) as unknown[]));
      expect(read.absent).toEqual(['nowhere']);
      next = read.next;
    }
    return found;
  };
  expect(await products(there)).toEqual(await products(here));
  const changes = async ({ changes: step }: typeof here) => {
    const found: unknown[] = [];
    for (let at = 100; at < 300; ) {
      const { events, to } = await step(given, at, 7, { op: ['created'] });
      found.push(...events);
      at = to;
    }
    return found;
  };
  expect(await changes(there)).toEqual(await changes(here));
  expect((await there.preview('shop', given)).judged).toBeGreaterThan(0);
});

it('a deadline ends a search that takes too long, together with its process', async () => {
  const { program, pids } = programThat('');
  const { search } = apart('', { program, limits: { runMs: 50 } });
  for (const nth of [1, 2]) {
    await expect(search('a*', 1)).rejects.toMatchObject({ code: 'SEARCH_TIMEOUT' });
    expect(pids()).toHaveLength(nth);
    await expect.poll(() => pids().some(isAlive)).toBe(false);
  }
});

it('a search does not make others wait for long', async () => {
  const { program, pids } = programThat('');
  const { search } = apart('', { program, limits: { runMs: 200, waitMs: 50 } });
  const refused = await Promise.all(Array.from({ length: 20 }, () => search('a*', 1).catch((error: Error) => error)));
  expect(refused.map((error) => (error as Error).message)).toEqual([
    'the search took longer than 0.2 seconds',
    ...Array.from({ length: 19 }, () => 'other searches take too long'),
  ]);
  expect(pids()).toHaveLength(1);
});

it('a search starts its process again after it has ended', async () => {
  const { program, pids } = programThat('process.exit(1)');
  const { search } = apart('', { program });
  for (const _ of [1, 2]) await expect(search('a', 1)).rejects.toThrow('has ended');
  expect(pids()).toHaveLength(2);
});

it('a search starts its process again after it was killed between two searches', async () => {
  const { program, pids } = programThat('process.send({ made: [] })');
  const { search } = apart('', { program });
  expect(await search('a', 1)).toEqual([]);
  process.kill(pids()[0] ?? Number.NaN, 'SIGKILL');
  await expect.poll(async () => await search('a', 1).catch(() => 'not yet')).toEqual([]);
  await expect.poll(() => pids().length).toBe(2);
  expect(await search('a', 1)).toEqual([]);
});

it('the process that searches is replaced after so many steps, because it keeps what it prepared', async () => {
  const { program, pids } = programThat('process.send({ made: [] })');
  const { search } = apart('', { program, limits: { steps: 2 } });
  for (let times = 0; times < 5; times++) expect(await search('a', 1)).toEqual([]);
  expect(pids()).toHaveLength(3);
  await expect.poll(() => pids().filter(isAlive)).toHaveLength(1);
});

it('the process that searches does not get the environment, which may have secrets', async () => {
  process.env.CATCHWORD_API_KEY = 'a-key';
  onTestFinished(() => {
    delete process.env.CATCHWORD_API_KEY;
  });
  const { program } = programThat('process.send({ made: process.argv.concat(Object.values(process.env)) })');
  const passed = JSON.stringify(await apart('', { program }).search('a', 1));
  expect(passed).toContain('program.mjs');
  expect(passed).not.toContain('a-key');
});

it('a search leaves no process when it stops, or without searches', async () => {
  const { program, pids } = programThat('process.send({ made: [] })');
  const stopped = apart('', { program });
  await stopped.search('a', 1);
  await stopped.stop();
  const idle = apart('', { program, limits: { idleMs: 1 } });
  await idle.search('a', 1);
  expect(pids()).toHaveLength(2);
  await expect.poll(() => pids().some(isAlive)).toBe(false);
  await expect(stopped.search('a', 1)).rejects.toMatchObject({ code: 'INTERRUPTED' });
});

it('the process that searches ends with the process that asks', async () => {
  const { db } = await filled({ items: 1 });
  const child = fork(fileURLToPath(PROGRAM), [db], { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  child.disconnect();
  expect(await once(child, 'exit')).toEqual([0, null]);
});

it('a search refuses those that wait when it stops', async () => {
  const { program, pids } = programThat('');
  const searching = apart('', { program });
  const refused = [1, 2, 3].map((limit) => searching.search('a*', limit).catch((error: unknown) => error));
  await expect.poll(() => pids().length).toBe(1);
  await searching.stop();
  for (const error of await Promise.all(refused)) expect(error).toMatchObject({ code: 'INTERRUPTED' });
});

it('the server answers 503, and when to come back, for a search that takes too long', { tags: ['slow'] }, async () => {
  const { program } = programThat('');
  const { web } = await serveFilled({ items: 10 }, { searchApart: { program, limits: { runMs: 50 } } });
  const { status, headers, text } = await get(`${web.url}/api/products?q=a*`);
  expect({ status, retry: headers['retry-after'] }).toEqual({ status: 503, retry: '10' });
  expect(JSON.parse(text)).toMatchObject({ error: { code: 'SEARCH_TIMEOUT', hint: expect.any(String) } });
  const page = await get(`${web.url}/products?q=a*`, { headers: { accept: 'text/html' } });
  expect(page.status).toBe(200);
  expect(page.text).toContain('the search took longer than 0.05 seconds');
  expect((await get(`${web.url}/healthz`)).status).toBe(200);
});

it('a server answers 503 for an expression that takes too long, and ends its stream', { tags: ['slow'] }, async () => {
  const { program, pids } = programThat('');
  const { web } = await serveFilled({ items: 10 }, { searchApart: { program, limits: { runMs: 50 } } });
  for (const path of ['/api/products', '/api/changes', '/api/changes/stream']) {
    const { status, text } = await get(`${web.url}${path}?where=1`);
    expect([status, JSON.parse(text)]).toMatchObject([
      503,
      { error: { code: 'SEARCH_TIMEOUT', hint: /docs.views.md/ } },
    ]);
  }
  expect((await get(`${web.url}/api/changes?limit=1`)).status).toBe(200);
  await expect.poll(() => pids().some(isAlive)).toBe(false);
});

it('a stream whose view took too long ends, and says when to come back', { tags: ['slow'] }, async () => {
  const { program } = programThat(
    `if (process.argv.asked) return; process.argv.asked = 1; process.send({ made: 'd' })`,
  );
  const { stream } = await serveFilled({ items: 10 }, { searchApart: { program, limits: { runMs: 200 } } });
  const reader = await openReader(`${stream}?where=1`);
  expect(await reader.endCode()).toBe('SEARCH_TIMEOUT');
});

it('a server that stops lets a search end that is under way', async () => {
  const { program, isAsked, letGo } = programThatWaits([]);
  const { web } = await serve(emptyMirror(), {
    searchApart: { program, limits: PATIENT },
    limits: { stopMs: 3_600_000 },
  });
  const open = get(`${web.url}/api/products?q=a*`);
  await expect.poll(isAsked).toBe(true);
  const stopped = web.stop();
  await expect(get(`${web.url}/healthz`)).rejects.toThrow(/ECONNREFUSED/);
  letGo();
  expect(await open).toMatchObject({ status: 200, text: '[]' });
  await stopped;
});

it('a server that stops does not wait for a search that takes longer than the grace time', async () => {
  const { program, pids } = programThat('');
  const { web } = await serve(emptyMirror(), { searchApart: { program, limits: PATIENT }, limits: { stopMs: 10 } });
  const open = [1, 2].map((limit) => get(`${web.url}/api/products?q=a*&limit=${limit}`).catch(() => null));
  await expect.poll(() => pids().length).toBe(1);
  await web.stop();
  await expect.poll(() => pids().some(isAlive)).toBe(false);
  await Promise.all(open);
});

it.each([
  ['takes too long', '', { ...PATIENT, runMs: 50 }, 'SEARCH_TIMEOUT'],
  ['ends the process that judges it', 'process.exit(1)', PATIENT, 'INTERNAL'],
])(
  'an EventSource whose view %s is not refused: its stream ends, and it comes back',
  async (_, onMessage, limits, code) => {
    const { program } = programThat(onMessage);
    const { stream } = await serve(emptyMirror(), { searchApart: { program, limits } });
    const reader = await openReader(`${stream}?where=1`, { accept: 'text/event-stream' });
    expect(reader.response.statusCode).toBe(200);
    expect(await reader.rest()).toEqual([
      { retry: expect.stringMatching(/^[12]\d{4}$/), event: 'end', data: expect.stringContaining(`"code":"${code}"`) },
    ]);
    expect((await get(`${stream}?where=1`)).status).toBeGreaterThanOrEqual(500);
  },
);

it('a stream ends whose reader left while its view was judged', async () => {
  const { program, isAsked, letGo } = programThatWaits('0123456789ab');
  const { stream, logged } = await serve(emptyMirror(), { searchApart: { program, limits: PATIENT } });
  const leaving = request(`${stream}?where=1&after=latest`, { agent: false }).end();
  leaving.on('error', () => {});
  await expect.poll(isAsked).toBe(true);
  leaving.destroy();
  // The server has seen it once it has answered a later connection.
  await get(stream.replace('/api/changes/stream', '/healthz'));
  letGo();
  expect(await logged('stream ended')).toMatchObject({ code: 'GONE', streams: 0 });
});
