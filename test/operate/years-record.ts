import type { LogFields, Logger } from '@catchword/base/log';
import type { Run, RunKind } from '@catchword/catalog/run-types';
import { tickTime } from '@catchword/catalog/tick';
import { HALF_HOUR, START } from './years-world.ts';

/** Marks of half hours. */
function createMarks(halfHours: number) {
  const marks = new Uint8Array(halfHours + 1);
  return {
    add: (ms: number): void => {
      const at = Math.floor((ms - START) / HALF_HOUR);
      marks[at] = Math.min(255, (marks[at] ?? 0) + 1);
    },
    /** How many there are from one moment up to another one. */
    count: (fromMs: number, toMs: number): number => {
      let sum = 0;
      for (let ms = fromMs; ms < toMs; ms += HALF_HOUR) sum += marks[Math.floor((ms - START) / HALF_HOUR)] ?? 0;
      return sum;
    },
  };
}

type Marks = ReturnType<typeof createMarks>;

/** What the daemon did and logged; moments of runs in true time, those of ticks by the daemon's clock. */
export function createRecord(nowMs: () => number, halfHours: number) {
  const [full, delta, skippedFull, skippedDelta] = [0, 1, 2, 3].map(() => createMarks(halfHours)) as [
    Marks,
    Marks,
    Marks,
    Marks,
  ];
  const begun = new Map<number, number>();
  const missed: { readonly kind: RunKind; readonly from: number; readonly upTo: number; readonly reason: string }[] =
    [];
  const unexpected: string[] = [];
  let runs = 0;

  function ended(run: number, kind: RunKind): void {
    runs++;
    const at = begun.get(run);
    if (at !== undefined) (kind === 'full' ? full : delta).add(at);
    begun.clear();
  }

  /** Counts a run that ended right before the process was killed, and was not logged. */
  function killed(last: Run | undefined): void {
    if (last !== undefined && begun.has(last.id) && last.finishedAt !== null && last.state !== 'failed') {
      ended(last.id, last.kind);
    }
  }

  function take(level: string, fields: LogFields, message: string): void {
    const kind = fields.kind === 'full' ? 'full' : 'delta';
    const run = fields.run ?? 0;
    // A process may be killed before it logs the start.
    if (message === 'run started' || (message === 'run resumed' && !begun.has(run))) begun.set(run, nowMs());
    else if (message === 'run complete' || message.startsWith('removals are held')) {
      ended(run, kind);
    } else if (message === 'skipped') {
      (kind === 'full' ? skippedFull : skippedDelta).add(tickTime(fields.tick ?? '') ?? 0);
    } else if (message.startsWith('scheduled runs were missed')) {
      const [from, upTo] = [Date.parse(fields.dueAt ?? ''), Date.parse(fields.missedUpTo ?? '')];
      missed.push({ kind, from, upTo, reason: fields.reason ?? '' });
    } else if (
      level === 'error' &&
      !/^run stopped|^a fetched page was not applied|^the schedule could not/.test(message)
    ) {
      unexpected.push(`${message} ${JSON.stringify(fields)}`);
    }
  }

  const log: Logger = {
    debug: () => {},
    info: (fields, message) => take('info', fields, message),
    warn: (fields, message) => take('warn', fields, message),
    error: (fields, message) => take('error', fields, message),
    fatal: (fields, message) => take('error', fields, message),
  };
  return { log, killed, full, delta, skippedFull, skippedDelta, missed, unexpected, runs: () => runs };
}

export type RecordOfYears = ReturnType<typeof createRecord>;
