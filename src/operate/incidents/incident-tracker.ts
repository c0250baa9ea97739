import { problemText } from '../../report/problem-text.ts';
import { type MirrorState, type StateLimits, stateOf } from '../../state/mirror-state.ts';
import { nameOf, problemsOf, quietMs } from '../../state/problems.ts';
import type { DeliverOptions } from './deliver.ts';
import { episodeText } from './message-text.ts';

/*
 * Turns problems into episodes:
 *
 * ```
 *            found in every check for `forMs`            not found for the quiet time
 *   nothing ────────────────────────────────► open ────────────────────────────────► ended
 * ```
 * Time is counted in checks, because a clock may be set. A topic whose episodes come back needs a longer quiet time
 * after each one, so that a problem that flickers sends a few messages a day.
 */

/** How often to look, milliseconds. */
export const CHECK_MS = 30_000;

const DAY_MS = 86_400_000;
/** How often to note how far each sink is: a day of points is a curve. */
const POINT_MS = 5 * 60_000;
/** How long ended episodes are kept. */
const KEEP_MS = 90 * DAY_MS;

export interface WatchOptions extends StateLimits, Omit<DeliverOptions, 'sender'> {
  /** Names of the channels. */
  readonly channels: readonly string[];
}

/** For how long topics have been so, milliseconds. */
type Ages = ReadonlyMap<string, number>;

/** The ages of these topics at the next check; 0 the first time. */
function older(ages: Ages, topics: readonly { readonly topic: string }[]): Ages {
  return new Map(topics.map(({ topic }) => [topic, (ages.get(topic) ?? -CHECK_MS) + CHECK_MS]));
}

/**
 * Makes the check, to be called every CHECK_MS.
 * @throws CatchwordError LEASE_LOST, or another error of the mirror; nothing was written
 */
export function createIncidentTracker({ store, leased, clock, log, channels, ...options }: WatchOptions): () => void {
  let present: Ages = new Map();
  let absent: Ages = new Map();
  let pointAt: number | null = null;

  /** Notes how far each sink is, for the curves of its page. */
  function notePoints({ sinks, nowMs: at }: MirrorState): void {
    if (pointAt !== null && Math.abs(at - pointAt) < POINT_MS) return;
    pointAt = at;
    const known = sinks.filter(({ row }) => row.configured);
    if (known.length === 0) return;
    leased.write(({ points }) => {
      for (const { row, lagRecords } of known)
        points.note({ sinkId: row.id, at, behind: lagRecords, delivered: row.delivered });
      points.prune(at - DAY_MS);
    });
  }

  return () => {
    const now = clock.now();
    const state = store.read(() => stateOf(store, now, options));
    notePoints(state);
    const found = problemsOf(state).map((problem) => ({ ...problem, topic: nameOf(problem), problem }));
    const open = store.episodes.open();
    const fresh = found.filter(({ topic, begins }) => begins && !open.some((one) => one.topic === topic));
    present = older(present, fresh);
    const gone = open.filter(({ topic }) => !found.some((one) => one.topic === topic));
    absent = older(absent, gone);

    for (const { topic, forMs, problem } of fresh) {
      const ms = present.get(topic) ?? 0;
      if (ms < forMs) continue;
      const text = episodeText(problemText(problem, state, store));
      leased.write(({ episodes }) => episodes.begin(topic, text, now - ms, channels));
      log.warn({ topic, reason: text.replace('\n', ' ') }, 'something is wrong');
    }
    // Its run may have emptied more since.
    const unusual = found.find(({ topic }) => topic === 'unusual');
    const known = open.find(({ topic }) => topic === 'unusual');
    const text = unusual && episodeText(problemText(unusual.problem, state, store));
    if (text !== undefined && known !== undefined && text !== known.message)
      leased.write(({ episodes }) => episodes.restate(text, known.id));
    for (const { id, topic, beganAt } of gone) {
      const ms = absent.get(topic) ?? 0;
      if (ms < quietMs(store.episodes.countSince(topic, now - DAY_MS))) continue;
      // The clock may have been set back meanwhile.
      leased.write(({ episodes }) => {
        episodes.end(id, Math.max(beganAt, now - ms), channels);
        episodes.prune(now - KEEP_MS);
      });
      log.info({ topic }, 'it is over');
    }
  };
}
