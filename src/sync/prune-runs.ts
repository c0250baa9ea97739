import type { Clock } from '@catchword/base/clock';
import type { Reader } from '../store/schema/reader.ts';
import type { LeasedKeeper } from '../store/schema/writers.ts';

/*
 * Deletes runs that nothing needs any more. Their rows are small, but every look for an unfinished or held run reads all
 * of them, once a second while a browser shows the page.
 *
 * A kept change names its run: events say of what kind it was. Nothing counts the changes of a run, and an index on the
 * run of every change would cost more than it saves, so the log is read once for many runs.
 */

/** Rejected items kept, for people who look for the reason; milliseconds. They have bodies, so they cost more than runs. */
const KEEP_REJECTED_MS = 30 * 86_400_000;
/** Rejected items, or runs, per transaction: other writers wait for about 20 ms. */
const STEP = 1_000;
/** Records of the log that are read at once: about 10 ms. */
const READ_AT_ONCE = 25_000;
/** The log is read when so many runs wait to be deleted: of hourly runs, every four days. */
const WORTHWHILE = 100;

/** @returns deletes old runs and old rejected items of a mirror, and returns how many runs */
export function createRunPruning({ runs, changes }: Reader, clock: Clock) {
  /** Old runs that were kept the last time, because changes name them. */
  let kept = 0;

  /** Leaves out the runs that a kept change names. */
  async function unnamed(old: readonly number[]): Promise<number[]> {
    const left = new Set(old);
    for (let seq = 0; left.size > 0; ) {
      const found = changes.runsAfter(seq, READ_AT_ONCE);
      if (found === null) break;
      for (const id of found.runs) left.delete(id);
      seq = found.upTo;
      // Lets others work in between: the lease is renewed, decisions are noticed.
      await clock.sleep(0);
    }
    return [...left];
  }

  /**
   * @param ageMs the time by which ages are judged; see `ageClock`
   * @throws CatchwordError LEASE_LOST, or another error of the mirror; what was deleted before stays deleted
   */
  return async (leased: LeasedKeeper, retentionMs: number, ageMs: number): Promise<number> => {
    const rejectedBefore = ageMs - Math.min(KEEP_REJECTED_MS, retentionMs);
    while (leased.write((writer) => writer.runs.dropRejected(rejectedBefore, STEP)) === STEP) await clock.sleep(0);
    const old = runs.old(ageMs - retentionMs);
    if (old.length - kept < WORTHWHILE) return 0;
    // Only a keeper records changes, so none can name one of these runs meanwhile.
    const gone = await unnamed(old);
    for (let from = 0; from < gone.length; from += STEP) {
      leased.write((writer) => writer.runs.drop(gone.slice(from, from + STEP)));
      await clock.sleep(0);
    }
    kept = old.length - gone.length;
    return gone.length;
  };
}
