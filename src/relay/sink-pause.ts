import { backoffMs } from '../base/backoff.ts';
import { LONGEST_PAUSE_MS, pauseAt } from '../base/clock.ts';
import type { FeedContext } from './feed-context.ts';
import { isSinkError } from './sink.ts';

/** How often to check whether an operator ended the pause. */
const POLL_MS = 200;
const MAX_BACKOFF_MS = 60_000;
/** Pauses that an earlier process started are logged if they last longer. */
const LONG_PAUSE_MS = 5_000;

/** How long to wait after a failure: a growing, random time, or the time that the store asked for if that is longer. */
export function retryDelayMs({ clock }: FeedContext, error: unknown, failures: number): number {
  const asked = isSinkError(error) ? (error.retryAfterMs ?? 0) : 0;
  const askedMs = Number.isFinite(asked) ? Math.min(LONGEST_PAUSE_MS, asked) : 0;
  const backoff = backoffMs(failures, () => clock.random(), MAX_BACKOFF_MS);
  return Math.round(Math.max(askedMs, backoff));
}

/** Logs the end of a pause that an earlier process started. */
export function announcePause({ row, clock, log }: FeedContext): void {
  const { name, error, errorAt, retryAt } = row();
  const now = clock.now();
  const pause = retryAt === null ? null : pauseAt({ since: errorAt ?? now, until: retryAt }, now);
  if (pause === null || pause.until - now <= LONG_PAUSE_MS) return;
  const until = new Date(Math.min(pause.until, now + LONGEST_PAUSE_MS)).toISOString();
  log.warn({ sink: name, reason: error, until }, 'sink is paused after a failure');
}

/**
 * Waits until a failing sink may be tried again, also after a pause that an earlier process started. `resume` and `replay`
 * end the pause. A pause written by a clock that was ahead is written again, or it would start over at every restart.
 */
export async function untilRetry({ row, leased, clock, stopping }: FeedContext): Promise<void> {
  while (!stopping.aborted) {
    const sink = row();
    if (sink.retryAt === null) return;
    const now = clock.now();
    const since = sink.errorAt ?? now;
    const pause = pauseAt({ since, until: Math.min(sink.retryAt, since + LONGEST_PAUSE_MS) }, now);
    if (pause === null) return;
    if (pause.since !== sink.errorAt || pause.until !== sink.retryAt) {
      leased.write(({ sinks }) => sinks.fail(sink.id, sink.error ?? '', pause.since, pause.until));
    }
    await clock.sleep(Math.min(POLL_MS, pause.until - now), stopping).catch(() => {});
  }
}
