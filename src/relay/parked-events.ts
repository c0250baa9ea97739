import type { RecordedChange } from '@catchword/catalog/event';
import type { SinkRow } from '../store/rows/sink-rows.ts';
import type { FeedContext } from './feed-context.ts';
import { ChangeEvent, deliveryOf } from './read-batch.ts';
import type { Session } from './sink-session.ts';

/*
 * Events that are not delivered in their turn:
 *
 *   refused for good ─► parked; later events of its product ─► waiting ─ skip or retry ─► ready ─► delivered
 *
 * Ready events are delivered before all others, below the cursor.
 */

/** How long a store is expected to be able to lose its newest events. */
const KEEP_DELIVERED_MS = 7 * 86_400_000;
/** After this many new refusals in a row, the cause is not the events. */
const MAX_REFUSALS = 20;
const REFUSED = 'SINK_REFUSED';

/** Delivers events that were parked and are ready now. @returns whether there were any */
export async function deliverReady(context: FeedContext, session: Session, sink: SinkRow): Promise<boolean> {
  const { store, clock, acks, leased } = context;
  const most = { events: context.mostEvents(session.batch), chars: session.batch.chars };
  const ready = store.sinks.ready(sink.id, most);
  const last = ready.at(-1);
  if (last === undefined) {
    context.search.retryEnded();
    return false;
  }
  acks.flush();
  const how = context.readOptions();
  const events = ready.map(({ change }) => new ChangeEvent(change, how));
  await session.deliver(deliveryOf(events), context.markAt(sink, sink.cursor, last.seq));
  const ack = acks.count(sink.cursor, events.length);
  leased.write(({ sinks }) => {
    if (!sinks.ack(sink, ack)) return;
    const seqs = ready.map(({ seq }) => seq);
    if (session.storesMark) sinks.setFreed(sink.id, seqs, 'delivered');
    else sinks.unpark(sink.id, seqs);
    sinks.forgetFreed(sink.id, clock.now() - KEEP_DELIVERED_MS);
  });
  return true;
}

/**
 * Parks changes that wait for an earlier one of their product. Call it before the cursor moves past them: a sink that
 * stores its own cursor moves it with the delivery.
 * @returns false if delivery was restarted meanwhile; then nothing is written
 */
export function parkWaiting(context: FeedContext, sink: SinkRow, waiting: readonly RecordedChange[]): boolean {
  const { leased, row } = context;
  const at = context.clock.now();
  const reason = 'waits for an earlier event of its product';
  const events = waiting.map((change) => ({ seq: change.seq, reason, at, change }));
  return leased.write(({ sinks }) => {
    const isCurrent = row().generation === sink.generation;
    if (isCurrent) sinks.parkWaiting(sink.id, events);
    return isCurrent;
  });
}

export function stopSink(
  { config, clock, log, leased }: FeedContext,
  sink: SinkRow,
  code: string,
  reason: string,
  before: number | null = null,
): void {
  leased.write(({ sinks }) => sinks.stop(sink.id, reason, clock.now(), before));
  log.error({ code, sink: config.name, reason }, 'sink is stopped; see npx catchword sink list');
}

/** Parks an event that was refused for good, or stops the sink before it, as configured. */
export function parkRefused(context: FeedContext, session: Session, event: ChangeEvent, reason: string): void {
  const { store, config, clock, log, leased, row, search } = context;
  const { seq, vbid } = event;
  const sink = row();
  const at = clock.now();
  const wasParked = store.sinks.stateOf(sink.id, seq) === 'ready';
  if (config.refused === 'stop' && !wasParked) {
    stopSink(context, sink, REFUSED, `event ${seq} of product ${vbid} was refused: ${reason}`, seq);
    return;
  }
  // An operator asked for events that were parked, so that the store refuses them again says nothing new about it.
  if (!wasParked && search.countRefusal() >= MAX_REFUSALS) {
    search.reset();
    stopSink(context, sink, REFUSED, `${MAX_REFUSALS} events in a row were refused: ${reason}`);
    return;
  }
  const isHopeless = wasParked && search.countRefusedAgain() >= MAX_REFUSALS;
  const isParked = leased.write(({ sinks }) => {
    // After a replay, it is delivered again.
    if (row().generation !== session.generation) return false;
    if (wasParked) sinks.refuseReady(sink.id, seq, reason, at);
    else sinks.park(sink.id, { seq, reason, at, change: event.change });
    if (isHopeless) sinks.refuseAllReady(sink.id, `not sent again: ${MAX_REFUSALS} before it were refused`, at);
    return true;
  });
  if (!isParked) return;
  search.found();
  log.error({ code: REFUSED, sink: config.name, seq, vbid, reason }, 'event was refused and is parked');
}
