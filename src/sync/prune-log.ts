import type { Logger } from '../log.ts';
import type { Leased } from '../store/lease.ts';
import type { Reader } from '../store/reader.ts';
import type { SinkRow } from '../store/sinks.ts';
import type { KeeperWriter } from '../store/writers.ts';

export interface PruneSettings {
  /** Superseded records are kept for so long; milliseconds. */
  readonly logRetentionMs: number;
  /** A sink that is further behind, in records, no longer holds the log beyond its retention. */
  readonly logCap: number;
}

/** Records that are looked through in one transaction: other writers wait for about 50 ms. */
const STEP = 10_000;
/** Of one call. After a run there is seldom more than it has written; a long log is caught up with in several runs. */
const STEPS = 100;

/**
 * How many records the log keeps for a sink: one that is being filled needs what came after its filling, and what was
 * pruned is kept for nobody.
 */
function lagOf({ cursor, backfillTo }: SinkRow, prunedTo: number, lastSeq: number): number {
  return lastSeq - Math.max(cursor, backfillTo, prunedTo);
}

function holdsLog({ configured, state }: SinkRow): boolean {
  return configured && state !== 'disabled';
}

/**
 * Drops records of the change log that are superseded, older than the retention, and confirmed by every sink. Each
 * product's newest record stays, so that the log never says less than what the mirror is: it is what a new sink is filled
 * from, and what a reader who was away for long ends with.
 *
 * A sink that nobody mends would keep everything for ever: beyond the cap it is disabled, and what it misses is noted.
 *
 * @param ageMs the clock by which the age of records is counted; see `ageClock`
 * @returns how many records were dropped
 */
export function pruneLog(
  store: Reader,
  leased: Leased<KeeperWriter>,
  { logRetentionMs, logCap }: PruneSettings,
  nowMs: number,
  log: Logger,
  ageMs = nowMs,
): number {
  const lastSeq = store.changes.lastSeq();
  const before = ageMs - logRetentionMs;
  for (const sink of store.sinks.list()) {
    const { id, name, cursor } = sink;
    const isOld = store.changes.lastBefore(cursor, before, nowMs, 1) > cursor;
    const lag = lagOf(sink, store.changes.prunedTo(), lastSeq);
    if (!holdsLog(sink) || !isOld || lag <= logCap) continue;
    const error = `disabled: ${lag} changes behind, more than CATCHWORD_LOG_CAP`;
    leased.write(({ sinks }) => sinks.disable(id, error, nowMs));
    const fields = { code: 'SINK_DISABLED', sink: name, cursor, lastSeq, cap: logCap };
    log.error(fields, 'sink is disabled: the change log does not wait for it');
  }
  let dropped = 0;
  for (let step = 0; step < STEPS; step++) {
    const found = leased.write((writer) => pruneStep(writer, before, nowMs));
    if (found === null) break;
    dropped += found;
  }
  return dropped;
}

/** All in one transaction: an operator may begin a replay between two of them. @returns null when there is nothing more */
function pruneStep(writer: KeeperWriter, before: number, nowMs: number): number | null {
  const needed = writer.sinks.list().filter(holdsLog);
  const floor = Math.min(writer.changes.lastSeq(), ...needed.map(({ cursor }) => cursor));
  const from = writer.changes.prunedTo();
  const to = Math.min(floor, writer.changes.lastBefore(from, before, nowMs, STEP));
  return to <= from ? null : pruneTo(writer, to, nowMs);
}

function pruneTo(writer: KeeperWriter, to: number, nowMs: number): number {
  const dropped = writer.changes.prune(to);
  for (const sink of writer.sinks.list()) {
    const { id, cursor: after } = sink;
    if (!holdsLog(sink) && dropped.some((seq) => seq > after)) writer.sinks.addGap(id, { after, upTo: to, at: nowMs });
  }
  return dropped.length;
}
