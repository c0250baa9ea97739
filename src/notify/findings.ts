import { printable } from '../printable.ts';
import { failedInARow, openInARow } from '../report/in-a-row.ts';
import { newestFull, restlessRun, restlessText } from '../report/run-text.ts';
import { adviceFor, untoldReason } from '../report/run-words.ts';
import { isHalted, sinkLag } from '../report/sink.ts';
import { completeAt } from '../report/status.ts';
import { duration, plural, time } from '../report/text.ts';
import type { Disk } from '../store/disk.ts';
import type { Store } from '../store/store.ts';

/*
 * Problems, as the mirror shows them now. docs/notifications.md lists the topics; the limits are those of
 * ops/alerts.yml where it has the same alert.
 */

/** One thing that is wrong. */
export interface Finding {
  /** At most one episode of a topic is open at a time. */
  readonly topic: string;
  /** Names the problem in one short line, then says what it means and what to do. Called when an episode begins. */
  readonly describe: () => Description;
  /** For how long it must be so before an episode begins, milliseconds. */
  readonly forMs: number;
  /** False: it only keeps an open episode open, so that a value near its limit does not begin and end one again. */
  readonly begins: boolean;
}

export interface Description {
  readonly title: string;
  readonly advice: string;
}

export interface FindingOptions {
  /** CATCHWORD_READY_MAX_AGE. */
  readonly readyMaxAgeMs: number;
  /** The disk of the mirror. */
  readonly disk: () => Disk;
}

const MINUTE_MS = 60_000;
const LASTING_MS = 10 * MINUTE_MS;
/** How many of the newest runs are looked at. */
const RUNS = 50;
const TWICE = 2;
/** Seconds. */
const BEHIND = { begins: 1800, ends: 900 };
/** Shares of the disk. */
const DISK_FREE = { begins: 0.1, ends: 0.12 };
const LONG_PAUSE_MS = 60 * MINUTE_MS;
/** Characters of an error that a message quotes. */
const QUOTED = 300;

function quoted(error: string | null): string {
  const text = printable(error ?? '');
  if (text === '') return '';
  return ` (${text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text})`;
}

type Found = Pick<Finding, 'topic' | 'describe'> & Partial<Finding>;

const says = (title: string, advice: string) => (): Description => ({ title, advice });

function staleMirror(store: Store, nowMs: number, maxAgeMs: number): Found[] {
  const completedAt = completeAt(store);
  const since = completedAt ?? store.runs.get(1)?.startedAt ?? nowMs;
  if (nowMs - since <= maxAgeMs) return [];
  const title =
    completedAt === null
      ? 'The mirror has never been complete'
      : `The mirror is stale: it is as of ${time(completedAt)}`;
  const advice = `No run has completed for ${duration(nowMs - since)}. See why: npx catchword status`;
  return [{ topic: 'stale', describe: says(title, advice), forMs: LASTING_MS }];
}

function failingRuns(store: Store): Found[] {
  const ended = store.recentRuns.ended(null, RUNS);
  const found: Found[] = [];
  const failed = failedInARow(ended);
  const retry = store.schedule.retry();
  if (failed >= TWICE || retry !== null) {
    const error = failed > 0 ? (ended[0]?.error ?? null) : (retry?.reason ?? null);
    const title = failed >= TWICE ? `The newest ${failed} runs have failed` : 'A run does not get through';
    const advice = `catchword tries again by itself${quoted(error)}. See: npx catchword runs`;
    // One failure may pass by itself.
    found.push({ topic: 'runs', describe: says(title, advice), forMs: failed >= TWICE ? MINUTE_MS : LASTING_MS });
  }
  // A run that failed proves nothing either, but it is reported above.
  const full = store.recentRuns.ended('full', RUNS).filter(({ state }) => state !== 'failed');
  const open = openInARow(full);
  if (open >= TWICE) {
    const title = `The newest ${open} full runs were not sealed`;
    const reason = quoted(store.runs.get(full[0]?.id ?? 0)?.reasons[0] ?? null);
    const advice = `Nothing proves that they saw every product${reason}. See: npx catchword runs`;
    found.push({ topic: 'open', describe: says(title, advice) });
  }
  return found;
}

function untoldChanges(store: Store): Found[] {
  const full = newestFull(store);
  const reason = full && untoldReason(full);
  if (full === undefined || reason === undefined) return [];
  const advice = `Run ${full.id}: ${reason}. Nothing is concluded from what they do not tell. ${adviceFor(reason)}`;
  return [{ topic: 'untold', describe: says('The deltas of the source do not tell every change', advice) }];
}

function restlessCatalog(store: Store, nowMs: number): Found[] {
  const run = restlessRun(store, nowMs);
  if (run === undefined) return [];
  const { title, advice } = restlessText(run);
  return [{ topic: 'updates', describe: says(`Run ${run.id} ${title}`, `${advice} See: npx catchword run ${run.id}`) }];
}

function heldRemovals(store: Store): Found[] {
  const held = store.runs.held();
  const [first] = held;
  if (first === undefined) return [];
  // There may be many, so they are counted only for the message.
  const describe = (): Description => {
    const removals = held.reduce((sum, { id }) => sum + store.removals.heldCount(id), 0);
    const who = held.length === 1 ? `Run ${first.id} holds` : `${held.length} runs hold`;
    const command = `npx catchword run ${first.id}`;
    if (removals === 0) {
      const advice = `Their products were seen since. Approve or reject the run: ${command}`;
      return { title: `${who} no removals any more`, advice };
    }
    const title = `${who} ${plural(removals, 'removal')} for an approval`;
    const advice = `Nothing was removed. Look at them, then approve or reject the run: ${command}`;
    return { title, advice };
  };
  return [{ topic: 'held', describe }];
}

function sinksInTrouble(store: Store, nowMs: number): Found[] {
  return store.sinks.list().flatMap((row): Found[] => {
    // A paused sink is paused on purpose.
    if (!row.configured || row.state === 'paused') return [];
    const { name, state, error } = row;
    const seconds = sinkLag(store, row, nowMs).lag_seconds ?? 0;
    const behind: Found = {
      topic: `behind:${name}`,
      describe: says(
        `Sink ${name} is ${duration(seconds * 1000)} behind`,
        `Its store is slow or does not answer${quoted(error)}. See: npx catchword sink list`,
      ),
      forMs: LASTING_MS,
      // A sink that is stopped has its own episode.
      begins: seconds > BEHIND.begins && !isHalted(row),
    };
    const halted: Found = {
      topic: `sink:${name}`,
      describe: says(
        `Sink ${name} is ${state}`,
        `It gets no changes${quoted(error)}. When the cause is gone: npx catchword sink resume ${name}`,
      ),
    };
    return [...(isHalted(row) ? [halted] : []), ...(seconds > BEHIND.ends ? [behind] : [])];
  });
}

function fullDisk({ free, size }: Disk): Found[] {
  const share = free / size;
  if (!(share < DISK_FREE.ends)) return [];
  const title = `The disk of the mirror is nearly full: ${Math.floor(share * 100)}% is free`;
  const advice = 'Free space, or move CATCHWORD_DB. Runs stop before they lose anything when the disk is full.';
  return [{ topic: 'disk', describe: says(title, advice), forMs: LASTING_MS, begins: share < DISK_FREE.begins }];
}

function longPause(store: Store, nowMs: number): Found[] {
  const pause = store.source.pause(nowMs);
  if (pause === null || pause.until - pause.since < LONG_PAUSE_MS) return [];
  const title = `The service asked catchword to wait until ${time(pause.until)}`;
  const advice = 'No run reads before then. If this happens often, lower CATCHWORD_RATE_LIMIT.';
  return [{ topic: 'pause', describe: says(title, advice) }];
}

/** Everything that is wrong now. */
export function findingsOf(store: Store, nowMs: number, { readyMaxAgeMs, disk }: FindingOptions): Finding[] {
  const found = store.read(() => [
    ...staleMirror(store, nowMs, readyMaxAgeMs),
    ...failingRuns(store),
    ...untoldChanges(store),
    ...restlessCatalog(store, nowMs),
    ...heldRemovals(store),
    ...sinksInTrouble(store, nowMs),
    ...longPause(store, nowMs),
  ]);
  return [...found, ...fullDisk(disk())].map((one) => ({ forMs: MINUTE_MS, begins: true, ...one }));
}
