import { withDeadline } from '../abort.ts';
import type { SinkRow } from '../store/sinks.ts';
import { answerWithin } from './answer-within.ts';
import type { FeedContext } from './feed-context.ts';
import type { Batch } from './read-batch.ts';
import { isOfThisHistory, reconcile } from './reconcile.ts';
import { type Mark, type Opened, type Sink, SinkError, type SinkEvent } from './sink.ts';
import { validMark } from './stored-mark.ts';

/** An open sink. */
export interface Session {
  readonly sink: Sink;
  readonly generation: number;
  /** Whether the sink stores its own mark, so that the mirror need not write every ack. */
  readonly storesMark: boolean;
  /** The batch after `after`, read while the one before it was delivered. */
  ahead: { readonly after: number; readonly batch: Batch | null } | null;
  /** The events of a call of `deliver` that is running or has failed. */
  inFlight: readonly SinkEvent[];
  /** Whether `fillEnds` was called. */
  isSettled: boolean;
  /** When `recheck` was last called. */
  checkedAt: number;
}

/** For safety: sinks have shorter deadlines of their own. */
const CALL_TIMEOUT_MS = 120_000;
/** Removing the rows that a fill did not deliver reads the whole table. */
const FILL_END_TIMEOUT_MS = 1_800_000;
const RECHECK_MS = 300_000;

function call<T>(context: FeedContext, work: (deadline: AbortSignal) => Promise<T>): Promise<T> {
  return withDeadline(context.signal, answerWithin(CALL_TIMEOUT_MS), work);
}

/** Whether every change between the sink's mark and its confirmed cursor was parked or skipped. */
function hasAllUpTo(context: FeedContext, row: SinkRow, sink: Sink, mark: Mark): boolean {
  const { store } = context;
  const { cursor } = mark;
  if (!isOfThisHistory(store, mark) || mark.generation < row.beganGeneration || cursor >= row.cursor) return false;
  // Ready events are delivered separately.
  const ready = store.sinks.freed(row.id, 'ready').map(({ seq }) => seq);
  for (let at = cursor; at < row.cursor; ) {
    const batch = context.read(row, sink, at, ready);
    const [first] = batch?.events ?? [];
    if (batch === null || first !== undefined) return first === undefined || first.seq > row.cursor;
    at = batch.to;
  }
  return true;
}

function logOpened({ log, config }: FeedContext, before: SinkRow, cursor: number, opened: Opened | null): void {
  const { name: sink, kind } = config;
  if (cursor < before.cursor) {
    if (opened?.refill === undefined) {
      const lost = { code: 'SINK_LOST_EVENTS', sink, confirmed: before.cursor, has: cursor };
      log.warn(lost, 'sink lost events; they are delivered again');
    } else {
      const lost = { code: 'SINK_REFILLED', sink, confirmed: before.cursor, reason: opened.refill };
      log.error(lost, 'every product is sent to the store again');
    }
  }
  log.info({ sink, kind, cursor }, 'sink is open');
}

/**
 * Opens a sink, and decides from the mirror's cursor and the sink's mark where to continue.
 * @throws what the sink throws; CatchwordError SINK_CONFLICT, LEASE_LOST
 */
export async function openSession(context: FeedContext): Promise<Session> {
  const { store, config, clock } = context;
  const sink = await config.make();
  const before = context.row();
  try {
    const newest = store.changes.lastSeq();
    const believed = context.markAt(before, before.cursor);
    const mark = validMark(await call(context, (deadline) => sink.open(believed, newest, deadline)));
    const hasAll = mark !== null && mark.refill === undefined && hasAllUpTo(context, before, sink, mark);
    const known = hasAll ? { ...mark, cursor: before.cursor, at: 0 } : mark;
    const began = context.leased.write((writer) => {
      const now = context.row();
      if (now.generation !== before.generation || now.cursor !== before.cursor) {
        throw new SinkError('unavailable', 'delivery was restarted while the sink was being opened');
      }
      if (mark !== null) writer.sinks.clearError(now.id);
      return reconcile(writer, now, known, clock.now());
    });
    logOpened(context, before, began.cursor, mark);
    const row = context.row();
    if (began.cursor === 0 && (row.backfillTo > 0 || row.takeOver)) {
      await call(context, async (deadline) => sink.fillBegins?.(context.markAt(row, 0), deadline));
    }
    return {
      sink,
      generation: began.generation,
      storesMark: mark !== null,
      ahead: null,
      inFlight: [],
      isSettled: sink.fillEnds === undefined,
      checkedAt: clock.now(),
    };
  } catch (error) {
    await context.closeSink(sink);
    throw error;
  }
}

/** Delivers events. If it fails, they stay in `inFlight`. */
export async function deliver(
  context: FeedContext,
  session: Session,
  events: readonly SinkEvent[],
  mark: Mark,
): Promise<void> {
  session.inFlight = events;
  await call(context, (deadline) => session.sink.deliver(events, mark, deadline));
  session.inFlight = [];
  context.search.accepted();
}

/** Checks every few minutes that the store still holds what it confirmed. @throws SinkError if it does not */
export async function recheck(context: FeedContext, session: Session): Promise<void> {
  const now = context.clock.now();
  const wasClockSetBack = now < session.checkedAt;
  if (!wasClockSetBack && now - session.checkedAt < RECHECK_MS) return;
  session.checkedAt = now;
  await call(context, async (deadline) => session.sink.recheck?.(deadline));
}

/**
 * Tells the sink, once per session, that everything is delivered. Until the mirror is complete it does not: products that
 * the mirror does not have yet may exist.
 */
export async function settle(context: FeedContext, session: Session): Promise<void> {
  const { store, signal } = context;
  if (session.isSettled) return;
  const { row, hasAll } = store.read(() => {
    const row = context.row();
    return { row, hasAll: store.watermark() !== null && row.cursor === store.changes.lastSeq() };
  });
  if (!hasAll || row.generation !== session.generation) return;
  const kept = store.sinks.parked(row.id).filter(({ state }) => state !== 'delivered');
  const vbids = [...new Set(kept.map(({ vbid }) => vbid))];
  await withDeadline(signal, answerWithin(FILL_END_TIMEOUT_MS), async (deadline) =>
    session.sink.fillEnds?.(vbids, context.markAt(row, row.cursor), deadline),
  );
  session.isSettled = true;
}
