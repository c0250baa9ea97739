import { type Clock, LONGEST_PAUSE_MS, pauseAt } from '../clock.ts';
import type { Logger } from '../log.ts';
import type { Leased } from '../store/lease.ts';
import type { SinkRow } from '../store/sinks.ts';
import type { RelayWriter } from '../store/writers.ts';

export interface PausedSink {
  readonly row: () => SinkRow;
  readonly leased: Leased<RelayWriter>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How often it is looked whether an operator has ended the pause. */
const LOOK_MS = 200;
/** A pause that began before this process; shorter ones need no word. */
const LONG_WAIT_MS = 5_000;

/** Says until when a sink waits that an earlier process has paused. */
export function announcePause({ row, clock, log }: PausedSink): void {
  const { name, error, errorAt, retryAt } = row();
  const now = clock.now();
  const pause = retryAt === null ? null : pauseAt({ since: errorAt ?? now, until: retryAt }, now);
  if (pause === null || pause.until - now <= LONG_WAIT_MS) return;
  const until = new Date(Math.min(pause.until, now + LONGEST_PAUSE_MS)).toISOString();
  log.warn({ sink: name, reason: error, until }, 'sink waits before it is tried again');
}

/**
 * Waits until a failing sink may be tried again; also keeps to what a store asked of an earlier process. `resume` and
 * `replay` end the pause. A pause that a clock ahead of this one noted is noted again, as it would last at every start.
 */
export async function untilRetry({ row, leased, clock }: PausedSink, stopping: AbortSignal): Promise<void> {
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
    await clock.sleep(Math.min(LOOK_MS, pause.until - now), stopping).catch(() => {});
  }
}
