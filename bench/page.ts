/**
 * Measures what the page costs while a million products load, five sinks are fed and the source changes: how much it
 * slows down the load, and whether the browser drops frames. `npx tsx bench/page.ts [products] [pairs]`, after `npm run
 * build`. Needs a Chromium (CHROMIUM, or /usr/bin/chromium).
 *
 * Each pair loads three times: unwatched, with two live pages that are read by a program, and with the same
 * pages in a browser. The browser takes processor time of its own: compare the processor time of the daemon.
 */
import { get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import { table } from '../src/report/text.ts';
import { cpuSeconds, environment, inDirectory, median, peakBytes, print, serveRole, serveSandbox } from './process.ts';

const products = Number(process.argv[2] ?? 1_000_000);
const pairs = Number(process.argv[3] ?? 3);
const PAGES = ['/', '/runs/1'];

type Watching = 'unwatched' | 'streams' | 'browser';

/** What a page has noted about its own thread. */
interface Frames {
  readonly frames: number;
  /** Milliseconds between two frames. */
  readonly longestGap: number;
  /** Tasks of more than 50 ms: when they began, after the page was asked for, and how long they took; milliseconds. */
  readonly longTasks: readonly { readonly at: number; readonly ms: number }[];
}

interface Sample {
  readonly watching: Watching;
  readonly loadMs: number;
  readonly cpu: number;
  readonly peak: number;
  readonly updates: number;
  readonly frames: readonly (readonly [string, Frames])[];
}

/** Runs in the page, before its scripts. */
function noteFrames(): void {
  const noted = { frames: 0, longestGap: 0, longTasks: [] as { at: number; ms: number }[] };
  Object.assign(window, { noted });
  let last = performance.now();
  const next = (): void => {
    const now = performance.now();
    // Frames of a tab that is not shown are not drawn.
    if (!document.hidden && noted.frames++ > 0) noted.longestGap = Math.max(noted.longestGap, now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) noted.longTasks.push({ at: startTime, ms: duration });
  }).observe({ type: 'longtask', buffered: true });
}

interface Run {
  readonly state: string;
  readonly started_at: string;
  readonly finished_at: string | null;
}

async function firstRun(url: string): Promise<Run | undefined> {
  return ((await (await fetch(`${url}/api/runs?limit=1000`)).json()) as Run[]).at(-1);
}

/** Reads the live stream of a page. @returns how many sections came so far */
function readLive(url: string): () => number {
  let updates = 0;
  get(url, { agent: false }, (response) => {
    response.on('error', () => {});
    response.setEncoding('latin1').on('data', (text: string) => {
      updates += text.split('event: section').length - 1;
    });
  }).on('error', () => {});
  return () => updates;
}

async function openPages(browser: Browser, url: string): Promise<Page[]> {
  return await Promise.all(
    PAGES.map(async (path) => {
      const context = await browser.newContext();
      // tsx names functions with a helper that the page does not have.
      await context.addInitScript({ content: `window.__name = (one) => one; (${noteFrames.toString()})()` });
      const page = await context.newPage();
      await page.goto(url + path);
      return page;
    }),
  );
}

async function once(watching: Watching, browser: Browser | null, directory: string): Promise<Sample> {
  const sandbox = await serveSandbox('--no-details', '--items', String(products));
  const more: Record<string, string> = { CATCHWORD_HTTP_PORT: '0', CATCHWORD_DELTA_OVERLAP: '1s' };
  for (const name of ['A', 'B', 'C', 'D', 'E'])
    more[`CATCHWORD_SINK_${name}`] = `jsonl:${join(directory, `${name}.jsonl`)}`;
  const daemon = await serveRole('daemon', environment(sandbox.url, join(directory, 'catalog.db'), more));
  let run = await firstRun(daemon.url);
  while (run === undefined) {
    await delay(20);
    run = await firstRun(daemon.url);
  }
  const pages = browser === null ? [] : await openPages(browser, daemon.url);
  const updates = watching === 'streams' ? PAGES.map((path) => readLive(`${daemon.url}/live${path}`)) : [];
  for (let seed = 1; run?.finished_at === null; seed++) {
    const body = JSON.stringify({ update: 50, create: 5, remove: 5, seed });
    await fetch(`${sandbox.url}/_sandbox/mutate`, { method: 'POST', body });
    await delay(500);
    run = await firstRun(daemon.url);
  }
  if (run?.state !== 'complete') throw new Error(`the run ended ${run?.state}`);
  const sample: Sample = {
    watching,
    loadMs: Date.parse(run.finished_at ?? '') - Date.parse(run.started_at),
    cpu: cpuSeconds(daemon.pid),
    peak: peakBytes(daemon.pid),
    updates: updates.reduce((sum, count) => sum + count(), 0),
    frames: await Promise.all(
      pages.map(async (page, nth) => {
        const noted = await page.evaluate(() => (window as unknown as { noted: Frames }).noted);
        await page.context().close();
        return [PAGES[nth] ?? '', noted] as const;
      }),
    ),
  };
  await daemon.stop();
  await sandbox.stop();
  return sample;
}

const samples: Sample[] = [];
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
for (let pair = 0; pair < pairs; pair++) {
  // Another order each time: a machine that becomes slower meanwhile favours none.
  const order: readonly Watching[] =
    pair % 2 === 0 ? ['unwatched', 'streams', 'browser'] : ['browser', 'streams', 'unwatched'];
  for (const watching of order) {
    const browser = watching === 'browser' ? await chromium.launch({ executablePath, args: ['--no-sandbox'] }) : null;
    const sample = await inDirectory((directory) => once(watching, browser, directory));
    await browser?.close();
    samples.push(sample);
    print(
      `${watching}: ${(sample.loadMs / 1_000).toFixed(2)} s, daemon's processor time ${sample.cpu.toFixed(2)} s, ` +
        `peak ${(sample.peak / 1e6).toFixed(0)} MB${sample.updates > 0 ? `, ${sample.updates} sections sent` : ''}`,
    );
    for (const [path, { frames, longestGap, longTasks }] of sample.frames) {
      const longest = longTasks.reduce((most, task) => (task.ms > most.ms ? task : most), { at: 0, ms: 0 });
      print(
        `  ${path}: ${frames} frames, longest gap ${longestGap.toFixed(0)} ms; ${longTasks.length} tasks above 50 ms, ` +
          `longest ${longest.ms.toFixed(0)} ms, ${(longest.at / 1_000).toFixed(1)} s after the page was opened`,
      );
    }
  }
}

const of = (watching: Watching, pick: (sample: Sample) => number): number =>
  median(samples.filter((sample) => sample.watching === watching).map(pick));
print(
  table(
    ['watching', 'load, seconds', 'to unwatched', "daemon's processor seconds", 'to unwatched'],
    (['unwatched', 'streams', 'browser'] as const).map((watching) => {
      const [ms, cpu] = [of(watching, ({ loadMs }) => loadMs), of(watching, (sample) => sample.cpu)];
      return [
        watching,
        (ms / 1_000).toFixed(2),
        (ms / of('unwatched', ({ loadMs }) => loadMs)).toFixed(3),
        cpu.toFixed(2),
        (cpu / of('unwatched', (sample) => sample.cpu)).toFixed(3),
      ];
    }),
  ),
);
