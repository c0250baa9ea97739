import { withAbort } from '@catchword/base/abort';
import { createTrouble } from '@catchword/base/trouble';
import { settingsError } from '@catchword/settings/config';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import { createFeedContext, type FeedContext, type FeedOptions, sinkCode } from './feed-context.ts';
import { closeSession, type Feed, isFatal, onFailure, untilRetry } from './feed-failure.ts';
import { deliverReady, parkWaiting } from './parked-events.ts';
import { endFill } from './reconcile.ts';
import { holdForRun, settleView } from './settle-view.ts';
import { openSession, type Session } from './sink-session.ts';
import { checkWhenWanted } from './store-check.ts';

/** How often an idle sink checks for decisions, and for changes that another process records. */
const POLL_MS = 200;
/** Pause if even a failure could not be written to the mirror. */
const UNWRITTEN_FAILURE_PAUSE_MS = 6_000;

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
  // More may have been judged since it was read ahead.
  const batch = (ahead?.after === row.cursor ? ahead.batch : null) ?? context.read(row, session, row.cursor);
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

/** Takes one turn. @returns whether there was something to do */
async function turn(context: FeedContext, feed: Feed): Promise<boolean> {
  const { store, config, leased, row, acks } = context;
  leased.check();
  const before = row();
  const isOther = feed.session !== undefined && feed.session.generation !== before.generation;
  if (before.state !== 'running' || isOther) await closeSession(context, feed);
  if (before.state !== 'running' && before.state !== 'held') return false;
  if (feed.session === undefined) {
    if (config.problems !== undefined) throw settingsError(config.problems);
    const settled = await settleView(context, row());
    // Those of a forecast are told with it.
    context.noteViewFailures(false);
    if (settled !== 'ready') return settled === 'changed';
  }
  feed.session ??= (await openSession(context)) ?? undefined;
  if (feed.session === undefined) return true;
  const { session } = feed;
  await session.recheck();
  const now = row();
  if (now.generation !== session.generation) return true;
  const current = acks.current(now);
  if (now.approvedRun < store.runs.lastUnusual() && holdForRun(context, current)) return true;
  if (await session.holdIfTooMuchLeaves(current)) return true;
  if (await deliverReady(context, session, current)) return true;
  if (await checkWhenWanted(context, session, current, feed.wasIdle)) return true;
  if (await deliverNext(context, session, current)) return true;
  if (now.error !== null) leased.write(({ sinks }) => sinks.clearError(now.id));
  await endFill(context, session);
  return false;
}

/**
 * Feeds one sink until `stopping` aborts.
 *
 * ```
 *             open, resume
 *   closed ──────────────────────► open ─┐ each turn: ready events, else the next batch, else the end of a fill
 *     ▲                            │  ▲──┘
 *     └────────────────────────────┘
 *       not running, delivery restarted, an idle connection that was ended, or a failure (then a pause)
 * ```
 * The cursor, in SQLite, moves only after the sink has confirmed. Operators decide (pause, replay, skip) by writing to the
 * mirror, which every turn reads first.
 *
 * @throws CatchwordError LEASE_LOST when another relay has taken over
 */
export async function feedSink(options: FeedOptions): Promise<void> {
  const { store, config, clock, log, stopping } = options;
  const context = createFeedContext(options);
  const feed: Feed = { session: undefined, failures: 0, wasIdle: false };
  const trouble = createTrouble({ clock, log, level: 'error', wrong: 'handling a sink failure failed' });
  let recorded = new AbortController();
  const stopListening = store.onChanges(() => recorded.abort());

  /** A failure while handling a failure does not end the other sinks either. */
  async function onSecondFailure(error: unknown): Promise<void> {
    if (isFatal(error)) throw error;
    trouble.failed('', { code: sinkCode(error), sink: config.name, reason: context.errorText(error) });
    // The sink returns what it confirmed when it is opened again.
    context.acks.drop();
    await closeSession(context, feed);
    await clock.sleep(UNWRITTEN_FAILURE_PAUSE_MS, stopping).catch(() => {});
  }

  try {
    await untilRetry(context, true);
    while (!stopping.aborted) {
      try {
        // Before the turn reads the log, so that no change is missed.
        if (recorded.signal.aborted) recorded = new AbortController();
        const wasBusy = await turn(context, feed);
        context.noteViewFailures();
        const { session, failures } = feed;
        if (failures > 0 && session !== undefined) log.info({ sink: config.name, failures }, 'sink recovered');
        feed.failures = 0;
        feed.wasIdle = !wasBusy;
        if (wasBusy) continue;
        await withAbort([stopping, recorded.signal], (woken) => clock.sleep(POLL_MS, woken)).catch(() => {});
      } catch (error) {
        await onFailure(context, feed, error).catch(onSecondFailure);
      }
    }
  } finally {
    stopListening();
    await closeSession(context, feed);
  }
}
