import type { RecordChange } from './journal/change.ts';
import { openJournal } from './journal/journal.ts';
import { createTimeline } from './journal/timeline.ts';
import type { SandboxOptions } from './options.ts';
import { createState } from './state.ts';

/**
 * Creates the state of a sandbox, and replays its journal if it has one. Changes go through `record`, until `close`.
 * @throws CatchwordError CONFIG_INVALID for a journal that cannot be used
 */
export function openState(options: SandboxOptions, signal: AbortSignal) {
  const { seed, items, users, db, clock } = options;
  const given = { seed, items, users, at: clock.now() };
  const journal = db === null ? null : openJournal(db, given);
  const time = createTimeline(clock, journal?.beginning.at ?? given.at);
  const record: RecordChange = (change, act) => {
    const at = time.now();
    const timed = () => time.during(at, act);
    return journal === null ? timed() : journal.record({ at, change }, timed);
  };
  try {
    const state = createState(options, time, record, signal);
    for (const { at, change } of journal?.entries ?? []) {
      try {
        time.during(at, () => state.repeat(change));
      } catch {
        // A change that fails now failed the first time as well: the process was killed before it removed the entry.
      }
    }
    time.run();
    return { state, record, close: () => journal?.close() };
  } catch (error) {
    journal?.close();
    throw error;
  }
}

export type JournaledState = ReturnType<typeof openState>;
