import { createLineBuffers } from '@catchword/sink-kit/line-buffers';
import { type Mark, type Opened, type Sink, SinkError, type SinkEvent } from '@catchword/sink-kit/sink';
import { isSameMark, markSchema } from '@catchword/sink-kit/stored-mark';
import { withTimeout } from '@catchword/sink-kit/with-timeout';
import { wrapListed } from '@catchword/sink-kit/wrap-listed';
import * as z from 'zod';
import { isFill, legOf } from '../store/rows/sink-legs.ts';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import { createExit } from './exit-limit.ts';
import type { FeedContext } from './feed-context.ts';
import type { Batch, Delivery } from './read-batch.ts';
import { hasLostPlace, isOfThisHistory, resume } from './resume-position.ts';

/**
 * For safety: sinks have shorter deadlines of their own. When the relay stops, it waits for deliveries only, so that they
 * are not repeated; it abandons every other call at once.
 */
const CALL_TIMEOUT_MS = 120_000;
/** A store may have to read all that it has. For safety: stores have shorter deadlines for their statements. */
const LIST_TIMEOUT_MS = 1_800_000;
const RECHECK_MS = 300_000;

const openedSchema = markSchema.extend({ refill: z.string().optional() }).nullable();

/** What decides which changes the sink gets: what was delivered is judged as what is delivered next. */
function targetOf(sink: Sink) {
  return { batch: sink.batch, endsFills: sink.apply !== undefined };
}

/** Where the mirror believes that a store is: if that has not seen the last leg, where this one starts from. */
function believedPlace(row: SinkRow, mark: Mark): SinkRow {
  const leg = legOf(row);
  if (isFill(leg) || row.legs.length < 2 || mark.generation >= leg.generation) return row;
  return { ...row, cursor: leg.from, legs: row.legs.slice(0, -1) };
}

/** Whether every change between the sink's mark and its confirmed cursor was parked or skipped, or is hidden by its view. */
function hasAllUpTo(context: FeedContext, row: SinkRow, sink: Sink, mark: Mark): boolean {
  const { store } = context;
  const { cursor } = mark;
  if (!isOfThisHistory(store, mark) || mark.generation < legOf(row).generation || cursor >= row.cursor) return false;
  // Ready events are delivered separately.
  const ready = store.sinks.freed(row.id, 'ready').map(({ seq }) => seq);
  for (let at = cursor; at < row.cursor; ) {
    const batch = context.read(row, { ...targetOf(sink), nextBuffer: null }, at, ready);
    const [first] = batch?.events() ?? [];
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

/** Whether a fill begins because the store lost what it had: then what it takes away was not judged. */
function isUnjudgedFill(before: SinkRow, mark: Opened | null, sink: Sink): boolean {
  if (mark === null || sink.apply !== undefined) return false;
  const isEarlier = mark.generation < legOf(before).generation;
  return before.cursor > 0 && (mark.refill !== undefined || isEarlier || hasLostPlace(before, mark));
}

/** Whether a fill begins that has something to deliver, or to replace. */
function isFillBegun({ row }: FeedContext): boolean {
  const now = row();
  const leg = legOf(now);
  return now.cursor === 0 && isFill(leg) && (leg.to > 0 || leg.what === 'replacement');
}

/**
 * Opens the sink.
 * @returns its row; whether it stores its own mark, so that the mirror need not write every ack; and the mark that it has.
 * Null if it is held before a fill
 */
async function open(
  context: FeedContext,
  sink: Sink,
): Promise<{ row: SinkRow; storesMark: boolean; mark: Mark } | null> {
  const { store, clock, stopping, leased } = context;
  const before = context.row();
  const newest = store.changes.lastSeq();
  const believed = context.markAt(before, before.cursor);
  const opened = await withTimeout(CALL_TIMEOUT_MS, (deadline) => sink.open(believed, newest, deadline), stopping);
  // The module of a custom sink may return anything.
  const parsed = openedSchema.safeParse(opened);
  if (!parsed.success) throw new SinkError('misconfigured', 'the sink returned an invalid mark from open()');
  const mark = parsed.data as Opened | null;
  if (isUnjudgedFill(before, mark, sink) && (await createExit(context).holdIfTooMuchLeaves(before))) return null;
  const place = mark === null ? before : believedPlace(before, mark);
  const hasAll = mark !== null && mark.refill === undefined && hasAllUpTo(context, place, sink, mark);
  const known = hasAll ? { ...mark, cursor: place.cursor, at: 0 } : mark;
  const row = leased.write((writer) => {
    const now = context.row();
    if (now.generation !== before.generation || now.cursor !== before.cursor) {
      throw new SinkError('unavailable', 'delivery was restarted while the sink was being opened');
    }
    if (mark !== null) writer.sinks.clearError(now.id);
    resume(writer, now, known, clock.now());
    const { fillEnd } = context.row();
    // A store that was set back may have again what the end of its fill removed.
    const isBefore = mark !== null && fillEnd !== null && mark.cursor <= fillEnd;
    if (isBefore || isFillBegun(context)) writer.sinks.noteFillEnd(now.id, null);
    return context.row();
  });
  logOpened(context, before, row.cursor, mark);
  const start = context.markAt(row, 0);
  if (!isFillBegun(context) || isSameMark(mark, start))
    return { row, storesMark: mark !== null, mark: mark ?? believed };
  leased.check();
  await withTimeout(CALL_TIMEOUT_MS, async (deadline) => sink.apply?.([], [], start, deadline), stopping);
  return { row, storesMark: mark !== null, mark: start };
}

/** Lets the sink work on the next batch while it waits for its store, on one batch at a time. */
function createPreparation({ config, log, errorText }: FeedContext, sink: Sink) {
  let isPreparing = false;
  return ({ lines, events }: Delivery): void => {
    if (lines !== null || isPreparing || sink.prepareNext === undefined) return;
    isPreparing = true;
    // Frozen, because these events are still to be delivered.
    sink
      .prepareNext(Object.freeze(events()))
      .catch((error: unknown) => {
        log.debug({ sink: config.name, reason: errorText(error) }, 'preparing a batch failed');
      })
      .finally(() => {
        isPreparing = false;
      });
  };
}

/** An open sink. */
export type Session = NonNullable<Awaited<ReturnType<typeof openSession>>>;

/**
 * Opens a sink, and decides from the mirror's cursor and the sink's mark where to continue.
 * @returns null if the sink is held
 * @throws what the sink throws; CatchwordError SINK_CONFLICT, LEASE_LOST
 */
export async function openSession(context: FeedContext) {
  const { config, clock, leased, stopping, signal } = context;
  const sink = await withTimeout(CALL_TIMEOUT_MS, () => config.make(), stopping);
  const close = (): Promise<void> => context.closeSink(sink);
  const opened = await open(context, sink).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  if (opened === null) {
    await close();
    return null;
  }
  const { generation } = opened.row;
  let checkedAt = clock.now();
  let stored = opened.mark;

  const session = {
    ...targetOf(sink),
    // Each session has memory of its own: a call of an earlier session that hangs may still read its memory.
    nextBuffer: sink.deliverLines === undefined ? null : createLineBuffers(),
    generation,
    storesMark: opened.storesMark,
    /** The batch after `after`, read while the one before it was delivered. */
    ahead: null as { readonly after: number; readonly batch: Batch | null } | null,
    /** The events of a call of `deliver` that is running or has failed. */
    inFlight: null as Delivery | null,
    /** How many products a call of `apply` has that is running or has failed. */
    applying: 0,
    close,
    ...createExit(context),
    prepareNext: createPreparation(context, sink),
    /** Compares and repairs the store; `apply` below repairs it between two deliveries. */
    listed: wrapListed(sink, (_signal, work) => withTimeout(LIST_TIMEOUT_MS, work, stopping)),
    /** The last mark that the store got. */
    stored: (): Mark => stored,
    /** Whether the store has what a fill makes of it. */
    hasFillEnded: ({ cursor, legs, fillEnd }: SinkRow): boolean =>
      cursor >= legOf({ legs }).to && (sink.apply === undefined || fillEnd !== null),

    deliver: async (delivery: Delivery, mark: Mark): Promise<void> => {
      // This process may have been suspended since the turn began. A store that cannot compare marks has only this check.
      leased.check();
      const { lines, events, size } = delivery;
      session.inFlight = delivery;
      const call = async (deadline: AbortSignal): Promise<void> =>
        lines === null ? sink.deliver(events(), mark, deadline) : sink.deliverLines?.(lines, mark, deadline);
      await withTimeout(CALL_TIMEOUT_MS, call, signal);
      stored = mark;
      session.inFlight = null;
      context.search.accepted(sink.batch.events);
      const isFast = context.batchSize.delivered(size, sink.batch.events);
      if (isFast) context.log.info({ sink: config.name }, 'sink gets full batches again');
    },

    /** Makes products as the events say, removes the extra ones, and leaves the mark in the store. */
    apply: async (events: readonly SinkEvent[], extra: readonly string[], mark: Mark): Promise<void> => {
      leased.check();
      session.applying = events.length + extra.length;
      await session.listed.apply?.(events, extra, mark, stopping);
      session.applying = 0;
      stored = mark;
    },

    /** Checks every few minutes that the store still holds what it confirmed. @throws SinkError if it does not */
    recheck: async (): Promise<void> => {
      const now = clock.now();
      const wasClockSetBack = now < checkedAt;
      if (!wasClockSetBack && now - checkedAt < RECHECK_MS) return;
      checkedAt = now;
      await withTimeout(CALL_TIMEOUT_MS, async (deadline) => sink.recheck?.(deadline), stopping);
    },
  };
  return session;
}
