import { setTimeout as delay } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '@catchword/base/clock';
import { CatchwordError, type ErrorRecord, toErrorRecord } from '@catchword/base/errors';
import { serveUntil } from '@catchword/base/lifecycle';
import { createLog, type LogSettings } from '@catchword/base/log';
import { type Measure, publish } from '@catchword/base/telemetry';
import { startWhenPortIsFree } from '../../http/wait-for-port.ts';
import type { ThreadFigures } from '../../operate/metrics/thread-figures.ts';
import type { HttpConfig } from './http-config.ts';
import { startHttp } from './start-http.ts';

/*
 * The program of the thread that serves HTTP for a daemon: see web-worker-client.ts.
 *
 *     daemon                              this thread
 *       │ ── WebThreadData ────────────────► │  starts
 *       │ ◄─────────────── started | failed ─│
 *       │ ── each measure ─────────────────► │  counts it
 *       │ ◄───────────────────────── figures ─│  for /metrics
 *       │ ── figures ──────────────────────► │
 *       │ ── beat, every second ───────────► │  for /healthz
 *       │ ── stop ─────────────────────────► │  stops, and ends
 */

export interface WebThreadData {
  readonly config: HttpConfig;
  readonly port: number;
  readonly log: LogSettings;
  /** Whether to wait for the port while the daemon that was active before still uses it. */
  readonly waitsForPort: boolean;
  /** How often the daemon sends a beat, milliseconds. */
  readonly beatMs: number;
}

/** After as many beats that were not sent, the daemon's own thread hangs. A daemon that stands by waits as long. */
const MAX_MISSED = 30;

/** How long a scrape waits for the figures of the daemon's own thread, milliseconds. Prometheus waits 10 s by default. */
const FIGURES_MS = 2_000;
const BUSY: ThreadFigures = { heapBytes: null, late: [{ percentile: 100, seconds: FIGURES_MS / 1000 }] };

export type ToWebThread =
  | { readonly type: 'measure'; readonly measure: Measure }
  | { readonly type: 'figures'; readonly figures: ThreadFigures }
  | { readonly type: 'beat'; readonly problem: string | null }
  | { readonly type: 'stop' };

export type FromWebThread =
  | { readonly type: 'started' }
  /** Asks for the figures of the daemon's own thread. */
  | { readonly type: 'figures' }
  /** The thread ends. Any other error that ends it is a defect, and not a message but an event. */
  | { readonly type: 'failed'; readonly error: ErrorRecord };

async function serve({ config, port, log: settings, waitsForPort, beatMs }: WebThreadData): Promise<void> {
  const log = createLog(settings.level, settings);
  const stopping = new AbortController();
  // Counted, not measured with a clock: while the machine is suspended, neither thread runs.
  let missed = 0;
  let problem: string | null = null;
  const beats = setInterval(() => missed++, beatMs);
  const isStalled = (): boolean => missed >= MAX_MISSED;
  const say = (message: FromWebThread): void => parentPort?.postMessage(message);
  let answer: ((figures: ThreadFigures) => void) | undefined;
  let answered: Promise<ThreadFigures> | undefined;

  function ask(): Promise<ThreadFigures> {
    say({ type: 'figures' });
    return new Promise((resolve) => {
      answer = resolve;
    });
  }

  /** The figures of the daemon's own thread; of one that computes for longer than a scrape waits, only that. */
  async function figures(): Promise<ThreadFigures> {
    // A thread that computes is asked once. What it answers too late is for the next scrape.
    answered ??= ask();
    const over = new AbortController();
    const late = delay(FIGURES_MS, BUSY, { signal: over.signal });
    late.catch(() => {});
    const found = await Promise.race([answered, late]);
    over.abort();
    if (found !== BUSY) answered = undefined;
    return found;
  }
  parentPort?.on('message', (message: ToWebThread) => {
    if (message.type === 'measure') publish(message.measure);
    else if (message.type === 'figures') answer?.(message.figures);
    else if (message.type === 'beat') [missed, problem] = [0, message.problem];
    else stopping.abort();
  });
  const own = { config, port, clock: systemClock, log };
  const http = () => startHttp({ ...own, figures, isStalled, problem: () => problem, searchApart: {} });
  try {
    const web = waitsForPort ? await startWhenPortIsFree(http, { clock: systemClock, log }) : await http();
    say({ type: 'started' });
    await serveUntil(stopping.signal, [web]);
  } catch (error) {
    if (error instanceof CatchwordError) say({ type: 'failed', error: toErrorRecord(error) });
    else throw error;
  } finally {
    // Nothing else keeps the thread alive.
    clearInterval(beats);
    parentPort?.close();
  }
}

await serve(workerData as WebThreadData);
