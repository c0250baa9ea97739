import { backoffMs } from '@catchword/base/backoff';
import { LONGEST_PAUSE_MS, pauseAt } from '@catchword/base/clock';
import { hasCode, isMirrorLost } from '@catchword/base/errors';
import { isSinkError } from '@catchword/sink-kit/sink';
import { type FeedContext, sinkCode } from './feed-context.ts';
import { parkRefused, stopSink } from './parked-events.ts';
import type { Session } from './sink-session.ts';

/*
 * What an error of a store does to its sink:
 *
 *   unavailable, misconfigured, anything else    wait, with growing pauses, and retry the same batch
 *   refused, in a delivery                       search for the event (refusal-search.ts), and park it (parked-events.ts);
 *                                                stop at the first one with refused=stop, or after 20 in a row
 *   an idle connection that has ended            open another one at once
 *   gone, SINK_CONFLICT                          stop until an operator resumes the sink
 *   the mirror or the lease is lost              end the relay
 */

/** How often to check whether an operator ended the pause. */
const POLL_MS = 200;
const MAX_BACKOFF_MS = 60_000;
/** Pauses that an earlier process started are logged if they last longer. */
const LONG_PAUSE_MS = 5_000;

/** The state of a sink's loop. */
export interface Feed {
  session: Session | undefined;
  /** Failed turns in a row. */
  failures: number;
  /** Whether the last turn found nothing to do. */
  wasIdle: boolean;
}

/** Another relay has taken over, or this process has lost the mirror: it cannot feed any sink. */
export const isFatal = (error: unknown): boolean => isMirrorLost(error) || hasCode(error, 'LEASE_LOST');

export async function closeSession({ acks }: FeedContext, feed: Feed): Promise<void> {
  const closing = feed.session;
  feed.session = undefined;
  await closing?.close();
  acks.flush();
}

/** Makes batches smaller if the last one may have been too large for the sink. @returns what to add to the reason */
function slowness({ batchSize }: FeedContext, session: Session | undefined, failures: number, error: unknown): string {
  const events = session?.inFlight?.size ?? session?.applying ?? 0;
  if (!isSinkError(error) || !error.timedOut || events === 0) return '';
  const next = batchSize.timedOut(events);
  if (events === 1) return failures === 0 ? '' : '. It does not take a single event either';
  return `. The next batch has at most ${next} ${next === 1 ? 'event' : 'events'} instead of ${events}`;
}

/** How long to wait after a failure: a growing, random time, or the time that the store asked for if that is longer. */
function retryDelayMs({ clock }: FeedContext, error: unknown, failures: number): number {
  const asked = isSinkError(error) ? (error.retryAfterMs ?? 0) : 0;
  const askedMs = Number.isFinite(asked) ? Math.min(LONGEST_PAUSE_MS, asked) : 0;
  const backoff = backoffMs(failures, () => clock.random(), MAX_BACKOFF_MS);
  return Math.round(Math.max(askedMs, backoff));
}

/**
 * Waits until a failing sink may be tried again. `resume` and `replay` end the pause. A pause written by a clock that was
 * ahead is written again, or it would start over at every restart.
 * @param isEarlier whether an earlier process started the pause, so that its end is logged
 */
export async function untilRetry({ row, leased, clock, log, stopping }: FeedContext, isEarlier = false): Promise<void> {
  for (let isNews = isEarlier; !stopping.aborted; isNews = false) {
    const { id, name, error, errorAt, retryAt } = row();
    if (retryAt === null) return;
    const now = clock.now();
    const since = errorAt ?? now;
    const pause = pauseAt({ since, until: Math.min(retryAt, since + LONGEST_PAUSE_MS) }, now);
    if (pause === null) return;
    const until = new Date(pause.until).toISOString();
    const isLong = pause.until - now > LONG_PAUSE_MS;
    if (isNews && isLong) log.warn({ sink: name, reason: error, until }, 'sink is paused after a failure');
    if (pause.since !== errorAt || pause.until !== retryAt) {
      leased.write(({ sinks }) => sinks.fail(id, error ?? '', pause.since, pause.until));
    }
    await clock.sleep(Math.min(POLL_MS, pause.until - now), stopping).catch(() => {});
  }
}

/** Handles a failed turn. Returns when the next one may start. @throws an error after which no sink can be fed */
export async function onFailure(context: FeedContext, feed: Feed, error: unknown): Promise<void> {
  if (isFatal(error)) throw error;
  const { config, clock, log, leased, stopping, signal, search, acks } = context;
  acks.flush();
  // The relay stops, and has abandoned a call.
  if (signal.aborted || (stopping.aborted && error === stopping.reason)) return;
  const { session } = feed;
  const known = isSinkError(error) ? error : null;
  const text = context.errorText(error);
  // Without events in flight, it is not an event that was refused.
  if (known?.failure === 'refused' && session !== undefined && session.inFlight !== null) {
    const refused = search.narrow(session.inFlight.events());
    session.inFlight = null;
    if (refused !== null) parkRefused(context, session, refused, text);
    return;
  }
  const sink = context.row();
  await closeSession(context, feed);
  if (known?.failure === 'gone' || hasCode(error, 'SINK_CONFLICT')) {
    stopSink(context, sink, sinkCode(error), text);
    return;
  }
  // Many stores, poolers and firewalls end an idle connection. One that ends again is a failure.
  if (session !== undefined && feed.wasIdle && known?.connectionLost === true) {
    log.info({ sink: config.name, reason: text }, 'idle connection ended, opening another one');
    feed.wasIdle = false;
    return;
  }
  const reason = `${text}${slowness(context, session, feed.failures, error)}`;
  feed.failures++;
  const { failures } = feed;
  const pauseMs = retryDelayMs(context, error, failures);
  const now = clock.now();
  leased.write(({ sinks }) => sinks.fail(sink.id, reason, now, now + pauseMs));
  log.warn({ code: sinkCode(error), sink: config.name, reason, failures, pauseMs }, 'sink failed, retrying');
  await untilRetry(context);
}
