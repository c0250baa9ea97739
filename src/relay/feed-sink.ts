import { backoffMs } from '../backoff.ts';
import type { RecordedChange } from '../catalog/event.ts';
import { LONGEST_PAUSE_MS } from '../clock.ts';
import { hasCode, isMirrorLost } from '../errors.ts';
import type { SinkRow } from '../store/sinks.ts';
import { withDeadline } from './deadline.ts';
import { createFeedContext, type FeedOptions, sinkCode } from './feed-context.ts';
import { createMeter } from './rate-meter.ts';
import { type Batch, recordAt, sinkEvent } from './read-batch.ts';
import { isSinkError, type Mark, type Sink, type SinkEvent } from './sink.ts';
import { announcePause, type PausedSink, untilRetry } from './sink-pause.ts';
import { CALL_TIMEOUT_MS, openSession, recheck, type Session, settle } from './sink-session.ts';

/** How often a sink that has everything, or is not running, looks for news. */
const POLL_MS = 200;
const CEILING_MS = 60_000;
/** So long a store is believed to be able to lose its tail. */
const KEEP_DELIVERED_MS = 7 * 86_400_000;
/** How far the mirror's cursor may be behind a sink that keeps its own: each note of it waits for the disk. */
const NOTE_MS = 100;
/** One refusal after another, and nothing accepted in between: then it is not the events. */
const MAX_REFUSALS = 20;
const REFUSED = 'SINK_REFUSED';

/** Another relay has taken over, or this process has lost the mirror: no sink can be fed from here. */
const isFatal = (error: unknown): boolean => isMirrorLost(error) || hasCode(error, 'LEASE_LOST');

/**
 * Feeds one sink until `signal` aborts. Sinks know nothing of each other: each has a loop of its own.
 *
 * ```
 *   not running? ─► wait       set free? ─► deliver those    else ─► read after the cursor ─► deliver ─► ack
 * ```
 * The cursor, in SQLite, moves only after the sink has confirmed. While a batch is on its way the next one is read.
 * What operators decide (pause, replay, skip) they write into the mirror, where each turn of the loop looks first.
 *
 * @param stopping aborts when no further batch is to be begun; `signal` aborts what is on its way as well
 * @throws CatchwordError LEASE_LOST when another relay has taken over
 */
export async function feedSink(options: FeedOptions, stopping: AbortSignal, signal: AbortSignal): Promise<void> {
  const { store, config, clock, log, leased } = options;
  const context = createFeedContext(options);
  const { history, row, markOf, shown } = context;
  const paused: PausedSink = { row, leased, clock, log };
  const meter = createMeter(clock);
  let session: Session | undefined;
  /** Confirmed, and not noted yet. */
  let pending: { readonly sink: SinkRow; readonly cursor: number; readonly delivered: number } | null = null;
  let notedAt = clock.now();
  let failures = 0;
  let refusals = 0;
  /** Events that are with the sink now. */
  let inHand: readonly SinkEvent[] = [];
  /** While an event that is refused is looked for, up to `until`, batches are smaller. */
  let search = { limit: Number.POSITIVE_INFINITY, until: 0 };

  async function deliver(sink: Sink, events: readonly SinkEvent[], mark: Mark): Promise<void> {
    inHand = events;
    await withDeadline(signal, CALL_TIMEOUT_MS, (deadline) => sink.deliver(events, mark, deadline));
    inHand = [];
    refusals = 0;
  }

  /** @returns false where delivery has begun anew meanwhile */
  function note(): boolean {
    if (pending === null) return true;
    const { sink, cursor, delivered } = pending;
    const at = clock.now();
    const { cursor: before, backfillTo } = row();
    const noted = leased.write(({ sinks }) => sinks.ack(sink, { cursor, delivered, rate: meter.rate(), at }));
    if (noted && before < backfillTo && cursor >= backfillTo) log.info({ sink: config.name, cursor }, 'backfill ended');
    pending = null;
    notedAt = at;
    return noted;
  }

  async function close(): Promise<void> {
    const open = session;
    session = undefined;
    inHand = [];
    if (open !== undefined) await context.closeSink(open.sink);
    note();
  }

  function read(sink: SinkRow, target: Sink, cursor: number): Batch | null {
    return context.read(sink, target, cursor, search.limit);
  }

  /** What cannot be read is met again by the next turn, when nothing is on its way any more. */
  function readAhead(sink: SinkRow, target: Sink, after: number): Session['ahead'] {
    try {
      return { after, batch: read(sink, target, after) };
    } catch {
      return null;
    }
  }

  /** Events that had been parked and are free now; they come before everything else. */
  async function deliverReady(sink: SinkRow, { sink: target }: Session): Promise<boolean> {
    const { events: most, chars } = target.batch;
    const ready = store.sinks.ready(sink.id, { events: Math.min(most, search.limit), chars });
    const last = ready.at(-1);
    if (last === undefined) return false;
    note();
    const how = context.reading();
    const events = ready.map(({ change }) => sinkEvent(change, how));
    await deliver(target, events, markOf(sink, sink.cursor, last.seq));
    meter.count(events.length);
    const noted = leased.write(({ sinks }) => {
      const ack = { cursor: sink.cursor, delivered: events.length, rate: meter.rate(), at: clock.now() };
      if (!sinks.ack(sink, ack)) return false;
      const seqs = ready.map(({ seq }) => seq);
      if (session?.keepsMark) sinks.setFreed(sink.id, seqs, 'delivered');
      else sinks.unpark(sink.id, seqs);
      sinks.forgetFreed(sink.id, clock.now() - KEEP_DELIVERED_MS);
      return true;
    });
    if (!noted) await close();
    return true;
  }

  /**
   * Sets changes aside that wait for an earlier one of their product, before the cursor of the sink, which is kept there
   * with what it is sent, can pass them.
   * @returns false where the operator has decided something meanwhile: then nothing is written
   */
  function setAside(sink: SinkRow, waiting: readonly RecordedChange[]): boolean {
    const at = clock.now();
    const reason = 'waits for an earlier event of its product';
    return leased.write(({ sinks }) => {
      if (row().generation !== sink.generation) return false;
      sinks.parkWaiting(
        sink.id,
        waiting.map((change) => ({ seq: change.seq, reason, at, change })),
      );
      return true;
    });
  }

  async function deliverNext(sink: SinkRow, current: Session): Promise<boolean> {
    const batch = current.ahead?.after === sink.cursor ? current.ahead.batch : read(sink, current.sink, sink.cursor);
    current.ahead = null;
    if (batch === null) return false;
    const { events, waiting, to } = batch;
    if (waiting.length > 0 && !setAside(sink, waiting)) return true;
    let ahead: Session['ahead'] = null;
    if (events.length > 0) {
      const delivering = deliver(current.sink, events, markOf(sink, to));
      // A failure is looked at below; until then it must not count as one that nobody looks at.
      delivering.catch(() => {});
      // Started calls get their turn before this thread is busy with reading.
      await new Promise((resolve) => setImmediate(resolve));
      ahead = waiting.length > 0 || stopping.aborted ? null : readAhead(sink, current.sink, to);
      await delivering;
      current.ahead = ahead;
    }
    const at = clock.now();
    meter.count(events.length);
    if (to >= search.until) search = { limit: Number.POSITIVE_INFINITY, until: 0 };
    pending = { sink, cursor: to, delivered: events.length + (pending?.delivered ?? 0) };
    const hasMore = (ahead?.batch ?? null) !== null;
    const mayWait = current.keepsMark && hasMore && Math.abs(at - notedAt) < NOTE_MS;
    if (mayWait) return true;
    if (!note()) await close();
    return true;
  }

  /** A single event was refused for good: it is set aside, or the sink stops before it. */
  function refuse(sink: SinkRow, { seq, vbid }: SinkEvent, reason: string): void {
    const at = clock.now();
    const wasParked = store.sinks.stateOf(sink.id, seq) === 'ready';
    if (config.refused === 'stop' && !wasParked) {
      stop(sink, REFUSED, `event ${seq} of product ${vbid} was refused: ${reason}`, seq);
      return;
    }
    if (++refusals >= MAX_REFUSALS) {
      refusals = 0;
      stop(sink, REFUSED, `${MAX_REFUSALS} events in a row were refused: ${reason}`);
      return;
    }
    const isParked = leased.write(({ sinks }) => {
      // A replay judges it again.
      if (row().generation !== session?.generation) return false;
      if (wasParked) sinks.refuseReady(sink.id, seq, reason, at);
      else sinks.park(sink.id, { seq, reason, at, change: recordAt(history, seq) });
      return true;
    });
    if (!isParked) return;
    search = { limit: Number.POSITIVE_INFINITY, until: 0 };
    log.error({ code: REFUSED, sink: config.name, seq, vbid, reason }, 'event was refused, and is parked');
  }

  function stop(sink: SinkRow, code: string, reason: string, before: number | null = null): void {
    leased.write(({ sinks }) => sinks.stop(sink.id, reason, clock.now(), before));
    log.error({ code, sink: config.name, reason }, 'sink is stopped; see npx catchword sink list');
  }

  /** Returns when it is time to go on. */
  async function failed(error: unknown): Promise<void> {
    if (isFatal(error)) throw error;
    note();
    if (signal.aborted) return;
    const reason = shown(error);
    const sink = row();
    const failure = isSinkError(error) ? error.failure : 'unavailable';
    // With nothing in hand it is the sink that cannot be opened, and no event that it refuses.
    if (failure === 'refused' && inHand.length > 0) {
      const events = inHand;
      const [first] = events;
      const until = events.at(-1)?.seq ?? 0;
      inHand = [];
      if (events.length > 1) search = { limit: Math.floor(events.length / 2), until: Math.max(until, search.until) };
      else if (first !== undefined) refuse(sink, first, reason);
      return;
    }
    await close();
    if (failure === 'gone' || hasCode(error, 'SINK_CONFLICT')) {
      stop(sink, sinkCode(error), reason);
      return;
    }
    failures++;
    const asked = isSinkError(error) ? (error.retryAfterMs ?? 0) : 0;
    const askedMs = Number.isFinite(asked) ? Math.min(LONGEST_PAUSE_MS, asked) : 0;
    const pauseMs = Math.max(
      askedMs,
      backoffMs(failures, () => clock.random(), CEILING_MS),
    );
    const now = clock.now();
    leased.write(({ sinks }) => sinks.fail(sink.id, reason, now, now + Math.round(pauseMs)));
    const fields = { code: sinkCode(error), sink: config.name, reason, failures, pauseMs: Math.round(pauseMs) };
    log.warn(fields, 'sink failed, trying again');
    await untilRetry(paused, stopping);
  }

  /** @returns whether there was something to do */
  async function turn(): Promise<boolean> {
    leased.check();
    const sink = row();
    if (sink.state !== 'running') {
      await close();
      return false;
    }
    if (session !== undefined && session.generation !== sink.generation) await close();
    session ??= await openSession(context, signal);
    const current = session;
    await recheck(context, current, signal);
    const now = row();
    if (now.generation !== current.generation) return true;
    const at = pending === null ? now : { ...now, cursor: pending.cursor };
    if ((await deliverReady(at, current)) || (await deliverNext(at, current))) return true;
    if (now.error !== null) leased.write(({ sinks }) => sinks.clearError(now.id));
    await settle(context, current, signal);
    return false;
  }

  /** What went wrong while dealing with what went wrong concerns this sink alone, too. */
  async function deal(error: unknown): Promise<void> {
    try {
      await failed(error);
    } catch (secondary) {
      if (isFatal(secondary)) throw secondary;
      const code = sinkCode(secondary);
      log.error({ code, sink: config.name, reason: shown(secondary) }, 'sink failed, and so did noting it');
      // What it confirmed and could not be noted, it tells when it is opened again.
      pending = null;
      await close();
      await clock.sleep(CEILING_MS / 10, stopping).catch(() => {});
    }
  }

  try {
    announcePause(paused);
    await untilRetry(paused, stopping);
    while (!stopping.aborted) {
      try {
        const busy = await turn();
        if (failures > 0 && session !== undefined) log.info({ sink: config.name, failures }, 'sink recovered');
        failures = 0;
        if (!busy) await clock.sleep(POLL_MS, stopping).catch(() => {});
      } catch (error) {
        await deal(error);
      }
    }
  } finally {
    await close();
  }
}
