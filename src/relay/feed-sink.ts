import { withAbort } from '../base/abort.ts';
import { hasCode, isMirrorLost } from '../base/errors.ts';
import { createTrouble } from '../base/trouble.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import { createFeedContext, type FeedContext, type FeedOptions, sinkCode } from './feed-context.ts';
import { deliverReady, parkRefused, parkWaiting, stopSink } from './parked-events.ts';
import { isSinkError } from './sink.ts';
import { announcePause, retryDelayMs, untilRetry } from './sink-pause.ts';
import { openSession, type Session } from './sink-session.ts';

/** How often an idle sink checks for decisions, and for changes that another process records. */
const POLL_MS = 200;
/** Pause if even a failure could not be written to the mirror. */
const UNWRITTEN_FAILURE_PAUSE_MS = 6_000;

/** Another relay has taken over, or this process has lost the mirror: it cannot feed any sink. */
const isFatal = (error: unknown): boolean => isMirrorLost(error) || hasCode(error, 'LEASE_LOST');

/** A batch that cannot be read ahead is read again, with its error, when the running delivery has ended. */
async function readAhead(context: FeedContext, session: Session, row: SinkRow, after: number) {
  try {
    const batch = await context.readMeanwhile(row, session, after);
    if (batch !== null && batch.size > 0) session.prepareNext(batch);
    return { after, batch };
  } catch {
    return null;
  }
}

/** Delivers the next batch of the log, and reads the one after it meanwhile. @returns whether there was one */
async function deliverNext(context: FeedContext, session: Session, row: SinkRow): Promise<boolean> {
  const { acks, search, stopping } = context;
  const { ahead } = session;
  session.ahead = null;
  const batch = ahead?.after === row.cursor ? ahead.batch : context.read(row, session, row.cursor);
  if (batch === null) return false;
  const { size, waiting, to } = batch;
  if (waiting.length > 0 && !parkWaiting(context, row, waiting)) return true;
  if (size > 0) {
    const delivering = session.deliver(batch, context.markAt(row, to));
    // Prevents an unhandled rejection; awaited below.
    delivering.catch(() => {});
    const next = waiting.length > 0 || stopping.aborted ? null : await readAhead(context, session, row, to);
    await delivering;
    session.ahead = next;
  }
  search.passed(to);
  const hasMore = (session.ahead?.batch ?? null) !== null;
  acks.confirm(row, to, size, session.storesMark && hasMore);
  return true;
}

/**
 * Feeds one sink until `stopping` aborts.
 *
 * ```
 *             open, reconcile
 *   closed ──────────────────────► open ─┐ each turn: ready events, else the next batch, else the end of a fill
 *     ▲                            │  ▲──┘
 *     └────────────────────────────┘
 *       not running, delivery restarted, or a failure (then a pause)
 * ```
 * The cursor, in SQLite, moves only after the sink has confirmed. Operators decide (pause, replay, skip) by writing to the
 * mirror, which every turn reads first.
 *
 * @throws CatchwordError LEASE_LOST when another relay has taken over
 */
export async function feedSink(options: FeedOptions): Promise<void> {
  const { store, config, clock, log, leased, stopping, signal } = options;
  const context = createFeedContext(options);
  const { row, acks, search, errorText } = context;
  let session: Session | undefined;
  let failures = 0;
  const trouble = createTrouble({ clock, log, level: 'error', wrong: 'handling a sink failure failed' });
  let recorded = new AbortController();
  const stopListening = store.onChanges(() => recorded.abort());

  async function close(): Promise<void> {
    const closing = session;
    session = undefined;
    await closing?.close();
    acks.flush();
  }

  /** @returns whether there was something to do */
  async function turn(): Promise<boolean> {
    leased.check();
    const before = row();
    if (before.state !== 'running') {
      await close();
      return false;
    }
    if (session !== undefined && session.generation !== before.generation) await close();
    session ??= await openSession(context);
    const open = session;
    await open.recheck();
    const now = row();
    if (now.generation !== open.generation) return true;
    const current = acks.current(now);
    if ((await deliverReady(context, open, current)) || (await deliverNext(context, open, current))) return true;
    if (now.error !== null) leased.write(({ sinks }) => sinks.clearError(now.id));
    await open.endFill();
    return false;
  }

  /** Makes batches smaller if the last one may have been too large for the sink. @returns what to add to the reason */
  function slowness(error: unknown): string {
    const events = session?.inFlight?.size ?? 0;
    if (!isSinkError(error) || !error.timedOut || events === 0) return '';
    const next = context.batchSize.timedOut(events);
    if (events === 1) return failures === 0 ? '' : '. It does not take a single event either';
    return `. The next batch has at most ${next} ${next === 1 ? 'event' : 'events'} instead of ${events}`;
  }

  /** Handles a failed turn. @returns when the next one may start */
  async function onFailure(error: unknown): Promise<void> {
    if (isFatal(error)) throw error;
    acks.flush();
    // The relay stops, and has abandoned a call.
    if (signal.aborted || (stopping.aborted && error === stopping.reason)) return;
    const reason = errorText(error);
    const failure = isSinkError(error) ? error.failure : 'unavailable';
    // Without events in flight, it is not an event that was refused.
    if (failure === 'refused' && session !== undefined && session.inFlight !== null) {
      const refused = search.narrow(session.inFlight.events());
      session.inFlight = null;
      if (refused !== null) parkRefused(context, session, refused, reason);
      return;
    }
    const sink = row();
    const slow = slowness(error);
    await close();
    if (failure === 'gone' || hasCode(error, 'SINK_CONFLICT')) {
      stopSink(context, sink, sinkCode(error), reason);
      return;
    }
    failures++;
    const pauseMs = retryDelayMs(context, error, failures);
    const now = clock.now();
    const shown = `${reason}${slow}`;
    leased.write(({ sinks }) => sinks.fail(sink.id, shown, now, now + pauseMs));
    log.warn({ code: sinkCode(error), sink: config.name, reason: shown, failures, pauseMs }, 'sink failed, retrying');
    await untilRetry(context);
  }

  /** A failure while handling a failure does not end the other sinks either. */
  async function onSecondFailure(error: unknown): Promise<void> {
    if (isFatal(error)) throw error;
    trouble.failed('', { code: sinkCode(error), sink: config.name, reason: errorText(error) });
    // The sink returns what it confirmed when it is opened again.
    acks.drop();
    await close();
    await clock.sleep(UNWRITTEN_FAILURE_PAUSE_MS, stopping).catch(() => {});
  }

  try {
    announcePause(context);
    await untilRetry(context);
    while (!stopping.aborted) {
      try {
        // Before the turn reads the log, so that no change is missed.
        if (recorded.signal.aborted) recorded = new AbortController();
        const wasBusy = await turn();
        if (failures > 0 && session !== undefined) log.info({ sink: config.name, failures }, 'sink recovered');
        failures = 0;
        if (wasBusy) continue;
        await withAbort([stopping, recorded.signal], (woken) => clock.sleep(POLL_MS, woken)).catch(() => {});
      } catch (error) {
        await onFailure(error).catch(onSecondFailure);
      }
    }
  } finally {
    stopListening();
    await close();
  }
}
