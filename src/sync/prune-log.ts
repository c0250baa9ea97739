import type { Logger } from '@catchword/base/log';
import { legOf } from '../store/rows/sink-legs.ts';
import { holdsLog } from '../store/rows/sink-rows.ts';
import type { Reader } from '../store/schema/reader.ts';
import type { KeeperWriter, LeasedKeeper } from '../store/schema/writers.ts';
import type { RunSettings } from './run-settings.ts';

/** Records per transaction: other writers wait for about 50 ms. */
const STEP = 10_000;
/** Transactions per call. A run seldom needs more for what it has written; a long log is pruned over several runs. */
const STEPS = 100;

/**
 * Drops records of the change log that are superseded, older than the retention, and confirmed by every sink. A broken
 * sink would hold the log forever: beyond the cap it is disabled, and the records that it misses are noted.
 * @param ageMs the time by which the age of records is judged; see `ageClock` @returns how many were dropped
 */
export function pruneLog(
  { changes, sinks }: Reader,
  leased: LeasedKeeper,
  { logRetentionMs, logCap }: Pick<RunSettings, 'logRetentionMs' | 'logCap'>,
  nowMs: number,
  log: Logger,
  ageMs: number,
): number {
  const lastSeq = changes.lastSeq();
  const before = ageMs - logRetentionMs;
  for (const sink of sinks.list().filter(holdsLog)) {
    const { id, name, cursor } = sink;
    const isOld = changes.lastBefore(cursor, before, nowMs, 1) > cursor;
    // Records that the sink still needs, and that were not pruned yet.
    const lag = lastSeq - Math.max(cursor, legOf(sink).to, changes.prunedTo());
    if (!isOld || lag <= logCap) continue;
    const error = `disabled: ${lag} changes behind, more than CATCHWORD_LOG_CAP`;
    leased.write((writer) => writer.sinks.disable(id, error, nowMs));
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
function pruneStep({ changes, sinks }: KeeperWriter, before: number, nowMs: number): number | null {
  const all = sinks.list();
  const floor = Math.min(changes.lastSeq(), ...all.filter(holdsLog).map(({ cursor }) => cursor));
  const from = changes.prunedTo();
  const upTo = Math.min(floor, changes.lastBefore(from, before, nowMs, STEP));
  if (upTo <= from) return null;
  const dropped = changes.prune(upTo);
  for (const sink of all) {
    const { id, cursor: after } = sink;
    if (!holdsLog(sink) && dropped.some((seq) => seq > after)) sinks.addGap({ id, after, upTo, at: nowMs });
  }
  return dropped.length;
}
