import type { SinkRow } from '../store/sinks.ts';
import { withDeadline } from './deadline.ts';
import type { FeedContext } from './feed-context.ts';
import { usableMark } from './mark.ts';
import type { Batch } from './read-batch.ts';
import { isOfThisHistory, reconcile } from './reconcile.ts';
import { type Mark, type Opened, type Sink, SinkError } from './sink.ts';

/** An open sink, and what has been read for it ahead of its ack. */
export interface Session {
  readonly sink: Sink;
  readonly generation: number;
  /** It knows by itself how far it is, so that the mirror need not note every batch. */
  readonly keepsMark: boolean;
  ahead: { readonly after: number; readonly batch: Batch | null } | null;
  /** Whether the store has heard that everything is delivered. */
  isSettled: boolean;
  /** When the store was last asked whether it holds what it confirmed. */
  checkedAt: number;
}

/** One call of a sink; safety only, as sinks have deadlines of their own. */
export const CALL_TIMEOUT_MS = 120_000;
/** Removing what a fill did not deliver goes through the whole table. */
const FILL_END_TIMEOUT_MS = 1_800_000;
const RECHECK_MS = 300_000;

/** Whether everything between what the sink knows of and what it has confirmed was not for it: parked, or skipped. */
function isUpTo(context: FeedContext, sink: SinkRow, target: Sink, mark: Mark): boolean {
  const { store } = context;
  const { cursor } = mark;
  if (!isOfThisHistory(store, mark) || mark.generation < sink.beganGeneration || cursor >= sink.cursor) return false;
  // Those that were set free come by themselves.
  const apart = store.sinks.freed(sink.id, 'ready').map(({ seq }) => seq);
  for (let at = cursor; at < sink.cursor; ) {
    const batch = context.read(sink, target, at, undefined, apart);
    const [first] = batch?.events ?? [];
    if (batch === null || first !== undefined) return first === undefined || first.seq > sink.cursor;
    at = batch.to;
  }
  return true;
}

function logOpened({ log, config }: FeedContext, before: SinkRow, cursor: number, opened: Opened | null): void {
  const { name: sink, kind } = config;
  if (cursor < before.cursor) {
    if (opened?.refill === undefined) {
      const code = 'SINK_LOST_EVENTS';
      log.warn({ code, sink, confirmed: before.cursor, has: cursor }, 'sink lost events, which it is sent again');
    } else {
      const lost = { code: 'SINK_REFILLED', sink, confirmed: before.cursor, reason: opened.refill };
      log.error(lost, 'every product is sent to the store again');
    }
  }
  log.info({ sink, kind, cursor }, 'sink is open');
}

/**
 * Opens a sink and brings together how far it and the mirror say that it is.
 * @throws whatever the sink throws; CatchwordError SINK_CONFLICT, LEASE_LOST
 */
export async function openSession(context: FeedContext, signal: AbortSignal): Promise<Session> {
  const { store, config, clock } = context;
  const sink = await config.make();
  const before = context.row();
  try {
    const newest = store.changes.lastSeq();
    const asked = context.markOf(before, before.cursor);
    const call = <T>(work: (deadline: AbortSignal) => Promise<T>): Promise<T> =>
      withDeadline(signal, CALL_TIMEOUT_MS, work);
    const mark = usableMark(await call((deadline) => sink.open(asked, newest, deadline)));
    const isThere = mark !== null && mark.refill === undefined && isUpTo(context, before, sink, mark);
    const known = isThere ? { ...mark, cursor: before.cursor, at: 0 } : mark;
    const began = context.leased.write((writer) => {
      const now = context.row();
      // What the sink was given, and what was looked at since, is not true any more.
      if (now.generation !== before.generation || now.cursor !== before.cursor) {
        throw new SinkError('unavailable', 'delivery began again while the sink was opened');
      }
      if (mark !== null) writer.sinks.clearError(now.id);
      return reconcile(writer, now, known, clock.now());
    });
    logOpened(context, before, began.cursor, mark);
    const row = context.row();
    if (began.cursor === 0 && (row.backfillTo > 0 || row.takeOver)) {
      await call(async (deadline) => sink.fillBegins?.(context.markOf(row, 0), deadline));
    }
    return {
      sink,
      generation: began.generation,
      keepsMark: mark !== null,
      ahead: null,
      isSettled: sink.fillEnds === undefined,
      checkedAt: clock.now(),
    };
  } catch (error) {
    await context.closeSink(sink);
    throw error;
  }
}

/** Asks the store now and then whether it holds what it confirmed. @throws SinkError where it does not */
export async function recheck({ clock }: FeedContext, session: Session, signal: AbortSignal): Promise<void> {
  const now = clock.now();
  // A clock that was put back must not put the next look off.
  if (now >= session.checkedAt && now - session.checkedAt < RECHECK_MS) return;
  session.checkedAt = now;
  await withDeadline(signal, CALL_TIMEOUT_MS, async (deadline) => session.sink.recheck?.(deadline));
}

/**
 * Tells the store, once a session, that everything is delivered. Before the mirror is complete, what it does not hold may
 * live: then nothing is concluded from that.
 */
export async function settle(context: FeedContext, session: Session, signal: AbortSignal): Promise<void> {
  const { store } = context;
  if (session.isSettled) return;
  const { sink, isAll } = store.read(() => {
    const row = context.row();
    return { sink: row, isAll: store.watermark() !== null && row.cursor === store.changes.lastSeq() };
  });
  if (!isAll || sink.generation !== session.generation) return;
  const kept = store.sinks.parked(sink.id).filter(({ state }) => state !== 'delivered');
  const vbids = [...new Set(kept.map(({ vbid }) => vbid))];
  await withDeadline(signal, FILL_END_TIMEOUT_MS, async (deadline) =>
    session.sink.fillEnds?.(vbids, context.markOf(sink, sink.cursor), deadline),
  );
  session.isSettled = true;
}
