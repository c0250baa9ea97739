import type { Clock } from '../clock.ts';
import type { RecordChange } from './change.ts';
import { createHoldings, type Holdings } from './holdings.ts';
import { openJournal } from './journal.ts';
import type { SandboxOptions } from './options.ts';
import { createTimeline } from './timeline.ts';

/** What a sandbox holds, with the way to change it so that it is kept. */
export interface Keeping {
  readonly holdings: Holdings;
  readonly record: RecordChange;
  /** Nothing may be recorded after. */
  close(): void;
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
    journal?.append({ at, change });
    return time.during(at, act);
  };
  try {
    const holdings = createHoldings(options, { clock, time, record, signal });
    for (const { at, change } of journal?.entries() ?? []) time.during(at, () => holdings.repeat(change));
    time.run();
    return { holdings, record, close: () => journal?.close() };
  } catch (error) {
    journal?.close();
    throw error;
  }
}
