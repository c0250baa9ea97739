import type { Clock } from '../clock.ts';
import type { RecordChange } from './journal/change.ts';
import { type Entry, openJournal } from './journal/journal.ts';
import { createTimeline } from './journal/timeline.ts';
import type { SandboxOptions } from './options.ts';
import { createHoldings, type Holdings } from './state.ts';

/** What a sandbox holds, with the way to change it so that it is kept. */
export interface Keeping {
  readonly holdings: Holdings;
  readonly record: RecordChange;
  /** Nothing may be recorded after. */
  close(): void;
}

/** An answer that says that nothing was changed, as what was thrown does. */
function isRefusal(result: unknown): boolean {
  if (typeof result !== 'object' || result === null || !('status' in result)) return false;
  return typeof result.status === 'number' && result.status >= 400;
}

/**
 * Does changes again, in order. What one of them throws stops nothing: whoever asked for it the first time was answered
 * with that error, and the sandbox went on. What the reading of `entries` throws is thrown.
 */
export function repeatAll(entries: Iterable<Entry>, repeat: (entry: Entry) => void): void {
  for (const entry of entries) {
    try {
      repeat(entry);
    } catch {}
  }
}

/**
 * Holdings as the journal left them, where there is one; else new ones.
 * @throws CatchwordError CONFIG_INVALID for a journal that cannot be used
 */
export function keepHoldings(options: SandboxOptions, clock: Clock, signal: AbortSignal): Keeping {
  const { seed, items, users, db } = options;
  const given = { seed, items, users, at: clock.now() };
  const journal = db === null ? null : openJournal(db, given);
  const time = createTimeline(clock, journal?.beginning.at ?? given.at);
  const record: RecordChange = (change, act) => {
    const at = time.now();
    const takeBack = journal?.append({ at, change });
    let changed = false;
    try {
      const result = time.during(at, act);
      changed = !isRefusal(result);
      return result;
    } finally {
      if (!changed) takeBack?.();
    }
  };
  try {
    const holdings = createHoldings(options, { clock, time, record, signal });
    repeatAll(journal?.entries() ?? [], ({ at, change }) => time.during(at, () => holdings.repeat(change)));
    time.run();
    return { holdings, record, close: () => journal?.close() };
  } catch (error) {
    journal?.close();
    throw error;
  }
}
