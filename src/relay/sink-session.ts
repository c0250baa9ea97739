import * as z from 'zod';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import { needsFullRun } from '../store/rows/source-state.ts';
import { replayText } from './check-text.ts';
import { createExit, holdFillEnd, writeIf } from './exit-limit.ts';
import { countExpected } from './expected-products.ts';
import type { FeedContext } from './feed-context.ts';
import { createLineBuffers } from './line-buffers.ts';
import type { Batch, Delivery } from './read-batch.ts';
import { isOfThisHistory, reconcile } from './resume-position.ts';
import { type Filled, type Mark, type Opened, type Sink, SinkError, type SinkEvent } from './sink.ts';
import { transitionAt } from './store-contents.ts';
import { markSchema } from './stored-mark.ts';
import { answerWithin } from './with-timeout.ts';
import { wrapListed } from './wrap-listed.ts';

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
  return { batch: sink.batch, endsFills: sink.filled !== undefined };
}

/** Whether every change between the sink's mark and its confirmed cursor was parked or skipped. */
function hasAllUpTo(context: FeedContext, row: SinkRow, sink: Sink, mark: Mark): boolean {
  const { store } = context;
  const { cursor } = mark;
  if (!isOfThisHistory(store, mark) || mark.generation < row.beganGeneration || cursor >= row.cursor) return false;
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
  if (mark === null || sink.filled !== undefined) return false;
  return before.cursor > 0 && (mark.refill !== undefined || mark.generation < before.beganGeneration);
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
  const opened = await answerWithin(CALL_TIMEOUT_MS, (deadline) => sink.open(believed, newest, deadline), stopping);
  // The module of a custom sink may return anything.
  const parsed = openedSchema.safeParse(opened);
  if (!parsed.success) throw new SinkError('misconfigured', 'the sink returned an invalid mark from open()');
  const mark = parsed.data as Opened | null;
  if (isUnjudgedFill(before, mark, sink) && (await createExit(context).holdIfTooMuchLeaves(before))) return null;
  const hasAll = mark !== null && mark.refill === undefined && hasAllUpTo(context, before, sink, mark);
  const known = hasAll ? { ...mark, cursor: before.cursor, at: 0 } : mark;
  const row = leased.write((writer) => {
    const now = context.row();
    if (now.generation !== before.generation || now.cursor !== before.cursor) {
      throw new SinkError('unavailable', 'delivery was restarted while the sink was being opened');
    }
    if (mark !== null) writer.sinks.clearError(now.id);
    reconcile(writer, now, known, clock.now());
    return context.row();
  });
  logOpened(context, before, row.cursor, mark);
  const isTransition = transitionAt(store.sinks.views(row.id), row, 0) !== undefined;
  // A transition does not deliver what the store has already.
  if (row.cursor === 0 && !isTransition && (row.backfillTo > 0 || row.takeOver)) {
    const start = context.markAt(row, 0);
    leased.check();
    await answerWithin(CALL_TIMEOUT_MS, async (deadline) => sink.fillBegins?.(start, deadline), stopping);
    return { row, storesMark: mark !== null, mark: start };
  }
  return { row, storesMark: mark !== null, mark: mark ?? believed };
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

/** What the store has before the end of a fill; null if no fill is to end. */
async function filledOf({ stopping }: FeedContext, sink: Sink, kept: readonly string[]): Promise<Filled | null> {
  const call = async (deadline: AbortSignal) => (await sink.filled?.(kept, deadline)) ?? null;
  return await answerWithin(LIST_TIMEOUT_MS, call, stopping);
}

/**
 * Checks that a fill has delivered what the mirror has, before what it did not deliver is removed.
 * @param unsure products whose events wait for a decision
 */
async function requireFilled(context: FeedContext, row: SinkRow, { delivered }: Filled, unsure: number): Promise<void> {
  const expected = await countExpected(context, row);
  // Deliveries have noted them.
  context.noteViewFailures(false);
  if (delivered + unsure >= expected) return;
  const found = `the store has ${delivered} of the ${expected} products that its fill has delivered, so nothing is removed`;
  const why = 'another program has changed it, or it takes two keys for one';
  throw new SinkError('misconfigured', `${found}: ${why}. ${replayText(row.name)}`);
}

/** An open sink. */
export type Session = NonNullable<Awaited<ReturnType<typeof openSession>>>;

/**
 * Opens a sink, and decides from the mirror's cursor and the sink's mark where to continue.
 * @returns null if the sink is held
 * @throws what the sink throws; CatchwordError SINK_CONFLICT, LEASE_LOST
 */
export async function openSession(context: FeedContext) {
  const { store, config, clock, leased, stopping, signal } = context;
  const sink = await answerWithin(CALL_TIMEOUT_MS, () => config.make(), stopping);
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
  let hasFillEnded = sink.fillEnds === undefined;
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
    close,
    ...createExit(context),
    prepareNext: createPreparation(context, sink),
    /** Compares and repairs the store; `apply` below repairs it between two deliveries. */
    listed: wrapListed(sink, (_signal, work) => answerWithin(LIST_TIMEOUT_MS, work, stopping)),
    /** The last mark that the store got. */
    stored: (): Mark => stored,
    hasFillEnded: (): boolean => hasFillEnded,

    deliver: async (delivery: Delivery, mark: Mark): Promise<void> => {
      // This process may have been suspended since the turn began. A store that cannot compare marks has only this check.
      leased.check();
      const { lines, events, size } = delivery;
      session.inFlight = delivery;
      const call = async (deadline: AbortSignal): Promise<void> =>
        lines === null ? sink.deliver(events(), mark, deadline) : sink.deliverLines?.(lines, mark, deadline);
      await answerWithin(CALL_TIMEOUT_MS, call, signal);
      stored = mark;
      session.inFlight = null;
      context.search.accepted(sink.batch.events);
      const isFast = context.batchSize.delivered(size, sink.batch.events);
      if (isFast) context.log.info({ sink: config.name }, 'sink gets full batches again');
    },

    /** Makes products as the events say, removes the extra ones, and leaves the mark in the store. */
    apply: async (events: readonly SinkEvent[], extra: readonly string[], mark: Mark): Promise<void> => {
      leased.check();
      await session.listed.apply?.(events, extra, mark, stopping);
      stored = mark;
    },

    /** Checks every few minutes that the store still holds what it confirmed. @throws SinkError if it does not */
    recheck: async (): Promise<void> => {
      const now = clock.now();
      const wasClockSetBack = now < checkedAt;
      if (!wasClockSetBack && now - checkedAt < RECHECK_MS) return;
      checkedAt = now;
      await answerWithin(CALL_TIMEOUT_MS, async (deadline) => sink.recheck?.(deadline), stopping);
    },

    /**
     * Tells the sink, once per session, that everything is delivered. Until the mirror is complete it does not: products
     * that the mirror does not have yet may exist.
     */
    endFill: async (): Promise<void> => {
      if (hasFillEnded) return;
      const { row, hasAll } = store.read(() => {
        const row = context.row();
        return { row, hasAll: row.cursor === store.changes.lastSeq() && !needsFullRun(store) };
      });
      if (!hasAll || row.generation !== generation) return;
      const kept = store.sinks.parked(row.id).filter(({ state }) => state !== 'delivered');
      const vbids = [...new Set(kept.map(({ vbid }) => vbid))];
      const mark = context.markAt(row, row.cursor);
      const filled = await filledOf(context, sink, vbids);
      if (filled !== null) {
        await requireFilled(context, row, filled, vbids.length);
        if (holdFillEnd(context, row, filled)) return;
      }
      leased.check();
      await answerWithin(LIST_TIMEOUT_MS, async (deadline) => sink.fillEnds?.(vbids, mark, deadline), stopping);
      stored = mark;
      hasFillEnded = true;
      if (row.held?.why === 'fill') writeIf(context, row, ({ sinks }) => sinks.release(row.id));
    },
  };
  return session;
}
