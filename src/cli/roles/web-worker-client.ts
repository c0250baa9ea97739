import { Worker } from 'node:worker_threads';
import { fromErrorRecord } from '@catchword/base/errors';
import { failureOf, type Service, THREAD_LIMITS } from '@catchword/base/lifecycle';
import { subscribe } from '@catchword/base/telemetry';
import { measureThread } from '../../operate/metrics/thread-figures.ts';
import type { FromWebThread, ToWebThread, WebThreadData } from './web-worker.ts';

/** Compiled. */
const PROGRAM = new URL('./web-worker.js', import.meta.url);
const BEAT_MS = 1_000;

/**
 * Serves HTTP in a thread of its own, so that no request holds up what this thread writes. If that thread ends by an
 * error, even by a defect, the service fails, as it would if it served in this thread.
 * @param problem what `/healthz` says
 * @throws CatchwordError as `startWeb` does
 */
export async function startWebThread(
  options: Omit<WebThreadData, 'beatMs'> & Partial<WebThreadData>,
  program = PROGRAM,
  problem = (): string | null => null,
): Promise<Service> {
  const data: WebThreadData = { beatMs: BEAT_MS, ...options };
  const figures = measureThread();
  const thread = new Worker(program, { workerData: data, name: 'web', resourceLimits: THREAD_LIMITS });
  const say = (message: ToWebThread): void => thread.postMessage(message);
  const stopForwarding = subscribe((measure) => say({ type: 'measure', measure }));
  const beats = setInterval(() => say({ type: 'beat', problem: problem() }), data.beatMs);
  const ended = new Promise<void>((resolve) => {
    thread.once('exit', () => {
      clearInterval(beats);
      stopForwarding();
      figures.stop();
      resolve();
    });
  });
  const started = new Promise<void>((resolve) => {
    thread.on('message', ({ type }: FromWebThread) => type === 'started' && resolve());
  });
  const failed = failureOf(
    new Promise<void>((_, reject) => {
      thread.on('message', (message: FromWebThread) => {
        if (message.type === 'figures') say({ type: 'figures', figures: figures.take() });
        else if (message.type === 'failed') reject(fromErrorRecord(message.error));
      });
      thread.once('error', reject);
      thread.once('exit', () => reject(new Error('the thread that serves HTTP has ended')));
    }),
  );
  try {
    await Promise.race([started, failed]);
  } catch (error) {
    await ended;
    throw error;
  }
  return {
    name: 'web',
    failed,
    stop: async () => {
      say({ type: 'stop' });
      await ended;
    },
  };
}
