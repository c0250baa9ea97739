import type { Logger } from '../log.ts';
import type { Leased } from '../store/lease.ts';
import type { Reader } from '../store/reader.ts';
import type { SinkRow } from '../store/sinks.ts';
import type { KeeperWriter } from '../store/writers.ts';

export interface PruneSettings {
  /** How long to keep superseded records; milliseconds. */
  readonly logRetentionMs: number;
  /** A sink that is more records behind does not hold the log beyond its retention. */
  readonly logCap: number;
}

/** Records per transaction: other writers wait for about 50 ms. */
const STEP = 10_000;
/** Transactions per call. A run seldom needs more for what it has written; a long log is pruned over several runs. */
const STEPS = 100;

/**
 * How many records the log keeps for a sink: those after its cursor, or after its backfill, that were not pruned yet.
 */
function lagOf({ cursor, backfillTo }: SinkRow, prunedTo: number, lastSeq: number): number {
  return lastSeq - Math.max(cursor, backfillTo, prunedTo);
}

function holdsLog({ configured, state }: SinkRow): boolean {
  return configured && state !== 'disabled';
}

/**
 * Drops records of the change log that are superseded, older than the retention, and confirmed by every sink. Keeps
 * each product's newest record: new sinks are filled from these, and readers who were away for long end up with the
 * mirror's state.
 *
 * A broken sink would hold the log forever: beyond the cap it is disabled, and the records that it misses are noted.
 *
 * @param ageMs the time by which the age of records is judged; see `ageClock`
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

/** Reads the cursors in the transaction that prunes, because a replay may start in between. @returns null when done */
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
